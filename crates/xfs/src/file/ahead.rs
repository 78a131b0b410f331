//! Data of a file that is on its way ahead of its reader.
//!
//! A reader that goes on where it ended has the data behind it read ahead: first [`WINDOW_MIN`]
//! bytes, then twice as many each time it comes to the second half of them, up to [`WINDOW_MAX`]. So
//! the next half is under way while it reads one. A reader that jumps gets nothing, until it goes on
//! from there. [`OpenFile::will_need`](super::OpenFile::will_need) does the same for any range.
//!
//! Pieces lie in memory of the volume, which has a bound: without room nothing is read ahead. Only
//! volumes open for reading do this, whose files and blocks stay as they are, and only where
//! [reads are slow](crate::cache::Cache::is_slow). Errors show when the data is asked for, which
//! reads it again.

use super::parts::Part;
use crate::volume::Volume;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use undercroft_block::{Bio, Buffer, Plug, Waiter};

/// Bytes that are read ahead of a reader that has begun to go on where it ended.
const WINDOW_MIN: u64 = 128 << 10;

/// Most bytes that are read ahead of a reader: enough for 4 GB/s from a device that answers after
/// two milliseconds, and for 400 MB/s from one that takes twenty.
const WINDOW_MAX: u64 = 8 << 20;

/// Longest piece.
const PIECE_BYTES: usize = 1 << 20;

/// What is on its way, or waits for its reader, of one opening of a file.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Pieces, to be read without the lock.
    count: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Piece>,
    /// Where a reader goes on that reads one after the other.
    next: u64,
    /// Bytes to be read ahead of it; 0 before it has begun.
    window: u64,
    /// End of what was begun ahead of it.
    begun: u64,
}

/// A part of the file in one piece of memory.
#[derive(Debug)]
pub(super) struct Piece {
    /// Bytes of the file.
    range: Range<u64>,
    /// Bytes of the memory before them.
    skipped: usize,
    arrival: Arrival,
}

#[derive(Debug)]
enum Arrival {
    OnItsWay(Waiter),
    Here(Buffer),
}

impl Piece {
    /// Copies what it has from the byte `at` of the file on; returns itself and how much that was.
    /// `None` if its read failed.
    fn copy(self, at: u64, bytes: &mut [u8]) -> Option<(Self, usize)> {
        let buffer = match self.arrival {
            Arrival::OnItsWay(waiter) => waiter.wait().into_buffer().ok()?,
            Arrival::Here(buffer) => buffer,
        };
        // Both less than a piece.
        let inside = self.skipped + (at - self.range.start) as usize;
        let len = bytes.len().min((self.range.end - at) as usize);
        bytes[..len].copy_from_slice(&buffer[inside..inside + len]);
        Some((Self { arrival: Arrival::Here(buffer), ..self }, len))
    }
}

impl Ahead {
    /// Copies what was read ahead from the byte `at` of the file on; 0 bytes if nothing was.
    pub(super) fn copy(&self, at: u64, bytes: &mut [u8]) -> usize {
        if self.count.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        // The piece is this reader's meanwhile; another one reads for itself.
        let Some(piece) = self.take(at) else { return 0 };
        let Some((piece, len)) = piece.copy(at, bytes) else { return 0 };
        if at + (len as u64) < piece.range.end {
            self.add([piece]);
        }
        len
    }

    /// Bytes from `at` on before the next piece; `len` if none comes before.
    pub(super) fn gap(&self, at: u64, len: usize) -> usize {
        if self.count.load(Ordering::Relaxed) == 0 {
            return len;
        }
        let state = self.state.lock();
        let behind = state.pieces.iter().map(|piece| piece.range.start).filter(|start| *start > at);
        let gap = behind.min().map_or(u64::MAX, |start| start - at);
        len.min(usize::try_from(gap).unwrap_or(usize::MAX))
    }

    fn take(&self, at: u64) -> Option<Piece> {
        let mut state = self.state.lock();
        let index = state.pieces.iter().position(|piece| piece.range.contains(&at))?;
        let piece = state.pieces.remove(index);
        self.count.store(state.pieces.len(), Ordering::Relaxed);
        piece
    }

    fn add(&self, pieces: impl IntoIterator<Item = Piece>) {
        let mut state = self.state.lock();
        state.pieces.extend(pieces);
        self.count.store(state.pieces.len(), Ordering::Relaxed);
    }

    /// Notes a read of `range`; returns what is to be read ahead of the next one.
    pub(super) fn follow(&self, range: Range<u64>, size: u64) -> Option<Range<u64>> {
        let mut state = self.state.lock();
        let goes_on = range.start == state.next;
        state.next = range.end;
        if !goes_on {
            state.window = 0;
            state.begun = 0;
            // What it jumped from is not come back to.
            state.pieces.clear();
            self.count.store(0, Ordering::Relaxed);
            return None;
        }
        let begun = state.begun.max(range.end);
        if begun - range.end > state.window / 2 || begun >= size {
            return None;
        }
        state.window = (2 * state.window).clamp(WINDOW_MIN, WINDOW_MAX);
        state.begun = size.min(range.end + state.window);
        state.pieces.retain(|piece| piece.range.end > range.end);
        self.count.store(state.pieces.len(), Ordering::Relaxed);
        (begun < state.begun).then_some(begun..state.begun)
    }
}

impl Ahead {
    /// Begins to read these parts, each with its bytes of the file, as far as there is memory.
    pub(super) fn begin(&self, volume: &Volume, parts: Vec<(Range<u64>, Part)>) {
        let plug = Plug::new(volume.cache().device());
        let unit = volume.geometry().sector_size();
        for (mut range, Part { mut sector, mut skipped, .. }) in parts {
            while !range.is_empty() {
                let wanted = usize::try_from(range.end - range.start).unwrap_or(PIECE_BYTES);
                let wanted = wanted.min(PIECE_BYTES - skipped);
                let length = (skipped + wanted).next_multiple_of(unit);
                let Some(buffer) = volume.read_ahead_memory().try_get(length) else { return };
                let (bio, waiter) = Bio::read(sector, buffer).waited();
                plug.submit(bio);
                let end = range.start + wanted as u64;
                let arrival = Arrival::OnItsWay(waiter);
                self.add([Piece { range: range.start..end, skipped, arrival }]);
                range.start = end;
                sector.0 += ((skipped + wanted) / 512) as u64;
                skipped = 0;
            }
        }
    }
}
