//! An open volume: device, sizes, buffers, groups and inodes.

mod copies;
mod live;
mod usage;

pub(crate) use copies::write_copies;
pub use live::LiveOptions;
pub use usage::Usage;

use crate::ag::{BusyExtents, Group, GroupGuard, GroupSummary};
use crate::alloc::{Allocator, AllocatorOptions, FreeSpace, Pool, Reservation};
use crate::cache::{BufferAddress, Cache};
use crate::error::Error;
use crate::file::{DirtyFiles, free_orphans, store_accessed, trim_all};
use crate::format::{
    AllocRecord, BufferKind, Counters, HeightLimit, Superblock, TreeGeometry, TreeHeights, TreeKind,
};
use crate::geometry::Geometry;
use crate::inode::{Inode, InodeGuard, InodeState, InodeTable};
use crate::log::recovery::{LogArea, Place, RecoveryReport, recover_between};
use crate::log::{Journal, JournalParts, JournalStart, LogEnds, LogShape, LogState, SyncTicket};
use crate::mkfs::{LogSpace, Work};
use crate::poison::Poison;
use crate::rank;
use crate::trans::Transaction;
use crate::units::{AgNumber, FsBlock, InodeNumber, Lsn};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use undercroft_block::stack::Overlay;
use undercroft_block::{BlockDevice, Sector, read_exact_at};
use undercroft_locks::{OrderedMutex, with_key};

/// Whether a volume may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Never.
    ReadOnly,
    /// A new image that nobody else can see: changes skip the journal, the superblock comes last.
    Bulk,
    /// Through the journal: at any time the device holds what was committed up to some point.
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
    /// Changed by every transaction, as are the lists below: not on the cache lines of what is
    /// only read.
    free_space: Arc<CachePadded<FreeSpace>>,
    allocator: Allocator,
    /// Number of the open checkpoint of the journal, 0 without one.
    open_checkpoint: Arc<AtomicU64>,
    inodes: InodeTable,
    files: DirtyFiles,
    access: Access,
    recovery: Option<RecoveryReport>,
    poison: Arc<Poison>,
    /// Lists for the next transactions, kept to save allocations.
    joined_lists: CachePadded<Mutex<Vec<Vec<crate::cache::BufferRef>>>>,
    /// What the next generation of inodes on a live volume differs by.
    generations: AtomicU64,
    /// Group of the next new directory (rotor).
    next_directory_group: AtomicU32,
    moves: OrderedMutex<(), { rank::MOVES }>,
}

impl Volume {
    /// Opens the file system that starts at sector 0 of `device`, for reading.
    ///
    /// If it was not unmounted, its journal is replayed in memory: the volume is seen with its
    /// latest changes, and nothing is written. [`recovery`](Self::recovery) tells what was done.
    ///
    /// # Errors
    /// No XFS superblock, features that this version does not know, a journal that cannot be
    /// replayed ([`Error::Journal`]), or the device failed.
    pub fn open(device: Arc<dyn BlockDevice>) -> Result<Self, Error> {
        let superblock = read_superblock(&device)?;
        let geometry = superblock.geometry();
        let ends = LogArea::new(device.as_ref(), &geometry).map(|area| area.ends(&geometry));
        let Some(ends) = ends.transpose()?.filter(|ends| ends.state == LogState::Dirty) else {
            return Ok(Self::new(device, superblock, Access::ReadOnly));
        };
        let device: Arc<dyn BlockDevice> = Arc::new(Overlay::new(device));
        let recovery = recover_between(Place::Memory, &device, &superblock, &ends, &mut |_| {})?;
        let mut volume = Self::open_unreplayed(device)?;
        volume.recovery = recovery;
        Ok(volume)
    }

    /// As [`open`](Self::open), but the journal is left alone: a volume that was not unmounted is
    /// seen as the last write-back left it, which need not be consistent.
    ///
    /// # Errors
    /// No XFS superblock, features that this version does not know, or the device failed.
    pub fn open_unreplayed(device: Arc<dyn BlockDevice>) -> Result<Self, Error> {
        let superblock = read_superblock(&device)?;
        Ok(Self::new(device, superblock, Access::ReadOnly))
    }

    /// What replaying the journal did when the volume was opened, if there was something to replay.
    #[must_use]
    pub const fn recovery(&self) -> Option<&RecoveryReport> {
        self.recovery.as_ref()
    }

    /// Whether the journal on the disk still holds what was replayed.
    pub(crate) fn is_replayed_in_memory(&self) -> bool {
        self.recovery.is_some() && self.access == Access::ReadOnly
    }

    /// Opens a volume for changes through its journal, by one writer at a time. Of a file or disk a
    /// [`FileDevice`](undercroft_block::FileDevice) sees to that, in this program and in others, and
    /// the volume asks it again ahead of each write of the journal; of two volumes on one device in
    /// memory the caller does.
    ///
    /// Transactions are atomic, and durable once [`sync`](Self::sync) or a [ticket](Self::force)
    /// says so. [`close`](Self::close) leaves the volume as an unmount does; a volume that is
    /// dropped without it is left as a crash leaves it, to be replayed by whoever opens it next.
    ///
    /// If it was not unmounted, its journal is replayed first.
    ///
    /// # Errors
    /// As for [`open`](Self::open); or the volume has a feature that is known for reading only,
    /// which is named.
    pub fn open_live(device: Arc<dyn BlockDevice>, options: &LiveOptions) -> Result<Self, Error> {
        let mut volume = Self::open_unreplayed(Arc::clone(&device))?;
        live::check(&volume)?;
        let mut ends = crate::log::ends(&volume)?;
        let (place, superblock) = (Place::Device, &volume.superblock);
        if let Some(recovery) = recover_between(place, &device, superblock, &ends, &mut |_| {})? {
            // The superblock, and sizes, may have changed.
            volume = Self::open_unreplayed(device)?;
            volume.recovery = Some(recovery);
            ends = crate::log::ends(&volume)?;
        }
        let volume = volume.into_live(&ends, options)?;
        if volume.counted_quotas() {
            live::switch_quotas_off(&volume)?;
        }
        copies::complete(volume.cache.device().as_ref(), &volume.superblock)?;
        // Nobody has files open yet that whoever had the volume before left without a name.
        free_orphans(&volume)?;
        Ok(volume)
    }

    /// Starts the journal of a volume that has nothing to replay, and whose journal has these ends.
    pub(crate) fn into_live(
        mut self,
        ends: &LogEnds,
        options: &LiveOptions,
    ) -> Result<Self, Error> {
        if let Some(head) = ends.head
            && let Some(area) = LogArea::new(self.cache.device().as_ref(), &self.geometry)
        {
            // Ahead of the first flush of the journal.
            area.clear_stale(head, ends.tail, self.geometry.uuid)?;
        }
        // A journal that was never written begins with its first cycle.
        let position = ends.head.unwrap_or(Lsn::new(1, 0));
        // The record before it was not looked for.
        let start = JournalStart { position, previous_block: u32::MAX, pinned: None };
        self.start_journal(&start, options)?;
        Ok(self)
    }

    /// Opens a volume on which everything was replayed but what intents promise, so that this can be
    /// done. Recovery starts at `pinned`, if anywhere, until [`unpin_log`](Self::unpin_log).
    pub(crate) fn open_replayed(
        device: &Arc<dyn BlockDevice>,
        ends: &LogEnds,
        pinned: Option<Lsn>,
        place: Place,
    ) -> Result<Self, Error> {
        let mut volume = Self::open_unreplayed(Arc::clone(device))?;
        if place == Place::Device {
            live::check(&volume)?;
        }
        let position = ends.head.unwrap_or(Lsn::new(1, 0));
        let (previous_block, record_bytes) = ends.last.unwrap_or((u32::MAX, 0));
        let start = JournalStart { position, previous_block, pinned };
        volume.start_journal(&start, &LiveOptions { record_bytes, ..LiveOptions::default() })?;
        Ok(volume)
    }

    /// What was promised in the journal before it was opened is done and durable.
    pub(crate) fn unpin_log(&self) {
        self.journal.iter().for_each(|journal| journal.unpin());
    }

    /// Bytes of the journal that the next transaction can have at once.
    pub(crate) fn log_room(&self) -> usize {
        self.journal.as_ref().map_or(usize::MAX, |journal| journal.room_now())
    }

    fn start_journal(&mut self, start: &JournalStart, options: &LiveOptions) -> Result<(), Error> {
        let sector_bytes = 1 << self.superblock.log_sector_log;
        let parts = JournalParts {
            cache: Arc::clone(&self.cache),
            geometry: Arc::clone(&self.geometry),
            shape: LogShape::new(&self.geometry, sector_bytes, options.record_bytes),
            poison: Arc::clone(&self.poison),
            open_sequence: Arc::clone(&self.open_checkpoint),
            busy: self.groups.iter().map(|group| Arc::clone(&group.busy)).collect(),
            superblock: live::superblock_buffer(self)?,
        };
        self.log_space = LogSpace::new(&self.geometry, parts.shape.checkpoint_limit());
        self.journal = Some(Journal::start(parts, start)?);
        self.files = DirtyFiles::new(options.dirty_bytes);
        // Grows over the life of a volume, so no generation comes again.
        self.generations = AtomicU64::new(start.position.0);
        self.access = Access::Live;
        Ok(())
    }

    /// Opens a volume that nobody else uses for changes that skip the journal.
    ///
    /// The changes are on the device once [`mkfs::finish`](crate::mkfs::finish) has returned. An
    /// interruption before leaves a damaged volume: this is for copies, to prepare or to study
    /// them.
    ///
    /// # Errors
    /// As for [`open`](Self::open); or the journal is not empty.
    pub fn open_bulk(device: Arc<dyn BlockDevice>) -> Result<Self, Error> {
        let mut volume = Self::open_unreplayed(device)?;
        if crate::log::state(&volume)? != LogState::Clean {
            let what = "its journal is not empty; mount and unmount it first";
            return Err(Error::NotUsable(what.into()));
        }
        volume.access = Access::Bulk;
        Ok(volume)
    }

    /// A volume over a device whose structures are yet to be written.
    pub(crate) fn create(device: Arc<dyn BlockDevice>, superblock: Superblock) -> Self {
        Self::new(device, superblock, Access::Bulk)
    }

    fn new(device: Arc<dyn BlockDevice>, superblock: Superblock, access: Access) -> Self {
        rank::name();
        let geometry = Arc::new(superblock.geometry());
        let groups = (0..geometry.ag_count).map(|_| Group::default()).collect();
        let free_space = Arc::new(FreeSpace::new(geometry.ag_count).into());
        let inodes = InodeTable::new(&geometry);
        Self {
            heights: TreeHeights::new(&geometry),
            trees: ALL_TREES.map(|tree| tree_geometry(tree, &geometry)),
            cache: Arc::new(Cache::new(device, Arc::clone(&geometry))),
            journal: None,
            log_space: LogSpace::default(),
            geometry,
            superblock,
            groups,
            free_space,
            allocator: Allocator::default(),
            open_checkpoint: Arc::default(),
            inodes,
            files: DirtyFiles::new(LiveOptions::default().dirty_bytes),
            access,
            recovery: None,
            poison: Arc::default(),
            joined_lists: CachePadded::default(),
            generations: AtomicU64::new(0),
            next_directory_group: AtomicU32::new(0),
            moves: OrderedMutex::default(),
        }
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

    /// Metadata buffers.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Starts a transaction.
    ///
    /// On a live volume this may wait for the journal, which waits for the transactions that run.
    /// So a thread must neither hold the lock of an inode nor have another transaction open when it
    /// calls this: it begins first, then locks inodes, and gives up all of it before it begins the
    /// next one.
    ///
    /// # Errors
    /// The volume is read-only, or an earlier failure made it so.
    pub fn begin(&self) -> Result<Transaction<'_>, Error> {
        self.begin_sized(self.log_space.longest)
    }

    /// Starts a transaction for work whose share of the journal is known. It may take more, up to
    /// the longest chain of a kernel: there is room for one that does.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(crate) fn begin_for(&self, work: Work) -> Result<Transaction<'_>, Error> {
        self.begin_within(self.log_space.of(work), self.log_space.longest)
    }

    /// Starts a transaction that takes at most `log_bytes` bytes of the journal: for those that may
    /// need more than the largest operation of a kernel.
    ///
    /// # Errors
    /// As [`begin`](Self::begin); or the journal never has that much room.
    pub fn begin_sized(&self, log_bytes: usize) -> Result<Transaction<'_>, Error> {
        self.begin_within(log_bytes, log_bytes)
    }

    fn begin_within(&self, bytes: usize, most: usize) -> Result<Transaction<'_>, Error> {
        self.check_writable()?;
        self.count_free_space()?;
        let permit = self.journal.as_ref().map(|journal| journal.enter(bytes, most)).transpose()?;
        Ok(Transaction::new(self, permit))
    }

    fn count_free_space(&self) -> Result<(), Error> {
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

    /// Has the journal write files back when somebody waits for them: once the volume is where it
    /// stays.
    pub(crate) fn register(self: &Arc<Self>) {
        if let Some(journal) = &self.journal {
            journal.set_files(|| {
                let weak: Weak<Self> = Arc::downgrade(self);
                weak
            });
        }
    }

    pub(crate) fn journal(&self) -> Option<&Arc<Journal>> {
        self.journal.as_ref()
    }

    /// Makes everything durable that was committed so far, and waits for it. On a volume that is
    /// not live, changes are written out as they are.
    ///
    /// # Errors
    /// The device failed: nothing is known about what was not durable before, and the volume is
    /// read-only from then on.
    pub fn sync(&self) -> Result<(), Error> {
        match (&self.journal, self.access) {
            (Some(journal), _) => journal.sync(),
            (None, Access::ReadOnly) => Ok(()),
            (None, _) => {
                self.write_back()?;
                Ok(undercroft_block::flush(self.cache.device().as_ref())?)
            }
        }
    }

    /// Starts to make everything durable that was committed so far; the ticket tells when it is.
    /// Any number of tickets may wait: one write of the journal serves all.
    ///
    /// # Errors
    /// The volume is not live.
    pub fn force(&self) -> Result<SyncTicket, Error> {
        match &self.journal {
            Some(journal) => Ok(journal.force()),
            None => Err(Error::ReadOnly("it is not open for changes through its journal".into())),
        }
    }

    /// Puts these writes of file data before the next durable point: no checkpoint from now on,
    /// and no ticket drawn from now on, is complete before they are durable. One that fails makes
    /// the volume read-only as soon as it does.
    pub fn add_data(&self, writes: &undercroft_block::Batch) {
        if let Some(journal) = &self.journal {
            journal.add_data(writes);
        }
    }

    /// Leaves a live volume as an unmount does: data written back, files without a name freed,
    /// everything in its place, nothing to replay. It can be read afterwards, not changed. Tickets
    /// that wait are answered, and their callbacks have run, before it returns. No transaction may
    /// be open in this thread.
    ///
    /// # Errors
    /// Data of a file could not be written, then the volume is still open; the device failed. The
    /// journal holds what was durable before.
    pub fn close(&self) -> Result<(), Error> {
        let Some(journal) = &self.journal else { return Ok(()) };
        self.poison.check()?;
        self.files.write_back_all(self)?;
        trim_all(self)?;
        store_accessed(self)?;
        free_orphans(self)?;
        journal.close(|superblock| {
            self.counters()?.encode(superblock);
            Ok(())
        })
    }

    /// What the groups add up to.
    ///
    /// # Errors
    /// A group's headers are damaged, or the device failed.
    pub(crate) fn counters(&self) -> Result<Counters, Error> {
        let mut sum = Counters::default();
        for ag in (0..self.geometry.ag_count).map(AgNumber) {
            // Waits, so there is a guard.
            let Some(mut guard) = self.lock_group(ag, true)? else { continue };
            let group = guard.state();
            sum.add(&group.agf, &group.agi);
        }
        Ok(sum)
    }

    /// Chooses how the allocator works from now on. Nothing of it is stored.
    pub fn set_allocator(&mut self, options: AllocatorOptions) {
        self.allocator = Allocator::new(options);
    }

    pub(crate) fn allocator(&self) -> &Allocator {
        &self.allocator
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

    /// What the volume keeps of a group.
    pub(crate) fn group(&self, ag: AgNumber) -> &Group {
        &self.groups[ag.0 as usize]
    }

    /// Figures of a group that can be read without its lock.
    #[must_use]
    pub fn group_summary(&self, ag: AgNumber) -> &GroupSummary {
        &self.group(ag).summary
    }

    /// The checkpoint of the journal that collects the changes of now; `None` on a volume whose
    /// changes skip the journal. What it frees stays busy until it is durable.
    #[must_use]
    pub fn open_checkpoint(&self) -> Option<u64> {
        Some(self.open_checkpoint.load(Ordering::Acquire)).filter(|number| *number > 0)
    }

    /// Keeps everybody from overwriting blocks in use before the transaction that is under way is
    /// durable: a crash would bring back what they are now.
    pub(crate) fn protect(&self, busy: &BusyExtents, range: AllocRecord) {
        if let Some(checkpoint) = self.open_checkpoint() {
            busy.insert_remapped(range, checkpoint);
        }
    }

    /// Opens the next checkpoint.
    pub fn set_open_checkpoint(&self, number: NonZeroU64) {
        self.open_checkpoint.store(number.get(), Ordering::Release);
    }

    /// The checkpoints up to `number` are durable: what they freed can be used by everybody.
    pub fn settle_checkpoint(&self, number: u64) {
        for group in &self.groups {
            group.busy.settle(number, false);
        }
    }

    /// Fails if the volume must not be written.
    fn check_writable(&self) -> Result<(), Error> {
        if self.access == Access::ReadOnly {
            return Err(Error::ReadOnly("it was opened for reading".into()));
        }
        self.poison.check()
    }

    /// Refuses every further change.
    pub(crate) fn poison(&self, reason: &str) {
        match &self.journal {
            Some(journal) => journal.poison(reason),
            None => self.poison.set(reason),
        }
    }

    /// Locks a group, reading its headers at first use; `None` if another thread holds it and the
    /// caller does not wait.
    pub(crate) fn lock_group(&self, ag: AgNumber, wait: bool) -> Result<Option<GroupGuard>, Error> {
        GroupGuard::lock(self, &self.group(ag).lock, ag, wait)
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

    /// Locks an inode for change: for who fills a new image, or finishes what a journal promises,
    /// alone. Beside others, inodes are locked in the order of their numbers.
    ///
    /// # Errors
    /// The inode does not exist or is damaged.
    pub fn lock_inode(&self, number: InodeNumber) -> Result<InodeGuard, Error> {
        let inode = self.inode(number)?;
        Ok(with_key(number.0, || InodeGuard::at_once(&inode)))
    }

    /// As [`lock_inode`](Self::lock_inode), for operations beside others: in the order of numbers,
    /// which debug builds check.
    pub(crate) fn lock_inode_in_order(&self, number: InodeNumber) -> Result<InodeGuard, Error> {
        let inode = self.inode(number)?;
        Ok(with_key(number.0, || InodeGuard::new(&inode)))
    }

    /// An inode, read at first use.
    ///
    /// # Errors
    /// [`Error::Stale`] if the inode is not in use: [`Error::into_damage`] is for those who have its
    /// number from the volume. It is damaged; the device failed. Nobody looks whether blocks that
    /// hold a sound inode still are blocks of inodes: keep the inode, not its number, of what others
    /// may remove.
    pub fn inode(&self, number: InodeNumber) -> Result<Arc<Inode>, Error> {
        self.inodes.get_or_load(number, || InodeState::load(self, number))
    }

    /// As [`inode`](Self::inode), of a number from elsewhere, at whose place there may be anything.
    ///
    /// # Errors
    /// [`Error::Stale`] if no file has the number; the inode is damaged; the device failed.
    pub fn inode_in_use(&self, number: InodeNumber) -> Result<Arc<Inode>, Error> {
        if !self.is_inode_in_use(number)? {
            return Err(Error::Stale { inode: number });
        }
        self.inode(number)
    }

    /// Whether the group of an inode says that it is in use: of a number from elsewhere, at whose
    /// place there may be anything.
    ///
    /// # Errors
    /// A damaged structure; the device failed.
    pub(crate) fn is_inode_in_use(&self, number: InodeNumber) -> Result<bool, Error> {
        if !self.geometry.valid_inode(number) || self.inodes.knows(number) {
            return Ok(self.geometry.valid_inode(number));
        }
        Ok(crate::ag::is_inode_in_use(self, number, true)?.unwrap_or(false))
    }

    /// Makes a new inode known; its number must not be in use.
    pub(crate) fn insert_inode(&self, inode: InodeState) -> InodeGuard {
        let number = inode.number;
        // Locked before anybody can find it.
        let guard = InodeGuard::of_new(inode);
        self.inodes.insert(number, &guard.inode());
        guard
    }

    /// Forgets an inode that was freed.
    pub(crate) fn drop_inode(&self, number: InodeNumber) {
        self.inodes.remove(number);
    }

    /// Serializes moves between directories: while one goes on, no directory changes its parent.
    pub(crate) fn lock_moves(&self) -> undercroft_locks::MutexGuard<'_, (), { rank::MOVES }> {
        self.moves.lock()
    }

    /// Group in which the next directory goes, turning over all groups (algorithms reference,
    /// section 3.5).
    pub(crate) fn next_directory_group(&self) -> AgNumber {
        let next = self.next_directory_group.fetch_add(1, Ordering::Relaxed);
        AgNumber(next % self.geometry.ag_count)
    }

    /// Address of `len` blocks of a group from `block`.
    #[must_use]
    pub fn address(&self, ag: AgNumber, block: crate::units::AgBlock, len: u32) -> BufferAddress {
        let sector = self.geometry.ag_sector(ag, block);
        BufferAddress::contiguous(sector, len * self.geometry.sectors_per_block())
    }

    /// Address of `len` blocks from `block` of the volume.
    #[must_use]
    pub fn block_address(&self, block: FsBlock, len: u32) -> BufferAddress {
        let (ag, block) = self.geometry.split_block(block);
        self.address(ag, block, len)
    }

    pub(crate) fn take_joined_list(&self) -> Vec<crate::cache::BufferRef> {
        // A new list costs less than to wait for one.
        self.joined_lists.try_lock().and_then(|mut lists| lists.pop()).unwrap_or_default()
    }

    pub(crate) fn give_joined_list(&self, mut list: Vec<crate::cache::BufferRef>) {
        list.clear();
        if let Some(mut lists) = self.joined_lists.try_lock() {
            lists.push(list);
        }
    }

    /// Reads a header sector of a group.
    pub(crate) fn header(
        &self,
        ag: AgNumber,
        index: u32,
        kind: BufferKind,
    ) -> Result<crate::cache::BufferRef, Error> {
        let sectors = (self.geometry.sector_size() / 512) as u32;
        let sector = self.geometry.header_sector(ag, index);
        self.cache.read(&BufferAddress::contiguous(sector, sectors), kind)
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

impl Drop for Volume {
    fn drop(&mut self) {
        if let Some(journal) = &self.journal {
            journal.abandon();
        }
    }
}

/// All trees, in the order of their numbers.
const ALL_TREES: [TreeKind; 7] = [
    TreeKind::Bnobt,
    TreeKind::Cntbt,
    TreeKind::Inobt,
    TreeKind::Finobt,
    TreeKind::Rmapbt,
    TreeKind::Refcountbt,
    TreeKind::Bmbt,
];

/// Shape of a tree on a volume; limits of heights: format reference, section 4.6.
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
