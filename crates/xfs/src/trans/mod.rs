//! Transactions: the buffers and inodes that an operation joined, its changes, and their commit.
//!
//! A transaction collects the buffers that an operation edits and keeps the locks of the
//! allocation groups that it touched until it ends. Inodes are locked by the operation itself, in
//! ascending order before any group (docs/decisions/locks.md#order-of-locks), and handed to
//! [`Transaction::commit`].
//!
//! A commit follows one of two policies
//! (docs/decisions/transactions.md#one-engine-two-commit-policies). On a live volume the changed
//! buffers go into the open checkpoint of the journal; in bulk mode they go straight to the dirty
//! list, and the superblock is written last, when the volume is finished. A transaction that is
//! dropped after it changed something leaves the volume in memory in an unknown state: the volume
//! is poisoned and refuses everything from then on.

mod begin;
mod store;

use crate::busy::Crowd;
use crate::cache::{BufferAddress, BufferRef, EditGuard};
use crate::changes::Change;
use crate::error::{Error, chain};
use crate::format::{BufferKind, InodeCreateItem, IntentDone};
use crate::geometry::Geometry;
use crate::group::{GroupGuard, GroupState};
use crate::inode::InodeGuard;
use crate::log::{LogRecordHints, Permit, removals};
use crate::units::{AgBlock, AgNumber};
use crate::volume::Volume;
use smallvec::SmallVec;
use std::cell::OnceCell;
use undercroft_block::Batch;

/// An open transaction on a volume.
#[derive(Debug)]
pub struct Transaction<'v> {
    volume: &'v Volume,
    joined: Vec<BufferRef>,
    groups: SmallVec<[(AgNumber, Option<GroupGuard>); 2]>,
    /// Something was changed: dropping the transaction now poisons the volume.
    changed: bool,
    /// Blocks taken out of the volume's count of free space, for later steps.
    reserved: u64,
    /// Those of them that no step has claimed yet.
    unclaimed: u64,
    /// Space is so low that extents are taken as they come
    /// (docs/algorithms/choice-of-group.md#low-space).
    low_on_space: bool,
    space_waits: bool,
    /// On a live volume: leave to run.
    permit: Option<Permit<'v>>,
    /// The content for the journal besides buffers; stays empty on other volumes.
    notes: LogRecordHints,
    /// The first error that a step met behind the first change: why the volume is poisoned if the
    /// transaction is dropped then.
    failure: OnceCell<String>,
    /// Where it is a change of its own.
    _change: Option<Change<'v>>,
}

impl<'v> Transaction<'v> {
    pub(crate) fn new(
        volume: &'v Volume,
        permit: Option<Permit<'v>>,
        change: Option<Change<'v>>,
    ) -> Self {
        Self {
            volume,
            joined: volume.take_joined_list(),
            groups: SmallVec::new(),
            changed: false,
            reserved: 0,
            unclaimed: 0,
            low_on_space: false,
            space_waits: false,
            permit,
            notes: LogRecordHints::default(),
            failure: OnceCell::new(),
            _change: change,
        }
    }

    /// Whether the changes go through the journal.
    pub(crate) const fn is_live(&self) -> bool {
        self.permit.is_some()
    }

    /// Makes sure that `blocks` further blocks are free, before anything is changed: blocks that
    /// the steps of the operation [claim](Self::claim) come out of them first. Unused ones are
    /// given back at the end of the transaction.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if there are not as many. The transaction can go on.
    pub fn reserve(&mut self, blocks: u64) -> Result<(), Error> {
        if !self.volume.free_space().reserve(blocks) {
            let block_size = self.geometry().block_size();
            return Err(Error::NoSpace { needed: blocks, block_size });
        }
        self.reserved += blocks;
        self.unclaimed += blocks;
        Ok(())
    }

    /// Takes over blocks that the caller took out of the count of free space for it.
    pub(crate) fn adopt(&mut self, blocks: u64) {
        self.reserved += blocks;
        self.unclaimed += blocks;
    }

    /// Reserves what removing something may take for a while, of the blocks set aside for that if
    /// there are no others; whether there were as many. On a volume without even these, what needs
    /// none still works.
    pub fn reserve_for_removal(&mut self, blocks: u64) -> bool {
        let has_space = self.volume.free_space().reserve_set_aside(blocks);
        if has_space {
            self.reserved += blocks;
            self.unclaimed += blocks;
        }
        has_space
    }

    /// Sets `blocks` blocks aside for a step: of those reserved before, then of the volume's.
    ///
    /// # Errors
    /// As for [`reserve`](Self::reserve).
    pub fn claim(&mut self, blocks: u64) -> Result<(), Error> {
        if let Some(missing) = blocks.checked_sub(self.unclaimed) {
            self.reserve(missing)?;
        }
        self.unclaimed -= blocks;
        Ok(())
    }

    /// Ends a claim for blocks that were not needed: the next step can have them.
    pub fn unclaim(&mut self, blocks: u64) {
        self.unclaimed += blocks.min(self.reserved - self.unclaimed);
    }

    /// Runs `work` in a group that the transaction holds already, or that it can wait for.
    ///
    /// # Errors
    /// As [`with_group`](Self::with_group); [`Error::Busy`] if another thread holds the group and
    /// waiting could deadlock.
    pub fn in_group<T>(
        &mut self,
        ag: AgNumber,
        work: impl FnOnce(&mut Self, &mut GroupState) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with_group(ag, true, work)?
            .ok_or_else(|| Error::Busy(format!("allocation group {ag} is locked out of order")))
    }

    /// Locks these groups, before others are used in any order: an operation that knows which
    /// blocks it will free names their groups here.
    ///
    /// # Errors
    /// The headers of a group are damaged, or the device failed.
    pub fn lock_groups(&mut self, groups: impl IntoIterator<Item = AgNumber>) -> Result<(), Error> {
        let mut groups: SmallVec<[AgNumber; 8]> = groups.into_iter().collect();
        groups.sort_unstable();
        groups.dedup();
        for ag in groups {
            let locked = self.with_group(ag, true, |_, _| Ok(()))?;
            debug_assert!(locked.is_some(), "groups are named before any other is locked");
        }
        Ok(())
    }

    /// Says that inodes in memory are about to change: from here on a failure leaves the volume
    /// in an unknown state, as one behind the first change of a buffer does.
    pub fn begin_changes(&mut self) {
        self.changed = true;
    }

    /// Whether it went without space because that waits for the journal.
    pub(crate) fn space_waits(&self) -> bool {
        self.space_waits
    }

    pub(crate) fn set_space_waits(&mut self) {
        self.space_waits = true;
    }

    /// Whether an allocation of this transaction had to take any extent there was.
    pub(crate) fn is_low_on_space(&self) -> bool {
        self.low_on_space
    }

    pub(crate) fn set_low_on_space(&mut self) {
        self.low_on_space = true;
    }

    /// The volume.
    #[must_use]
    pub fn volume(&self) -> &'v Volume {
        self.volume
    }

    /// Sizes of the volume.
    #[must_use]
    pub fn geometry(&self) -> &'v Geometry {
        self.volume.geometry()
    }

    /// Reads and verifies a buffer.
    ///
    /// # Errors
    /// The device failed or the block is damaged.
    pub fn read(&self, address: &BufferAddress, kind: BufferKind) -> Result<BufferRef, Error> {
        self.heard(self.volume.cache().read(address, kind))
    }

    /// The result of a step. The reason of its failure is kept for the case that the transaction is
    /// dropped for it.
    fn heard<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if self.changed
            && let Err(error) = &result
        {
            self.failure.get_or_init(|| chain(error));
        }
        result
    }

    /// Opens a buffer for change. It joins the transaction.
    pub fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b> {
        let mut content = buffer.content();
        if !content.joined {
            content.joined = true;
            self.joined.push(BufferRef::clone(buffer));
            self.changed = true;
        }
        EditGuard(content)
    }

    /// A zeroed buffer for blocks that were just allocated; it belongs to the transaction.
    pub fn fresh(&mut self, address: BufferAddress, kind: BufferKind) -> BufferRef {
        if self.is_live() {
            if let Some(old) = self.volume.cache().peek(address.first()) {
                self.forget(&old);
            }
            address.parts().iter().for_each(|part| self.notes.reuse(*part));
        }
        let buffer = self.volume.cache().fresh(address, kind);
        let mut guard = self.edit(&buffer);
        if self.is_live() {
            // The content of the disk there is arbitrary: all of the buffer must be logged.
            let len = guard.len();
            guard.0.changes.mark(0..len);
        }
        drop(guard);
        buffer
    }

    /// Says that the clusters of these inodes, which are [fresh](Self::fresh), hold no more than
    /// what follows from the description of the chunk.
    pub(crate) fn create_inodes(&mut self, chunk: InodeCreateItem, clusters: &[BufferRef]) {
        if self.is_live() {
            clusters.iter().for_each(|cluster| self.edit(cluster).set_created());
            self.notes.create(chunk);
        }
    }

    /// Drops the buffer of blocks that are freed: it must not be written any more.
    pub fn forget(&mut self, buffer: &BufferRef) {
        if self.is_live() {
            // It stays part of the transaction: the journal needs its older images until this one
            // is durable.
            self.edit(buffer).0.log.freed = true;
            let removals = removals(buffer.address(), &buffer.content(), self.geometry());
            self.notes.remove(removals);
            buffer.address().parts().iter().for_each(|part| self.notes.free(*part));
            self.volume.cache().forget(buffer.sector());
            buffer.content().changes.clear();
            return;
        }
        self.volume.cache().forget(buffer.sector());
        let mut content = buffer.content();
        content.dirty = false;
        content.changes.clear();
        if std::mem::take(&mut content.joined) {
            drop(content);
            self.joined.retain(|joined| joined.sector() != buffer.sector());
        }
    }

    /// Drops the metadata buffers, each of `unit` blocks, of a freed extent of `len` blocks.
    /// Buffers that are not in memory are dropped as well: the journal may hold images of them.
    pub fn forget_blocks(&mut self, ag: AgNumber, start: AgBlock, len: u32, unit: u32) {
        for block in (start.0..start.0 + len).step_by(unit as usize) {
            let address = self.volume.address(ag, AgBlock(block), unit);
            if self.is_live() {
                self.changed = true;
                self.notes.free(address.parts()[0]);
            }
            if let Some(buffer) = self.volume.cache().peek(address.first()) {
                self.forget(&buffer);
            }
        }
    }

    /// Marks the transaction as doing the work of a kernel's intent.
    pub(crate) fn note_done(&mut self, done: &IntentDone) {
        if self.is_live() {
            self.notes.finish(done);
        }
    }

    /// Makes the transaction wait for writes of file data: it is not durable before they are. One
    /// that fails makes the volume read-only as soon as it does.
    pub fn add_data(&mut self, writes: &Batch) {
        if let Some(journal) = self.volume.journal().filter(|_| self.is_live()) {
            journal.watch(writes);
            self.notes.add_data(writes);
        }
    }

    /// Runs `work` with the lock of a group, which the transaction keeps to its end.
    ///
    /// Groups are locked in ascending order; one below the highest so far is only tried, and
    /// `None` is returned when another thread holds it. So is with `wait` false.
    ///
    /// # Errors
    /// The headers of the group are damaged, or `work` failed. Damage makes the volume read-only:
    /// what else is wrong in the group is unknown.
    pub fn with_group<T>(
        &mut self,
        ag: AgNumber,
        wait: bool,
        work: impl FnOnce(&mut Self, &mut GroupState) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let Some(mut guard) = self.take_group(ag, wait)? else { return Ok(None) };
        let result = work(self, guard.state());
        self.keep_group(ag, guard);
        let result = self.heard(result);
        if let Err(error) = &result
            && error.is_damage()
        {
            let what = format!("damage was found in allocation group {ag}: {}", chain(error));
            self.volume.poison(&what);
        }
        result.map(Some)
    }

    /// As [`with_group`](Self::with_group), for a group that passes `test`. One that does not is
    /// given up at once, unless the transaction held it before: a group that cannot help must not
    /// keep others waiting, nor forbid waiting for groups below it.
    ///
    /// # Errors
    /// As [`with_group`](Self::with_group).
    pub(crate) fn with_group_if<T>(
        &mut self,
        ag: AgNumber,
        wait: bool,
        test: impl FnOnce(&Self, &GroupState) -> bool,
        work: impl FnOnce(&mut Self, &mut GroupState) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let held = self.groups.len();
        let Some(mut guard) = self.take_group(ag, wait)? else { return Ok(None) };
        let passes = test(self, guard.state());
        if passes || self.groups.len() == held {
            self.keep_group(ag, guard);
        } else {
            self.groups.pop();
        }
        if passes { self.with_group(ag, wait, work) } else { Ok(None) }
    }

    /// Runs a search for space. If it finds nothing and changed nothing, the groups that it locked
    /// are given up, so that a weaker request can wait for any group again.
    ///
    /// # Errors
    /// Those of `search`.
    pub(crate) fn with_search<T>(
        &mut self,
        search: impl FnOnce(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        // Buffers changed in a group join the transaction, and none of a group that it did not hold
        // was joined before.
        let (held, joined) = (self.groups.len(), self.joined.len());
        let found = search(self)?;
        if found.is_none() && self.joined.len() == joined {
            self.groups.truncate(held);
        }
        Ok(found)
    }

    /// The guard of a group, to be [kept](Self::keep_group) when its turn is over; `None` if
    /// another thread has it and the transaction does not wait.
    fn take_group(&mut self, ag: AgNumber, wait: bool) -> Result<Option<GroupGuard>, Error> {
        if let Some((_, guard)) = self.groups.iter_mut().find(|(held, _)| *held == ag) {
            return Ok(Some(guard.take().expect("a group is not entered twice at a time")));
        }
        let in_order = self.groups.iter().all(|(held, _)| *held < ag);
        let guard = self.volume.lock_group(ag, wait && in_order)?;
        if guard.is_some() {
            self.groups.push((ag, None));
        }
        Ok(guard)
    }

    /// Keeps the lock of a group to the end. Its summary is updated here: any change of its trees
    /// can have taken blocks of its free list, and an estimate that is too high would send all
    /// requests to a group that refuses them.
    fn keep_group(&mut self, ag: AgNumber, mut guard: GroupGuard) {
        guard.state().publish(self.volume.geometry(), self.volume.heights());
        if let Some((_, slot)) = self.groups.iter_mut().find(|(held, _)| *held == ag) {
            *slot = Some(guard);
        }
    }

    /// Makes all changes of the transaction, and of these inodes, part of the volume.
    ///
    /// # Errors
    /// The cluster of an inode could not be read, or write-back failed.
    pub fn commit(mut self, inodes: &mut [&mut InodeGuard]) -> Result<(), Error> {
        for inode in inodes {
            let stored = inode.store(&mut self);
            self.heard(stored)?;
        }
        let (mut groups, mut crowd) = (std::mem::take(&mut self.groups), Crowd::Few);
        for guard in groups.iter_mut().filter_map(|(_, guard)| guard.as_mut()) {
            guard.state().store(self.volume.free_space(), |buffer| self.edit(buffer));
            crowd = crowd.max(guard.state().busy.crowd());
        }
        let joined = std::mem::take(&mut self.joined);
        self.changed = false;
        // Before any lock is given up: its next holder joins the same buffers.
        let journal = self.volume.journal().zip(self.permit.take());
        let is_live = journal.is_some();
        match journal {
            Some((journal, permit)) => journal.commit(permit, &joined, &mut self.notes, crowd),
            None => self.volume.cache().mark_dirty(&joined),
        }
        drop(groups);
        self.volume.give_joined_list(joined);
        if is_live { Ok(()) } else { self.volume.cache().balance() }
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // After a commit the groups have told how many were really used.
        self.volume.free_space().add(i64::try_from(self.reserved).unwrap_or(i64::MAX));
        if self.changed {
            let mut what = "a transaction failed after it had changed metadata".to_owned();
            if let Some(cause) = self.failure.get() {
                what = format!("{what}: {cause}");
            }
            self.volume.poison(&what);
        }
    }
}
