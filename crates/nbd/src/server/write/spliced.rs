//! A write whose payload goes from the socket to the page cache of a file by a pipe, with one copy less
//! than by memory: in parts, each of which is moved when it has come.

use std::cell::Cell;
use std::convert::Infallible;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use undercroft_block::{
    Bio, BlockDevice, BlockError, Buffer, Plug, SECTOR_SIZE, Sector, splice_at, splice_target,
};

use crate::server::answer::{Asked, Outbox};
use crate::server::connection::busy_poll::look_for;
use crate::server::pipe::{FilledPipe, Pipes};
use crate::server::request::aligned_range::AlignedRange;

/// Bytes of a write that is spliced, at least: for fewer the calls take what the copy does.
const LEAST: u64 = 128 << 10;
/// Bytes of a part, at most.
const MOST_PART: usize = 256 << 10;
/// Bytes of a part, at least, unless it is the last one.
const LEAST_PART: usize = 16 << 10;
/// A copy of a part by another thread takes less.
const TURN: Duration = Duration::from_micros(200);

/// A write on its way. While it is, its payload is in the socket.
pub(crate) struct SplicedWrite {
    outbox: Arc<Outbox>,
    pipes: Arc<Pipes>,
    asked: Asked,
    /// Memory to give back when it was answered.
    charge: usize,
    /// Where the next part goes.
    sector: Sector,
    /// Bytes that were not moved.
    rest: u64,
    /// The first error of those that were.
    result: Result<(), BlockError>,
}

impl SplicedWrite {
    /// Whether a write of `range` to `device` may be one now.
    pub(crate) fn may_be(device: &dyn BlockDevice, range: &AlignedRange) -> bool {
        range.is_exact()
            && range.length() >= LEAST
            && splice_target(device, range.sector(), range.length()).is_some()
    }

    /// A write of `range`, which [may be](Self::may_be) one.
    pub(crate) fn new(
        outbox: &Arc<Outbox>,
        pipes: &Arc<Pipes>,
        range: &AlignedRange,
        asked: Asked,
        charge: usize,
    ) -> Self {
        let (outbox, pipes) = (Arc::clone(outbox), Arc::clone(pipes));
        let (sector, rest) = (range.sector(), range.length());
        Self { outbox, pipes, asked, charge, sector, rest, result: Ok(()) }
    }

    /// Bytes that were not moved.
    pub(crate) fn rest(&self) -> usize {
        // At most the longest payload.
        usize::try_from(self.rest).unwrap_or(usize::MAX)
    }

    /// Bytes of the next part, if `here` bytes are in the socket; none if it is worth waiting for more.
    pub(crate) fn part(&self, here: usize) -> Option<usize> {
        let most = self.rest().min(MOST_PART);
        if here >= most {
            return Some(most);
        }
        // Parts of pages would be read first.
        let whole = here - here % rustix::param::page_size();
        (whole >= LEAST_PART).then_some(whole)
    }

    /// Moves the next part, which is `length` bytes in `socket`, to `device`.
    ///
    /// # Errors
    /// Nothing was moved to the device. All that is left has to [come to memory](Self::submit); the first bytes
    /// of it are in the pipe that is returned.
    pub(crate) fn splice(
        &mut self,
        device: &dyn BlockDevice,
        socket: BorrowedFd<'_>,
        length: usize,
    ) -> Result<(), Option<FilledPipe>> {
        let Some(pipe) = self.pipes.receive(socket, length) else { return Err(None) };
        if pipe.len() < length {
            return Err(Some(pipe));
        }
        let Some(result) = splice_in_turn(device, self.sector, &pipe) else {
            return Err(Some(pipe));
        };
        self.result = std::mem::replace(&mut self.result, Ok(())).and(result);
        // Parts are of whole sectors.
        self.sector.0 += length as u64 / SECTOR_SIZE;
        self.rest -= length as u64;
        Ok(())
    }

    /// Answers it, all of which was moved.
    pub(crate) fn answer(self) {
        let Self { outbox, asked, charge, result, .. } = self;
        outbox.push(|answers| asked.ended(answers, &result, charge));
    }

    /// Has all that is left, which is `data`, written under `plug`, by this thread if it is its `own`, and
    /// answers then.
    pub(crate) fn submit(self, plug: &Plug, data: Buffer, own: bool) {
        let bio = Bio::write(self.sector, data);
        let bio = if own { bio.seldom_waiting() } else { bio };
        self.outbox.quota.begin();
        plug.submit(bio.on_complete(move |completion| {
            let Self { outbox, asked, charge, result, .. } = self;
            let result = result.and(completion.result);
            outbox.push(|answers| asked.ended(answers, &result, charge));
            outbox.quota.end(&outbox.wake);
        }));
    }
}

/// Moves the bytes of `pipe` to `device` after other connections that write there now, if they are quick; none
/// if nothing was moved.
fn splice_in_turn(
    device: &dyn BlockDevice,
    sector: Sector,
    pipe: &FilledPipe,
) -> Option<Result<(), BlockError>> {
    let mut done = None;
    let is_tried = Cell::new(false);
    let mut splice = |file: &File, offset, most| {
        is_tried.set(true);
        pipe.write_to(file, offset, most)
    };
    let Ok(_) = look_for(TURN, || {
        done = splice_at(device, sector, pipe.len() as u64, &mut splice);
        Ok::<_, Infallible>(done.is_some() || is_tried.get())
    });
    done
}
