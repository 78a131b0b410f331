//! An open volume: device, sizes, buffers, groups and inodes.

mod awaited;
mod copies;
mod interrupted;
mod live;
mod load;
mod usage;

pub use crate::read_ahead::ReadAheadBytes;
pub use awaited::Awaited;
pub(crate) use copies::{Copies, CopiesState, mark_copies, write_copies};
pub(crate) use interrupted::{Interrupted, Switch, finish_interrupted, switch};
pub use live::LiveOptions;
pub use load::Load;
pub use usage::Usage;

use crate::busy::BusyExtents;
use crate::cache::{BufferAddress, BufferRef, Cache};
use crate::changes::Changes;
use crate::error::Error;
use crate::experiments::NearSearch;
use crate::format::{
    AllocRecord, BufferKind, Counters, HeightLimit, Superblock, TreeGeometry, TreeHeights, TreeKind,
};
use crate::geometry::Geometry;
use crate::group::{Group, GroupBase, GroupGuard, GroupSummary};
use crate::inode::{DirtyFiles, InodeGuard, InodeState, InodeTable, place};
use crate::log::{Journal, LogSpace, RecoveryReport};
use crate::poison::Poison;
use crate::rank;
use crate::space::{FreeSpace, Pool, Reservation};
use crate::units::{AgBlock, AgNumber, FsBlock, InodeNumber};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;
use undercroft_block::{BlockDevice, Reserved, Sector, read_exact_at};
use undercroft_locks::OrderedMutex;

/// Whether a volume may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Never.
    ReadOnly,
    /// A new image that no other program can see: changes skip the journal, the superblock comes
    /// last.
    Bulk,
    /// Through the journal: at any time the device holds all commits up to some point.
    Live,
}

/// An open volume. Shared by reference between threads.
#[derive(Debug)]
pub struct Volume {
    geometry: Arc<Geometry>,
    superblock: Superblock,
    heights: TreeHeights,
    trees: [TreeGeometry; 7],
    cache: Arc<Cache>,
    /// Only with live access.
    journal: Option<Arc<Journal>>,
    /// Bytes of the journal that transactions need.
    log_space: LogSpace,
    groups: Vec<Group>,
    /// Changed by every transaction, as are the lists below: not on the cache lines of fields that
    /// are only read.
    free_space: Arc<CachePadded<FreeSpace>>,
    near_search: Option<Box<dyn NearSearch>>,
    /// Groups from which space is given out.
    allocating_groups: u32,
    is_limited: bool,
    /// Blocks or inodes of some group are spared.
    sparing: AtomicBool,
    /// Number of the open checkpoint of the journal, 0 without one.
    open_checkpoint: Arc<AtomicU64>,
    inodes: InodeTable,
    files: DirtyFiles,
    access: Access,
    recovery: Option<RecoveryReport>,
    finished_in_memory: bool,
    poison: Arc<Poison>,
    changes: Changes,
    /// Lists for the next transactions, kept to save allocations.
    joined_lists: CachePadded<Mutex<Vec<Vec<BufferRef>>>>,
    /// What the next generation of inodes on a live volume differs by.
    generations: AtomicU64,
    /// Group of the next new directory (rotor).
    next_directory_group: AtomicU32,
    /// Of threads whose space waits for the journal.
    turn: OrderedMutex<(), { rank::TURN }>,
    moves: OrderedMutex<(), { rank::MOVES }>,
    /// The right to change the device, while the volume may be changed. Dropped last.
    reserved: Mutex<Option<Reserved>>,
}

impl Volume {
    /// As [`open`](Self::open), but the journal is left alone: a volume that was not unmounted is
    /// seen as the last write-back left it, which need not be consistent.
    ///
    /// # Errors
    /// No XFS superblock, features that this version does not know, or the device failed.
    pub fn open_unreplayed(device: Arc<dyn BlockDevice>) -> Result<Self, Error> {
        let start = Instant::now();
        let superblock = read_superblock(&device)?;
        let volume = Self::new(device, superblock, Access::ReadOnly);
        volume.cache.ahead().speed().count(start.elapsed());
        Ok(volume)
    }

    /// What replaying the journal did when the volume was opened, if there was something to replay.
    #[must_use]
    pub const fn recovery(&self) -> Option<&RecoveryReport> {
        self.recovery.as_ref()
    }

    /// Whether the journal on the disk still holds the records replayed.
    pub(crate) fn is_replayed_in_memory(&self) -> bool {
        self.recovery.is_some() && self.access == Access::ReadOnly
    }

    /// Records the result of the replay of the journal.
    pub(crate) fn set_recovery(&mut self, report: Option<RecoveryReport>) {
        self.recovery = report;
    }

    /// Whether a change of the superblocks that was cut is finished in memory alone.
    pub(crate) const fn is_finished_in_memory(&self) -> bool {
        self.finished_in_memory
    }

    /// Records that one is.
    pub(crate) const fn set_finished_in_memory(&mut self) {
        self.finished_in_memory = true;
    }

    /// Lets the volume be changed past its journal.
    pub(crate) fn set_bulk(&mut self) {
        self.access = Access::Bulk;
    }

    /// A volume over a device whose structures are yet to be written.
    pub(crate) fn create(device: Arc<dyn BlockDevice>, superblock: Superblock) -> Self {
        Self::new(device, superblock, Access::Bulk)
    }

    pub(crate) fn new(
        device: Arc<dyn BlockDevice>,
        superblock: Superblock,
        access: Access,
    ) -> Self {
        rank::name();
        let geometry = Arc::new(superblock.geometry());
        let groups = (0..geometry.ag_count).map(|_| Group::default()).collect();
        let free_space = Arc::new(FreeSpace::new(geometry.ag_count).into());
        let inodes = InodeTable::new(&geometry);
        let allocating_groups = geometry.ag_count;
        Self {
            heights: TreeHeights::new(&geometry),
            trees: TreeKind::ALL.map(|tree| tree_geometry(tree, &geometry)),
            cache: Arc::new(Cache::new(device, Arc::clone(&geometry))),
            journal: None,
            log_space: LogSpace::default(),
            geometry,
            superblock,
            groups,
            free_space,
            near_search: None,
            allocating_groups,
            is_limited: false,
            sparing: AtomicBool::new(false),
            open_checkpoint: Arc::default(),
            inodes,
            files: DirtyFiles::new(LiveOptions::default().dirty_bytes),
            access,
            recovery: None,
            finished_in_memory: false,
            poison: Arc::default(),
            changes: Changes::default(),
            joined_lists: CachePadded::default(),
            generations: AtomicU64::new(0),
            next_directory_group: AtomicU32::new(0),
            turn: OrderedMutex::default(),
            moves: OrderedMutex::default(),
            reserved: Mutex::default(),
        }
    }

    /// Keeps the right to change the device, until [`release`](Self::release) or the end.
    pub(crate) fn hold(&mut self, device: Reserved) {
        *self.reserved.get_mut() = Some(device);
    }

    /// Lets others change the device, as this volume does not any more.
    pub(crate) fn release(&self) {
        *self.reserved.lock() = None;
    }

    /// Sizes.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The superblock as it was when the volume was opened.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Whether the volume counted the use of quotas when it was opened. Once it is open for changes
    /// it does not any more: a kernel counts anew when it mounts the volume with quotas.
    #[must_use]
    pub fn counted_quotas(&self) -> bool {
        // Accounting, enforcement and whether the counts were checked: of users, groups, projects.
        self.superblock.quota_flags & 0x7ff != 0
    }

    /// Greatest heights of the trees.
    #[must_use]
    pub fn heights(&self) -> &TreeHeights {
        &self.heights
    }

    /// Shape of the blocks of a tree.
    #[must_use]
    pub fn tree_geometry(&self, tree: TreeKind) -> &TreeGeometry {
        &self.trees[tree as usize]
    }

    /// Writes all changed metadata to the device and waits for it; refused once something failed.
    pub(crate) fn write_back(&self) -> Result<(), Error> {
        self.check_writable()?;
        debug_assert!(!self.free_space.has_rooms(), "blocks would belong to nobody");
        self.cache.write_back_all()
    }

    /// Generation of the inode `number` of a new chunk. In an image that is made it depends on
    /// nothing but the volume and the inode, so that images are reproducible; on a live volume each
    /// is another, so that number and generation together never come again.
    pub(crate) fn generation(&self, number: InodeNumber) -> u32 {
        let (high, low) = self.geometry.uuid.as_u64_pair();
        let count =
            if self.is_live() { self.generations.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let mixed =
            (high ^ low.rotate_left(32)).wrapping_add(number.0.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (crate::bytes::mix64(mixed ^ crate::bytes::mix64(count)) >> 32) as u32
    }

    /// The device of the volume. Of one whose journal was replayed in memory it has those changes.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        self.cache.device()
    }

    /// Metadata buffers.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Adds all groups to the count of free space, if that was not done yet.
    pub(crate) fn count_free_space(&self) -> Result<(), Error> {
        if !self.free_space.is_complete() {
            // Reading the headers of a group adds it to the count.
            for ag in (0..self.geometry.ag_count).map(AgNumber) {
                self.lock_group(ag, true)?;
            }
            self.free_space.set_complete();
        }
        Ok(())
    }

    /// Takes blocks out of the count of free space for a transaction to come, which
    /// [adopts](Transaction::adopt) them.
    pub(crate) fn reserve_ahead(&self, blocks: u64) -> Result<Reservation, Error> {
        self.check_writable()?;
        self.count_free_space()?;
        let no_space = || Error::NoSpace { needed: blocks, block_size: self.geometry.block_size() };
        Reservation::of(&self.free_space, blocks).ok_or_else(no_space)
    }

    /// Bytes of the journal that transactions need.
    pub(crate) const fn log_space(&self) -> &LogSpace {
        &self.log_space
    }

    /// Bytes of the journal that the longest chain of transactions has which a kernel makes of one
    /// operation: what [`begin`](Self::begin) asks for.
    pub(crate) const fn longest_log_bytes(&self) -> usize {
        self.log_space.longest
    }

    /// Bytes of the journal that a transaction may have at most.
    #[must_use]
    pub fn log_limit(&self) -> usize {
        self.journal.as_ref().map_or(usize::MAX, |journal| journal.limit())
    }

    /// Whether changes go through the journal.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.journal.is_some()
    }

    /// Whether nothing can be changed, now or ever.
    pub(crate) fn is_read_only(&self) -> bool {
        self.access == Access::ReadOnly || self.poison.is_set()
    }

    /// The files with something in memory.
    pub(crate) fn files(&self) -> &DirtyFiles {
        &self.files
    }

    /// Bytes of files that are newer in memory than on the device.
    #[must_use]
    pub fn dirty_bytes(&self) -> u64 {
        self.files.bytes()
    }

    pub(crate) fn journal(&self) -> Option<&Arc<Journal>> {
        self.journal.as_ref()
    }

    /// The sums over the groups.
    ///
    /// # Errors
    /// A group's headers are damaged, or the device failed.
    pub(crate) fn counters(&self) -> Result<Counters, Error> {
        self.prefetch_headers();
        let mut sum = Counters::default();
        for ag in (0..self.geometry.ag_count).map(AgNumber) {
            // Waits, so there is a guard.
            let Some(mut guard) = self.lock_group(ag, true)? else { continue };
            let group = guard.state();
            sum.add(&group.agf, &group.agi);
        }
        Ok(sum)
    }

    /// Puts another search in the place of near mode, or near mode back. Nothing of it is stored.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn set_near_search(&mut self, search: Option<Box<dyn NearSearch>>) {
        self.near_search = search;
    }

    /// The search in the place of near mode.
    #[inline]
    pub(crate) fn near_search(&self) -> Option<&dyn NearSearch> {
        self.near_search.as_deref()
    }

    /// Gives no space out from block `start` of group `ag` on, where `free` blocks are free: what lies
    /// there will go.
    pub(crate) fn limit_allocation(&mut self, ag: AgNumber, start: AgBlock, free: u32) {
        self.is_limited = true;
        self.allocating_groups = ag.0 + 1;
        self.group(ag).busy.limit(start, free);
    }

    /// Whether there is a [limit](Self::limit_allocation).
    pub(crate) const fn has_allocation_limit(&self) -> bool {
        self.is_limited
    }

    /// Spares free blocks, or free inodes, of groups: they are not given out.
    pub(crate) fn set_sparing(&self) {
        self.sparing.store(true, Ordering::Release);
    }

    /// Whether something that is free is not given out.
    pub(crate) fn holds_back(&self) -> bool {
        self.is_limited || self.sparing.load(Ordering::Acquire)
    }

    /// Groups from which space is given out, from the first on.
    #[inline]
    pub(crate) const fn allocating_groups(&self) -> u32 {
        self.allocating_groups
    }

    /// The count of free space.
    pub(crate) fn free_space(&self) -> &FreeSpace {
        &self.free_space
    }

    /// Blocks that a transaction could reserve now. Groups that were not used yet do not count
    /// before the first transaction.
    #[must_use]
    pub fn available_blocks(&self) -> u64 {
        self.free_space.available()
    }

    /// The state that the volume keeps of a group.
    pub(crate) fn group(&self, ag: AgNumber) -> &Group {
        &self.groups[ag.0 as usize]
    }

    /// Figures of a group that can be read without its lock.
    #[must_use]
    pub fn group_summary(&self, ag: AgNumber) -> &GroupSummary {
        &self.group(ag).summary
    }

    /// The checkpoint of the journal that collects the changes of now; `None` on a volume whose
    /// changes skip the journal. Extents that it frees stay busy until it is durable.
    #[must_use]
    pub fn open_checkpoint(&self) -> Option<u64> {
        Some(self.open_checkpoint.load(Ordering::Acquire)).filter(|number| *number > 0)
    }

    /// Forbids overwriting blocks in use before the transaction under way is durable: a crash would
    /// bring back their present mapping.
    pub(crate) fn protect(&self, busy: &BusyExtents, range: AllocRecord) {
        if let Some(checkpoint) = self.open_checkpoint() {
            busy.insert_remapped(range, checkpoint);
        }
    }

    /// Says that a checkpoint of this number is open on a volume without a journal: freed extents
    /// stay busy, for a replay of another allocator's work on a journaled one.
    #[doc(hidden)]
    pub fn set_open_checkpoint(&self, number: NonZeroU64) {
        self.open_checkpoint.store(number.get(), Ordering::Release);
    }

    /// Fails if the volume must not be written.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.access == Access::ReadOnly {
            return Err(Error::ReadOnly("it was opened for reading".into()));
        }
        self.check_poison()
    }

    /// Fails if something failed before behind which nothing can be relied upon.
    pub(crate) fn check_poison(&self) -> Result<(), Error> {
        self.poison.check()
    }

    /// Changes under way, which the closing of the volume waits for.
    pub(crate) const fn changes(&self) -> &Changes {
        &self.changes
    }

    /// How much file data was read ahead of its readers since the volume was opened.
    #[must_use]
    pub fn read_ahead_bytes(&self) -> ReadAheadBytes {
        self.cache.ahead().files().bytes()
    }

    /// How the volume may be changed.
    pub(crate) const fn access(&self) -> Access {
        self.access
    }

    /// Refuses every further change.
    pub(crate) fn poison(&self, reason: &str) {
        match &self.journal {
            Some(journal) => journal.poison(reason),
            None => self.poison.set(reason),
        }
    }

    /// The shared state under all groups.
    pub(crate) fn group_base(&self) -> GroupBase<'_> {
        let Self { cache, geometry, heights, free_space, .. } = self;
        GroupBase { cache, geometry, heights, free_space }
    }

    /// Reads a header sector of a group.
    pub(crate) fn header(
        &self,
        ag: AgNumber,
        index: u32,
        kind: BufferKind,
    ) -> Result<BufferRef, Error> {
        self.group_base().header(ag, index, kind)
    }

    /// Begins to read the headers of all groups, and the root directory's inode.
    pub(crate) fn prefetch_headers(&self) {
        self.group_base().prefetch_headers((0..self.geometry.ag_count).map(AgNumber));
        self.prefetch_inodes([self.geometry.root_inode]);
    }

    /// Begins to read the inodes of these numbers that are not in memory. Numbers that no inode
    /// can have are left out.
    pub fn prefetch_inodes(&self, numbers: impl IntoIterator<Item = InodeNumber>) {
        let absent = |number: &InodeNumber| {
            self.geometry.valid_inode(*number) && !self.inodes.knows(*number)
        };
        let places = numbers.into_iter().filter(absent);
        self.cache.prefetch(places.map(|number| place(&self.geometry, number).0));
    }

    /// Locks a group, reading its headers at first use; `None` if another thread holds it and the
    /// caller does not wait.
    pub(crate) fn lock_group(&self, ag: AgNumber, wait: bool) -> Result<Option<GroupGuard>, Error> {
        GroupGuard::lock(&self.group_base(), self.group(ag), ag, wait)
    }

    /// Free blocks that only the trees of the groups may take, as they grow.
    ///
    /// # Errors
    /// A group's headers are damaged, or the device failed.
    pub fn reserved_blocks(&self) -> Result<u64, Error> {
        let mut blocks = 0;
        for ag in (0..self.geometry().ag_count).map(AgNumber) {
            // Waits, so there is a guard.
            let Some(mut guard) = self.lock_group(ag, true)? else { continue };
            let group = guard.state();
            blocks += u64::from(group.reserved.outstanding(&group.agf, &group.agi, Pool::Ordinary));
        }
        Ok(blocks)
    }

    /// Inodes in memory.
    pub(crate) const fn inodes(&self) -> &InodeTable {
        &self.inodes
    }

    /// Makes a new inode known; its number must not be in use.
    pub(crate) fn insert_inode(&self, inode: InodeState) -> InodeGuard {
        let number = inode.number;
        // Locked before another thread can find it.
        let guard = InodeGuard::of_new(inode);
        self.inodes.insert(number, &guard.inode());
        guard
    }

    /// Lets an inode go from memory, unless another thread has it: for a builder of files, which does
    /// not come back to them. All of its changes must be committed; others would be lost.
    pub fn release_inode(&self, inode: InodeGuard) {
        let number = inode.number;
        drop(inode);
        self.inodes.release(number);
    }

    /// Forgets an inode that was freed.
    pub(crate) fn drop_inode(&self, number: InodeNumber) {
        self.inodes.remove(number);
    }

    /// Waits until no other thread waits for space that waits for the journal.
    pub(crate) fn take_turn(&self) -> undercroft_locks::MutexGuard<'_, (), { rank::TURN }> {
        self.turn.lock()
    }

    /// Serializes moves between directories: while one goes on, no directory changes its parent.
    pub(crate) fn lock_moves(&self) -> undercroft_locks::MutexGuard<'_, (), { rank::MOVES }> {
        self.moves.lock()
    }

    /// Group in which the next directory goes, turning over all groups
    /// (docs/algorithms/choice-of-group.md#modes).
    pub(crate) fn next_directory_group(&self) -> AgNumber {
        let next = self.next_directory_group.fetch_add(1, Ordering::Relaxed);
        AgNumber(next % self.allocating_groups)
    }

    /// Address of `len` blocks of a group from `block`.
    #[must_use]
    pub fn address(&self, ag: AgNumber, block: AgBlock, len: u32) -> BufferAddress {
        let sector = self.geometry.ag_sector(ag, block);
        BufferAddress::contiguous(sector, len * self.geometry.sectors_per_block())
    }

    /// Address of `len` blocks from `block` of the volume.
    #[must_use]
    pub fn block_address(&self, block: FsBlock, len: u32) -> BufferAddress {
        let (ag, block) = self.geometry.split_block(block);
        self.address(ag, block, len)
    }
}

/// Reads and checks the superblock of the file system that starts at sector 0.
pub(crate) fn read_superblock(device: &Arc<dyn BlockDevice>) -> Result<Superblock, Error> {
    // The largest sector there is; smaller ones only need the front.
    let capacity = device.capacity().to_bytes().unwrap_or(u64::MAX);
    let mut bytes = vec![0; 32768.min(capacity) as usize / 512 * 512];
    read_exact_at(device.as_ref(), Sector(0), &mut bytes)?;
    let superblock = Superblock::decode(&bytes)?;
    superblock.check_primary(capacity)?;
    Ok(superblock)
}

impl Volume {
    pub(crate) fn take_joined_list(&self) -> Vec<BufferRef> {
        // A new list costs less than to wait for one.
        self.joined_lists.try_lock().and_then(|mut lists| lists.pop()).unwrap_or_default()
    }

    pub(crate) fn give_joined_list(&self, mut list: Vec<BufferRef>) {
        list.clear();
        if let Some(mut lists) = self.joined_lists.try_lock() {
            lists.push(list);
        }
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Some(journal) = &self.journal {
            journal.abandon();
        }
    }
}

/// Shape of a tree on a volume; limits of heights: docs/format/btrees.md#heights.
fn tree_geometry(tree: TreeKind, geometry: &Geometry) -> TreeGeometry {
    let ag_blocks = u64::from(geometry.ag_blocks);
    let limit = match tree {
        TreeKind::Bnobt | TreeKind::Cntbt => HeightLimit::Records(ag_blocks.div_ceil(2)),
        TreeKind::Inobt | TreeKind::Finobt => {
            let bits = geometry.ag_block_log + geometry.inodes_per_block_log();
            HeightLimit::Records((1 << bits) / 64)
        }
        TreeKind::Rmapbt if geometry.features.reflink() => HeightLimit::Blocks(ag_blocks),
        TreeKind::Rmapbt | TreeKind::Refcountbt => HeightLimit::Records(ag_blocks),
        TreeKind::Bmbt => HeightLimit::Mappings { count: (1 << 48) - 1, root_entries: 2 },
    };
    let (crc, sparse) = (geometry.features.crc, geometry.features.sparse_inodes());
    TreeGeometry::new(tree, geometry.block_size(), crc, sparse, limit)
}
