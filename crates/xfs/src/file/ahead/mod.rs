//! Data of a file that is on its way ahead of its reader.
//!
//! A reader that goes on where it ended has the data behind it read ahead ([`Window`]), and
//! [`OpenFile::will_need`] does the same for any range. Pieces lie in memory of the volume, which
//! has a bound: without room nothing is read ahead. It is done only where
//! [reads are slow](crate::cache::Cache::is_slow): a copy out of the page cache costs as much ahead
//! as in time.
//!
//! On a volume open for change a piece holds the data of the file as it was when its read was
//! submitted; a write submitted later comes behind it. Each change of the file's data on the device
//! or of its mapping has the lock of its data, and makes a new
//! [version](crate::inode::FileLocks::stable_version): pieces of an older one are dropped. What is
//! dirty in memory is not asked for here.
//!
//! Errors show when the data is asked for, which reads it again.

mod batch;
mod piece;
mod window;

pub use window::ReadPattern;

use self::batch::Batch;
use self::piece::Piece;
use self::window::Window;
use super::OpenFile;
use super::parts::stored_parts;
use crate::volume::{Holder, Volume};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use undercroft_block::drives_queues;

/// A reader that does nothing for this long gives its memory to others that want some.
const IDLE: Duration = Duration::from_secs(1);

/// The pieces of one opening of a file that are on their way, or wait for their reader.
#[derive(Debug, Default)]
pub(super) struct Ahead {
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

impl OpenFile {
    /// Says in which order the file is going to be read through this opening of it.
    pub fn expect_reads(&self, pattern: ReadPattern) {
        self.ahead().state.lock().window.set_pattern(pattern);
    }

    /// Says that this range of the file will be read soon: it is on its way then, as far as there
    /// is memory for that. Returns at once; errors show when it is read.
    ///
    /// For devices that answer at once it does nothing.
    pub fn will_need(&self, range: Range<u64>) {
        Self::will_need_all([(self, range)]);
    }

    /// As [`will_need`](Self::will_need), of several files together: what lies side by side on the
    /// device is read at once.
    pub fn will_need_all<'f>(reads: impl IntoIterator<Item = (&'f Self, Range<u64>)>) {
        let mut batch: Option<Batch<'f>> = None;
        for (file, range) in reads.into_iter().filter(|(file, _)| reads_ahead(&file.volume)) {
            file.ahead().state.lock().window.begin(&range);
            if let Some(other) = batch.take_if(|batch| !batch.is_of(&file.volume)) {
                other.submit();
            }
            let batch = batch.get_or_insert_with(|| Batch::new(&file.volume));
            file.begin_ahead(range, batch);
        }
        if let Some(batch) = batch {
            batch.submit();
        }
    }

    /// Says that this range of the file will not be read soon: memory that holds it is let go.
    pub fn will_not_need(&self, range: Range<u64>) {
        if let Some(ahead) = self.ahead.get() {
            ahead.keep(|piece| piece.range.end <= range.start || range.end <= piece.range.start);
        }
    }

    /// Notes a read, and begins to read what comes next.
    pub(super) fn follow(&self, range: Range<u64>) {
        if reads_ahead(&self.volume)
            && let Some(version) = self.locks.stable_version()
            && let Some(next) = self.ahead().follow(range, self.size(), version)
        {
            let mut batch = Batch::new(&self.volume);
            self.begin_ahead(next, &mut batch);
            batch.submit();
        }
    }

    fn ahead(&self) -> &Arc<Ahead> {
        self.ahead.get_or_init(|| {
            let ahead = Arc::new(Ahead::default());
            let holder: Weak<Ahead> = Arc::downgrade(&ahead);
            self.volume.read_ahead_memory().enlist(holder);
            ahead
        })
    }

    fn begin_ahead(&self, range: Range<u64>, batch: &mut Batch<'_>) {
        // Before the mapping is looked at: a change after this makes the pieces too old.
        let Some(version) = self.locks.stable_version() else { return };
        let parts = stored_parts(&self.volume, &self.inode.read(), range);
        // An error shows when the range is read.
        for (range, part) in parts.unwrap_or_default() {
            batch.add(self.ahead(), range, part, version);
        }
    }
}

/// Whether reads of data are begun ahead on this volume.
fn reads_ahead(volume: &Volume) -> bool {
    volume.cache().is_slow() && !drives_queues()
}

impl Ahead {
    /// Copies what was read ahead from the byte `at` of the file on; 0 bytes if nothing was.
    pub(super) fn copy(
        &self,
        volume: &Volume,
        version: Option<u64>,
        at: u64,
        bytes: &mut [u8],
    ) -> usize {
        if self.count.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        // The piece is this reader's meanwhile; another one reads for itself.
        let Some(piece) = self.take(at, version) else { return 0 };
        let Some(copied) = piece.copy(at, bytes) else { return 0 };
        volume.read_ahead_memory().count_used(copied.len);
        let is_left = at + (copied.len as u64) < piece.range.end;
        if is_left || copied.was_late {
            let mut state = self.state.lock();
            if copied.was_late {
                state.window.set_late();
            }
            if is_left {
                state.pieces.push_back(piece);
                self.count.store(state.pieces.len(), Ordering::Relaxed);
            }
        }
        copied.len
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

    fn keep(&self, keep: impl FnMut(&Piece) -> bool) {
        self.retain(&mut self.state.lock(), keep);
    }

    fn retain(&self, state: &mut State, keep: impl FnMut(&Piece) -> bool) {
        state.pieces.retain(keep);
        self.count.store(state.pieces.len(), Ordering::Relaxed);
    }

    /// Notes a read of `range`; returns the range to be read ahead of the next one.
    fn follow(&self, range: Range<u64>, size: u64, version: u64) -> Option<Range<u64>> {
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
    fn add(&self, piece: Piece) {
        let mut state = self.state.lock();
        state.last = Some(Instant::now());
        state.pieces.push_back(piece);
        self.count.store(state.pieces.len(), Ordering::Relaxed);
    }
}

impl Holder for Ahead {
    fn release_if_idle(&self) {
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
