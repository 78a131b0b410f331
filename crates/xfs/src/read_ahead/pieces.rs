//! The pieces of an open file that are read ahead of its reader.

use super::piece::{Loan, Piece};
use super::window::{ReadPattern, Window};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A reader that does nothing for this long gives its memory to others that want some.
const IDLE: Duration = Duration::from_secs(1);

/// The pieces of one opening of a file that are on their way, or wait for their reader.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Pieces, to be read without the lock.
    count: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    window: Window,
    pieces: VecDeque<Piece>,
    /// Version of the file's data at the last read.
    version: u64,
    /// Time of the last read, or request to read ahead.
    last: Option<Instant>,
}

impl Pieces {
    /// The bytes that were read ahead from the byte `at` of the file on, at most `len`; `None` if
    /// there are none.
    pub(crate) fn lend(&self, version: Option<u64>, at: u64, len: usize) -> Option<Loan> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // The piece is this reader's while it waits; another one reads for itself.
        let piece = self.take(at, version)?;
        let loan = piece.lend(at, len)?;
        let is_left = at + (loan.len() as u64) < piece.range.end;
        if is_left || loan.was_late {
            let mut state = self.state.lock();
            if loan.was_late {
                state.window.set_late();
            }
            if is_left {
                state.pieces.push_back(piece);
                self.count.store(state.pieces.len(), Ordering::Relaxed);
            }
        }
        Some(loan)
    }

    /// Bytes from `at` on before the next piece; `len` if none comes before.
    pub(crate) fn gap(&self, at: u64, len: usize) -> usize {
        if self.count.load(Ordering::Relaxed) == 0 {
            return len;
        }
        let state = self.state.lock();
        let behind = state.pieces.iter().map(|piece| piece.range.start).filter(|start| *start > at);
        let gap = behind.min().map_or(u64::MAX, |start| start - at);
        len.min(usize::try_from(gap).unwrap_or(usize::MAX))
    }

    /// The parts of `range` that are not on their way.
    pub(crate) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut begun: Vec<_> =
            self.state.lock().pieces.iter().map(|piece| piece.range.clone()).collect();
        begun.sort_unstable_by_key(|piece| piece.start);
        let (mut at, mut missing) = (range.start, Vec::new());
        for piece in begun {
            let behind = piece.start.min(range.end);
            if at < behind {
                missing.push(at..behind);
            }
            at = at.max(piece.end);
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }

    /// The piece with the byte `at`, if it is of this version of the data.
    fn take(&self, at: u64, version: Option<u64>) -> Option<Piece> {
        let version = version?;
        let mut state = self.state.lock();
        self.retain(&mut state, |piece| piece.version == version);
        let index = state.pieces.iter().position(|piece| piece.range.contains(&at));
        let piece = index.and_then(|index| state.pieces.remove(index));
        self.count.store(state.pieces.len(), Ordering::Relaxed);
        piece
    }

    /// Says in which order the file is going to be read.
    pub(crate) fn set_pattern(&self, pattern: ReadPattern) {
        self.state.lock().window.set_pattern(pattern);
    }

    /// Says that this range is going to be read ahead.
    pub(crate) fn begin(&self, range: &Range<u64>) {
        self.state.lock().window.begin(range);
    }

    /// Lets go of all other pieces.
    pub(crate) fn keep(&self, keep: impl FnMut(&Piece) -> bool) {
        self.retain(&mut self.state.lock(), keep);
    }

    fn retain(&self, state: &mut State, keep: impl FnMut(&Piece) -> bool) {
        state.pieces.retain(keep);
        self.count.store(state.pieces.len(), Ordering::Relaxed);
    }

    /// Notes a read of `range`; returns the range to be read ahead of the next one.
    pub(crate) fn follow(&self, range: Range<u64>, size: u64, version: u64) -> Option<Range<u64>> {
        let state = &mut *self.state.lock();
        state.last = Some(Instant::now());
        let changed = std::mem::replace(&mut state.version, version) != version;
        if changed || state.window.is_left(range.start) {
            // A reader that jumped does not come back.
            self.retain(state, |_| false);
        }
        let next = state.window.follow(&range, size, changed);
        if next.is_some() {
            self.retain(state, |piece| piece.range.end > range.end);
        }
        next
    }

    /// Adds a piece that is on its way.
    pub(crate) fn add(&self, piece: Piece) {
        let mut state = self.state.lock();
        state.last = Some(Instant::now());
        state.pieces.push_back(piece);
        self.count.store(state.pieces.len(), Ordering::Relaxed);
    }

    /// Lets go of all, if the reader has asked for nothing lately.
    pub(super) fn release_if_idle(&self) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        // A reader that has it locked is not idle.
        let Some(mut state) = self.state.try_lock() else { return };
        if state.last.is_none_or(|last| last.elapsed() > IDLE) {
            state.window.restart();
            self.retain(&mut state, |_| false);
        }
    }
}
