//! The journal of a volume that is open for change.
//!
//! Transactions hold the gate shared from begin to commit. The writer of the journal takes it for
//! as long as it closes a checkpoint: it sees no half-done transaction, and makes the items
//! straight from the buffers. So a thread must begin a transaction before it locks an inode; else
//! the writer waits for a transaction that waits for the inode of a thread that waits for the
//! writer.
//!
//! Locks, outer ones first: gate (shared), inodes, groups, open checkpoint, buffer; or writer,
//! gate, open checkpoint, buffer. Nothing is sent to the device under the open checkpoint: the
//! completion of a bio that failed takes it.

use super::answer::{Answer, Refusal};
use super::checkpoint::{Checkpoint, LogRecordHints, Part};
use super::shape::LogShape;
use super::ticket::{SyncTicket, Tickets, UnsequencedTicket};
use super::worker::Worker;
use super::writer::{JournalStart, Writer};
use crate::busy::{BusyExtents, Crowd};
use crate::cache::{BufferRef, Cache};
use crate::error::{Error, chain};
use crate::format::Counters;
use crate::geometry::Geometry;
use crate::poison::Poison;
use crate::rank;
use crate::units::Lsn;
use crossbeam_utils::CachePadded;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use undercroft_block::{Batch, FirstErrorHandler, flush_plugs};
use undercroft_locks::{Condvar, OrderedMutex, OrderedRwLock, RwLockReadGuard};

/// The volume's parts that a journal works on.
pub(crate) struct JournalParts {
    pub(crate) cache: Arc<Cache>,
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) shape: LogShape,
    pub(crate) poison: Arc<Poison>,
    /// Number of the open checkpoint, as the volume tells it to others.
    pub(crate) open_sequence: Arc<AtomicU64>,
    /// Busy extents of every group.
    pub(crate) busy: Vec<Arc<BusyExtents>>,
    pub(crate) superblock: BufferRef,
}

/// The journal.
pub(crate) struct Journal {
    pub(super) cache: Arc<Cache>,
    pub(super) geometry: Arc<Geometry>,
    pub(super) shape: LogShape,
    pub(super) poison: Arc<Poison>,
    pub(super) open_sequence: Arc<AtomicU64>,
    pub(super) busy: Vec<Arc<BusyExtents>>,
    pub(super) superblock: BufferRef,
    /// Held by transactions from begin to commit, and by the writer while it closes a checkpoint.
    /// Every transaction changes it and the open checkpoint: both have cache lines of their own.
    pub(super) gate: CachePadded<OrderedRwLock<(), { rank::GATE }>>,
    pub(super) open: CachePadded<OrderedMutex<Checkpoint, { rank::CHECKPOINT }>>,
    /// A transaction gave back its reservation.
    released: Condvar,
    /// The newest checkpoint that is durable, with all before it.
    pub(super) durable: AtomicU64,
    /// Bytes of the journal that the next checkpoint may take.
    pub(super) free_bytes: AtomicUsize,
    /// A group has so much that waits for a checkpoint that one is written before anything else.
    pub(super) is_crowded: AtomicBool,
    pub(super) writer: OrderedMutex<Writer, { rank::WRITER }>,
    pub(super) tickets: Arc<Tickets>,
    pub(super) worker: Worker,
    /// The owner of the files to be written back.
    files: OnceLock<Weak<dyn WriteBack>>,
    /// Hears of writes of file data that failed.
    on_error: FirstErrorHandler,
}

/// The owner of the dirty data of files.
pub(crate) trait WriteBack: Send + Sync {
    /// Writes back files that tickets wait for, and others while too much is dirty. Returns those
    /// tickets whose data is on its way and committed.
    fn write_back(&self) -> Vec<UnsequencedTicket>;
}

/// Leave for a transaction to run, and its reservation in the journal.
pub(crate) struct Permit<'j> {
    journal: &'j Journal,
    reserved: usize,
    /// Given up last: see `Drop`.
    _gate: RwLockReadGuard<'j, (), { rank::GATE }>,
}

/// Whether a transaction can begin.
enum Admission {
    Enough,
    /// When others have committed.
    Later,
    /// When the journal was written.
    None,
}

impl Journal {
    /// A journal that goes on at `start`.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub(crate) fn start(parts: JournalParts, start: &JournalStart) -> Result<Arc<Self>, Error> {
        let JournalParts { cache, geometry, shape, poison, open_sequence, busy, superblock } =
            parts;
        open_sequence.store(1, Ordering::Release);
        // Any number will do that is not that of a transaction which a crash left behind.
        let transaction = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos());
        let journal = Arc::new_cyclic(|own: &Weak<Self>| Self {
            cache,
            geometry,
            shape,
            poison,
            open_sequence,
            busy,
            superblock,
            gate: CachePadded::default(),
            open: OrderedMutex::new(Checkpoint::new(1)).into(),
            released: Condvar::new(),
            durable: AtomicU64::new(0),
            free_bytes: AtomicUsize::new(0),
            is_crowded: AtomicBool::new(false),
            writer: OrderedMutex::new(Writer::new(start, transaction)),
            tickets: Arc::default(),
            worker: Worker::default(),
            files: OnceLock::new(),
            on_error: on_error(Weak::clone(own)),
        });
        journal.update_free(&journal.writer.lock());
        let own = Arc::clone(&journal);
        let started = journal.worker.start(move || own.work());
        started.map_err(|error| Error::Busy(format!("no thread for the journal: {error}")))?;
        Ok(journal)
    }

    /// The intents that the journal held when it was opened are done and durable.
    pub(crate) fn unpin(&self) {
        self.writer.lock().pinned = None;
    }

    /// Bytes that a transaction may log without waiting for room, if none other runs.
    pub(crate) fn room_now(&self) -> usize {
        let free = self.free_bytes.load(Ordering::Acquire);
        let mut bytes = self.limit().min(free);
        while self.shape.checkpoint_bytes(bytes) > free && bytes > 0 {
            bytes -= bytes.div_ceil(8);
        }
        bytes
    }

    /// Bytes of the journal, and those that the next checkpoint may take.
    pub(crate) fn space(&self) -> (usize, usize) {
        (self.shape.bytes(), self.free_bytes.load(Ordering::Acquire))
    }

    /// Most bytes that one transaction may log.
    pub(crate) const fn limit(&self) -> usize {
        self.shape.checkpoint_limit()
    }

    /// Waits until a transaction may run that logs about `bytes` bytes, at the very most `most`.
    /// The first are its own. Room beyond them is kept once, for any of the transactions that run
    /// at a time: so many run at once although each might need much.
    ///
    /// # Errors
    /// The journal is too small, ever; or it could not be written.
    pub(crate) fn enter(&self, bytes: usize, most: usize) -> Result<Permit<'_>, Error> {
        let limit = self.limit();
        if most > limit {
            return Err(Error::Invalid(format!(
                "the operation may need {most} bytes of the journal at once, which has room for \
                 {limit}"
            )));
        }
        let mut may_hold_bios = true;
        loop {
            self.poison.check()?;
            let gate = self.gate.try_read().unwrap_or_else(|| {
                // The writer of the journal may wait for bios that this thread holds back.
                flush_plugs();
                self.gate.read()
            });
            let mut open = self.open.lock();
            match self.room(&open, bytes, most) {
                Admission::Enough => {
                    open.reserved += bytes;
                    return Ok(Permit { journal: self, reserved: bytes, _gate: gate });
                }
                Admission::Later => {
                    drop(gate);
                    if may_hold_bios {
                        // Others may wait for bios that this thread holds back. Not under the lock:
                        // a bio that fails at once takes it. Then it looks again.
                        drop(open);
                        flush_plugs();
                        may_hold_bios = false;
                    } else if !self.poison.is_set() {
                        self.released.wait(&mut open);
                    }
                }
                Admission::None => {
                    drop(open);
                    drop(gate);
                    self.make_room(bytes, most)?;
                }
            }
        }
    }

    fn room(&self, open: &Checkpoint, bytes: usize, most: usize) -> Admission {
        let free = self.free_bytes.load(Ordering::Acquire).min(self.shape.bytes() / 2);
        let fits = |taken: usize| {
            taken + bytes <= self.limit() && self.shape.checkpoint_bytes(taken + most) <= free
        };
        if self.cache.has_too_much_dirty()
            || self.is_crowded.load(Ordering::Acquire)
            || !fits(open.bytes)
        {
            Admission::None
        } else if !fits(open.bytes + open.reserved) {
            Admission::Later
        } else {
            Admission::Enough
        }
    }

    /// Makes room for a transaction of `bytes` bytes, or of up to `most`.
    fn make_room(&self, bytes: usize, most: usize) -> Result<(), Error> {
        flush_plugs();
        let mut writer = self.writer.lock();
        let has_room = || !matches!(self.room(&self.open.lock(), bytes, most), Admission::None);
        if has_room() {
            return Ok(());
        }
        self.write_checkpoint(&mut writer)?;
        if has_room() {
            return Ok(());
        }
        // Buffers that change all the time can be written to their places only while nothing
        // changes them.
        let _gate = self.gate.write();
        self.write_everything(&mut writer, true)
    }

    /// Takes the changes of a transaction; `crowd` says how much in its groups waits for a
    /// checkpoint to be free for all.
    pub(crate) fn commit(
        &self,
        mut permit: Permit<'_>,
        joined: &[BufferRef],
        notes: &mut LogRecordHints,
        crowd: Crowd,
    ) {
        let sequence = self.open_sequence.load(Ordering::Acquire);
        let part = Part::collect(sequence, &self.cache, joined);
        let mut open = self.open.lock();
        open.add(part, notes);
        open.reserved -= std::mem::take(&mut permit.reserved);
        let is_due = crowd > Crowd::Few || open.bytes > self.shape.checkpoint_target();
        let due = is_due.then_some(open.sequence);
        drop(open);
        self.released.notify_all();
        if crowd == Crowd::TooMany {
            // Under the gate: the checkpoint that settles it is yet to be closed.
            self.is_crowded.store(true, Ordering::Release);
        }
        drop(permit);
        if let Some(sequence) = due {
            self.worker.want(sequence);
        }
        if self.cache.has_much_dirty() {
            self.worker.want_push();
        }
        self.cache.shrink();
    }

    /// Whether the checkpoint of a transaction that ends was written meanwhile, or never will be.
    fn outcome(&self, sequence: u64) -> Option<Answer> {
        if self.durable.load(Ordering::Acquire) >= sequence {
            return Some(Ok(()));
        }
        self.refusal().map(Err)
    }

    /// Why nothing becomes durable any more, if so.
    fn refusal(&self) -> Option<Refusal> {
        self.poison.reason().map(Refusal::Poisoned)
    }

    /// The newest checkpoint that holds anything.
    fn newest(&self) -> u64 {
        let open = self.open.lock();
        if open.is_empty() { open.sequence - 1 } else { open.sequence }
    }

    /// Starts to make everything durable that was committed so far.
    pub(crate) fn force(&self) -> SyncTicket {
        let sequence = self.newest();
        let ticket = self.tickets.draw(sequence, || self.outcome(sequence));
        self.worker.want(sequence);
        ticket
    }

    /// As [`force`](Self::force), but a ticket of a volume that has become read-only, or was closed,
    /// is refused even if nothing waits to be made durable.
    pub(crate) fn force_or_refuse(&self) -> SyncTicket {
        self.refusal().map_or_else(|| self.force(), |reason| self.refused(reason))
    }

    /// Has the thread of the journal write back what `files` has, whenever it is asked to. There is
    /// one of these.
    pub(crate) fn set_files(&self, files: impl FnOnce() -> Weak<dyn WriteBack>) {
        self.files.get_or_init(files);
    }

    /// Asks for the write-back of files.
    pub(crate) fn want_write_back(&self) {
        self.worker.want_write_back();
    }

    /// A ticket for data that is yet to be written back, and the side of it that gets a checkpoint.
    pub(crate) fn draw_unsequenced(&self) -> (SyncTicket, UnsequencedTicket) {
        self.tickets.draw_unsequenced(|| self.refusal().map(Err))
    }

    /// A ticket that is refused.
    pub(crate) fn refused(&self, reason: Refusal) -> SyncTicket {
        self.tickets.draw(0, || Some(Err(reason)))
    }

    /// Writes files back, if their owner is there.
    pub(super) fn write_back_files(&self) {
        let Some(files) = self.files.get().and_then(Weak::upgrade) else { return };
        if self.failing(|| Ok(())).is_err() {
            // All tickets that wait were answered.
            return;
        }
        let kept = files.write_back();
        if !kept.is_empty() {
            let sequence = self.newest();
            self.tickets.set_checkpoint(&kept, sequence, || self.outcome(sequence));
            self.worker.want(sequence);
        }
    }

    /// Makes everything durable that was committed so far. One of the threads that wait does the
    /// work for all of them.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let sequence = self.newest();
        while self.durable.load(Ordering::Acquire) < sequence {
            // The writer of the journal may wait for bios that this thread holds back.
            flush_plugs();
            let mut writer = self.writer.lock();
            if self.durable.load(Ordering::Acquire) < sequence {
                self.write_checkpoint(&mut writer)?;
            }
        }
        // Changes written before a failure are durable, but callers should not go on.
        self.poison.check()
    }

    /// Poisons the volume as soon as one of these writes of file data fails, or now if one did.
    pub(crate) fn watch(&self, writes: &Batch) {
        writes.on_first_error(&self.on_error);
    }

    /// Waits for these writes of file data before the open checkpoint is written.
    pub(crate) fn add_data(&self, writes: &Batch) {
        self.watch(writes);
        self.open.lock().add_data(writes.clone());
    }

    /// Refuses every further change and answers all tickets that wait.
    pub(super) fn fail(&self, error: &Error) {
        self.poison(&format!("writing failed: {}", chain(error)));
    }

    /// Refuses every further change and answers all tickets that wait.
    pub(crate) fn poison(&self, reason: &str) {
        self.poison.set(reason);
        if let Some(reason) = self.refusal() {
            self.tickets.refuse_all(&reason);
        }
        // A transaction about to wait for space has seen the reason, or waits by now.
        drop(self.open.lock());
        self.released.notify_all();
    }

    /// Sends old buffers to their places, so that the tail can move before a transaction waits for
    /// it: the buffers that pin records a third of the journal behind its head. A buffer that is
    /// logged again and again, as a block of a large directory, pins only new records, and stays.
    pub(super) fn push_in_background(&self, writer: &mut Writer) -> Result<(), Error> {
        let used = self.shape.distance(writer.tail, writer.position);
        let kept = self.shape.bytes() / 3;
        let end = if self.cache.has_much_dirty() {
            Lsn::NULL
        } else if used > kept {
            self.shape.advance(writer.tail, used - kept)
        } else {
            return Ok(());
        };
        self.failing(|| self.push(writer, end).map(drop))
    }

    /// Writes everything to its place, and a record that says that nothing is to be replayed.
    /// `counters` are those of the superblock then. Nothing can be changed afterwards.
    pub(crate) fn close(
        &self,
        counters: impl FnOnce() -> Result<Counters, Error>,
    ) -> Result<(), Error> {
        self.worker.stop();
        // What tickets wait for that the thread was still to do.
        self.write_back_files();
        let mut writer = self.writer.lock();
        let gate = self.gate.write();
        self.write_clean(&mut writer, counters)?;
        // Transactions that wait for the gate see it; answers are given without any lock.
        self.poison.set("it was closed");
        drop((gate, writer));
        self.poison("it was closed");
        Ok(())
    }

    /// Waits until the callbacks of tickets have run that were answered before.
    pub(crate) fn drain_answers(&self) {
        self.tickets.answers.drain();
    }

    /// Does the same as [`close`](Self::close), but changes go on behind it. The thread of the caller has
    /// no transaction open.
    pub(crate) fn settle(
        &self,
        counters: impl FnOnce() -> Result<Counters, Error>,
    ) -> Result<(), Error> {
        flush_plugs();
        let mut writer = self.writer.lock();
        let _gate = self.gate.write();
        self.write_clean(&mut writer, counters)
    }

    /// Writes everything to its place, and says so if anything was logged since that was said. The caller
    /// holds the gate.
    fn write_clean(
        &self,
        writer: &mut Writer,
        counters: impl FnOnce() -> Result<Counters, Error>,
    ) -> Result<(), Error> {
        self.write_everything(writer, false)?;
        if writer.last_start.is_some() {
            self.failing(|| self.write_unmount(writer, &counters()?))?;
        }
        Ok(())
    }

    /// Ends the thread of the journal. Changes that are not durable by then are lost, and tickets
    /// that wait are answered.
    pub(crate) fn abandon(&self) {
        self.worker.stop();
        self.poison("it was dropped");
    }
}

/// Ends all changes when file data could not be written.
fn on_error(journal: Weak<Journal>) -> FirstErrorHandler {
    Arc::new(move |error| {
        if let Some(journal) = journal.upgrade() {
            journal.poison(&format!("data of a file could not be written: {}", chain(error)));
        }
    })
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.journal.open.lock().reserved -= self.reserved;
            self.journal.released.notify_all();
        }
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("reserved", &self.reserved).finish_non_exhaustive()
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("shape", &self.shape)
            .field("durable", &self.durable)
            .finish_non_exhaustive()
    }
}
