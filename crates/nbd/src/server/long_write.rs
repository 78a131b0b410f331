//! Long writes that the thread of a connection does itself: in parts, each of which is written when it
//! has come. The client sends the next one meanwhile, and a part is written from the processor's own
//! cache.

use std::sync::Arc;

use parking_lot::Mutex;
use undercroft_block::{Bio, BlockError, Buffer, Completion, Plug, SECTOR_SIZE, Sector};

use super::cover::Cover;
use super::outbox::Outbox;
use super::reply::Asked;

/// Bytes of a part: with half as many, calls take what the overlap gains; twice as many make no
/// difference where the processor's own cache is large.
const PART: u64 = 64 << 10;

/// A long write whose payload is on its way.
pub(super) struct LongWrite {
    shared: Arc<Shared>,
    /// Where the next part goes.
    sector: Sector,
    /// Bytes of the parts that were not submitted.
    rest: u64,
}

/// What the parts of a write have in common.
struct Shared {
    outbox: Arc<Outbox>,
    asked: Asked,
    /// Memory to give back when it was answered.
    charge: usize,
    state: Mutex<State>,
}

struct State {
    /// Parts that were not written.
    left: u64,
    error: Option<BlockError>,
}

impl LongWrite {
    /// A write of `cover`, if it has more than one part.
    pub(super) fn new(
        outbox: &Arc<Outbox>,
        cover: &Cover,
        asked: Asked,
        charge: usize,
    ) -> Option<Self> {
        if !cover.is_exact() || cover.length() <= PART {
            return None;
        }
        let state = Mutex::new(State { left: cover.length().div_ceil(PART), error: None });
        let shared = Shared { outbox: Arc::clone(outbox), asked, charge, state };
        Some(Self { shared: Arc::new(shared), sector: cover.sector(), rest: cover.length() })
    }

    /// Bytes of the next part; none if all were submitted.
    pub(super) fn part(&self) -> usize {
        // At most a constant.
        self.rest.min(PART) as usize
    }

    /// Whether nothing is behind the next part.
    pub(super) fn is_last(&self) -> bool {
        self.rest <= PART
    }

    /// Submits the next part, which is `data`.
    pub(super) fn submit(&mut self, plug: &Plug, data: Buffer) {
        let length = data.len() as u64;
        let bio = Bio::write(self.sector, data).seldom_waiting();
        // Parts are of whole sectors.
        self.sector.0 += length / SECTOR_SIZE;
        self.rest -= length;
        let shared = Arc::clone(&self.shared);
        // Each counts for itself: the rest may never come.
        shared.outbox.load.begin();
        plug.submit(bio.on_complete(move |completion| shared.ended(completion)));
    }
}

impl Shared {
    fn ended(&self, completion: Completion) {
        let mut state = self.state.lock();
        state.left -= 1;
        if let Err(error) = completion.result {
            state.error.get_or_insert(error);
        }
        let outcome = (state.left == 0).then(|| state.error.take());
        drop(state);
        let Self { outbox, asked, charge, .. } = self;
        match outcome {
            Some(None) => outbox.push(|answers| asked.done(answers, *charge)),
            Some(Some(error)) => {
                outbox.push(|answers| asked.failed_by(answers, &error, *charge));
            }
            None => {}
        }
        outbox.load.end(&outbox.wake);
    }
}
