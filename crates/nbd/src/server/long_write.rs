//! Long writes that the thread of a connection does itself: in parts, each of which is written when it
//! has come. The client sends the next one meanwhile, and a part is written from the processor's own
//! cache. A part comes to memory, or from the socket to the page cache.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use undercroft_block::{
    Bio, BlockDevice, BlockError, Buffer, Plug, SECTOR_SIZE, Sector, SpliceTarget, splice_target,
};

use super::cover::Cover;
use super::outbox::Outbox;
use super::pipe::FilledPipe;
use super::reply::Asked;
use super::splice_way::SpliceWay;

/// Bytes of a part in memory, at least. A file's device takes as many around the page cache where the
/// write as a whole would go; with a quarter of it calls take what the overlap gains.
const PART: u64 = 128 << 10;
/// Bytes of a part that is spliced, at most.
const MOST_SPLICED: usize = 256 << 10;
/// At least, unless it is the last one.
const LEAST_SPLICED: usize = 16 << 10;

/// A long write whose payload is on its way.
pub(super) struct LongWrite {
    shared: Arc<Shared>,
    /// Where the next part goes.
    sector: Sector,
    /// Bytes of the parts that were not submitted.
    rest: u64,
    /// The way of parts that do not come to memory.
    splice: Option<SpliceWay>,
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
    /// Bytes that were not written.
    left: u64,
    /// The first error of those that were.
    result: Result<(), BlockError>,
}

impl LongWrite {
    /// Whether a write of `cover` has more than one part in memory.
    pub(super) fn has_parts(cover: &Cover) -> bool {
        cover.is_exact() && cover.length() >= 2 * PART
    }

    /// The place to which a write of `cover` to `device` may be spliced now.
    pub(super) fn splice_target<'d>(
        device: &'d dyn BlockDevice,
        cover: &Cover,
    ) -> Option<SpliceTarget<'d>> {
        let is_long = cover.is_exact() && cover.length() >= PART;
        is_long.then(|| splice_target(device, cover.sector(), cover.length())).flatten()
    }

    /// A write of `cover`, which [has parts](Self::has_parts), or is spliced as it
    /// [may be](Self::splice_target).
    pub(super) fn new(
        outbox: &Arc<Outbox>,
        cover: &Cover,
        asked: Asked,
        charge: usize,
        splice: Option<SpliceWay>,
    ) -> Self {
        let state = Mutex::new(State { left: cover.length(), result: Ok(()) });
        let shared = Shared { outbox: Arc::clone(outbox), asked, charge, state };
        let shared = Arc::new(shared);
        Self { shared, sector: cover.sector(), rest: cover.length(), splice }
    }

    /// Bytes of the next part if it comes to memory; none if all were submitted.
    pub(super) fn part(&self) -> usize {
        // Less than two parts are one.
        (if self.is_last() { self.rest } else { PART }) as usize
    }

    /// Bytes of the next part in memory, whose first `here` bytes are there; whole blocks.
    pub(super) fn part_with(&self, here: usize) -> usize {
        // What is spliced has whole pages, so no more than the rest.
        self.part().max(here.next_multiple_of(rustix::param::page_size()))
    }

    /// Whether nothing is behind the next part in memory.
    pub(super) fn is_last(&self) -> bool {
        self.rest < 2 * PART
    }

    /// Submits the next part, which is `data`.
    pub(super) fn submit(&mut self, plug: &Plug, data: Buffer) {
        let length = data.len() as u64;
        let bio = Bio::write(self.sector, data).seldom_waiting();
        self.advance(length);
        let shared = Arc::clone(&self.shared);
        // Each counts for itself: the rest may never come.
        shared.outbox.load.begin();
        plug.submit(bio.on_complete(move |completion| {
            shared.ended(length, completion.result);
            shared.outbox.load.end(&shared.outbox.wake);
        }));
    }

    fn advance(&mut self, length: u64) {
        // Parts are of whole sectors.
        self.sector.0 += length / SECTOR_SIZE;
        self.rest -= length;
    }

    /// Whether the next part may be spliced.
    pub(super) fn is_spliced(&self) -> bool {
        self.splice.is_some()
    }

    /// Bytes of the next part that is spliced, if `here` bytes are in the socket; none if it is worth waiting
    /// for more.
    pub(super) fn spliced_part(&self, here: usize) -> Option<usize> {
        let rest = usize::try_from(self.rest).unwrap_or(usize::MAX);
        let most = rest.min(MOST_SPLICED);
        if here >= most {
            return Some(most);
        }
        // Parts of pages would be read first.
        let whole = here - here % rustix::param::page_size();
        (whole >= LEAST_SPLICED).then_some(whole)
    }

    /// Moves the next part, which is `length` bytes in `socket`, to `device`.
    ///
    /// # Errors
    /// Nothing was moved to the device. This part, whose first bytes are in the pipe that is returned, and
    /// all others have to go by memory.
    pub(super) fn splice(
        &mut self,
        device: &dyn BlockDevice,
        socket: BorrowedFd<'_>,
        length: usize,
    ) -> Result<(), Option<FilledPipe>> {
        let Some(way) = self.splice.take() else { return Err(None) };
        let result = way.splice(device, self.sector, socket, length)?;
        let bytes = length as u64;
        self.splice = Some(way);
        self.advance(bytes);
        self.shared.ended(bytes, result);
        Ok(())
    }
}

impl Shared {
    /// Notes how `bytes` of it ended; the last ones have it answered.
    fn ended(&self, bytes: u64, result: Result<(), BlockError>) {
        let mut state = self.state.lock();
        state.left -= bytes;
        if state.result.is_ok() {
            state.result = result;
        }
        let outcome = (state.left == 0).then(|| state.result.clone());
        drop(state);
        let Self { outbox, asked, charge, .. } = self;
        if let Some(result) = outcome {
            outbox.push(|answers| asked.ended(answers, &result, *charge));
        }
    }
}
