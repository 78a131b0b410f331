//! Long writes that the thread of a connection does itself: in parts, each of which is written when it
//! has come. The client sends the next one meanwhile, and a part is written from the processor's own
//! cache.

use std::sync::Arc;

use parking_lot::Mutex;
use undercroft_block::{Bio, BlockError, Buffer, Completion, Plug, SECTOR_SIZE, Sector};

use super::cover::Cover;
use super::outbox::Outbox;
use super::reply::Asked;

/// Bytes of a part, at least. A file's device takes as many around the page cache where the write as a
/// whole would go; with a quarter of it calls take what the overlap gains.
const PART: u64 = 128 << 10;

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
    /// The first error of those that were.
    result: Result<(), BlockError>,
}

impl LongWrite {
    /// A write of `cover`, if it has more than one part.
    pub(super) fn new(
        outbox: &Arc<Outbox>,
        cover: &Cover,
        asked: Asked,
        charge: usize,
    ) -> Option<Self> {
        if !cover.is_exact() || cover.length() < 2 * PART {
            return None;
        }
        let state = Mutex::new(State { left: cover.length() / PART, result: Ok(()) });
        let shared = Shared { outbox: Arc::clone(outbox), asked, charge, state };
        Some(Self { shared: Arc::new(shared), sector: cover.sector(), rest: cover.length() })
    }

    /// Bytes of the next part; none if all were submitted.
    pub(super) fn part(&self) -> usize {
        // Less than two parts are one.
        (if self.is_last() { self.rest } else { PART }) as usize
    }

    /// Whether nothing is behind the next part.
    pub(super) fn is_last(&self) -> bool {
        self.rest < 2 * PART
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
        if state.result.is_ok() {
            state.result = completion.result;
        }
        let outcome = (state.left == 0).then(|| state.result.clone());
        drop(state);
        let Self { outbox, asked, charge, .. } = self;
        if let Some(result) = outcome {
            outbox.push(|answers| asked.ended(answers, &result, *charge));
        }
        outbox.load.end(&outbox.wake);
    }
}
