//! Blocks that files in passing may have had.
//!
//! A kernel logs what a checkpoint ends with. Of a file that was made, written and removed within one,
//! the journal has a free inode, or nothing if another got the number; of a file that grew and was cut
//! off again it has the shorter one. But the record of the free space that was taken, and given back,
//! is logged. So a checkpoint may hide writes to the free extents that it logs, unless nothing that it
//! logs can have been written to within it.

use std::ops::Range;

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{FileType, ForkFormat, InodeCore, Timestamp};

use super::WRITTEN_AFTER;
use crate::disk::Disk;
use crate::file_id::FileId;
use crate::map;
use crate::trail::{InodeCopy, MapFork};

/// Goes along with the journal, checkpoint by checkpoint.
pub(super) struct Passing<'d> {
    disk: &'d Disk,
    /// The last copy of each inode so far.
    copies: FxHashMap<FileId, Copy>,
    /// The checkpoint under way.
    lsn: Lsn,
    may_hide: bool,
    free: Vec<Range<u64>>,
    /// The latest time of a change in a checkpoint before, and in this.
    before: Option<Timestamp>,
    latest: Option<Timestamp>,
    /// The latest change before the volume was last unmounted.
    unmounted: Option<Timestamp>,
    /// The last checkpoint of each extent.
    found: FxHashMap<Range<u64>, Lsn>,
}

/// Blocks that a file in passing may have had, and the checkpoint within which.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) blocks: Range<u64>,
    pub(super) lsn: Lsn,
}

/// What counts of a copy of an inode.
#[derive(Clone, Copy)]
struct Copy {
    kind: Option<FileType>,
    mtime: Timestamp,
    size: u64,
    extents: u64,
    /// It has a block for each of its bytes.
    is_full: bool,
}

impl<'d> Passing<'d> {
    pub(super) fn new(disk: &'d Disk) -> Self {
        Self {
            disk,
            copies: FxHashMap::default(),
            lsn: Lsn(0),
            may_hide: false,
            free: Vec::new(),
            before: None,
            latest: None,
            unmounted: None,
            found: FxHashMap::default(),
        }
    }

    /// Takes free extents of which records were logged.
    pub(super) fn free(&mut self, lsn: Lsn, extents: Vec<Range<u64>>) {
        self.reach(lsn);
        self.free.extend(extents);
    }

    /// The volume was unmounted, with all that programs had written.
    pub(super) fn unmount(&mut self, lsn: Lsn) {
        self.reach(lsn);
        self.unmounted = self.before;
    }

    /// Takes a copy of an inode. `kind_left` says by what is left of a file that was removed whether
    /// it was one of another kind.
    pub(super) fn inode(
        &mut self,
        number: InodeNumber,
        copy: &InodeCopy,
        kind_left: impl FnOnce() -> Option<FileType>,
    ) {
        self.reach(copy.lsn);
        let core = &copy.core;
        self.latest = self.latest.max(Some(core.ctime));
        let is_freed = core.mode == 0;
        let id = FileId { number, generation: core.generation };
        let id = if is_freed { FileId::freed(core) } else { id };
        let earlier = self.copies.get(&id).copied();
        // What was made within the checkpoint may have its number from a file in passing.
        let is_made = earlier.is_none() && !self.was_there(core);
        if is_freed || !copy.is_of_file() {
            self.may_hide |= is_made || self.may_hide_removed(core, earlier, kind_left);
            return;
        }
        let kind = core.file_type();
        let is_regular = kind == Some(FileType::Regular);
        let has_changed = self.is_new(core.mtime)
            || earlier.map_or_else(|| self.is_new(core.ctime), |old| old.mtime != core.mtime);
        self.may_hide |= is_made || (is_regular && has_changed);
        let is_full = is_regular && self.is_full(copy, earlier);
        let (size, extents) = (core.size, core.data_extents);
        self.copies.insert(id, Copy { kind, mtime: core.mtime, size, extents, is_full });
    }

    /// The blocks, and the checkpoints that may hide that somebody had them.
    pub(super) fn finish(mut self) -> Vec<Passage> {
        self.reach(Lsn(u64::MAX));
        self.found.into_iter().map(|(blocks, lsn)| Passage { blocks, lsn }).collect()
    }

    /// Ends the checkpoint under way if this is another.
    fn reach(&mut self, lsn: Lsn) {
        if self.lsn == lsn {
            return;
        }
        let free = std::mem::take(&mut self.free);
        if self.may_hide {
            let lsn = self.lsn;
            self.found.extend(free.into_iter().map(|blocks| (blocks, lsn)));
        }
        (self.lsn, self.may_hide) = (lsn, false);
        self.before = self.latest.take().or(self.before);
    }

    /// Whether a time is not before this checkpoint, as far as is known. The kernel's clock of files stands
    /// still for some milliseconds, so the last time before it may be one in it as well.
    fn is_new(&self, time: Timestamp) -> bool {
        self.before.is_none_or(|before| time >= before)
    }

    /// Whether an inode was in use when the checkpoint began.
    fn was_there(&self, core: &InodeCore) -> bool {
        self.disk.geometry.features.crc && !self.is_new(core.crtime)
    }

    /// Whether a file that was removed may have got blocks within the checkpoint before.
    fn may_hide_removed(
        &self,
        core: &InodeCore,
        earlier: Option<Copy>,
        kind_left: impl FnOnce() -> Option<FileType>,
    ) -> bool {
        let Some(earlier) = earlier else {
            let may_be_regular = || kind_left().is_none_or(|kind| kind == FileType::Regular);
            return (self.is_new(core.mtime) || !self.is_settled(core)) && may_be_regular();
        };
        let is_as_it_was = earlier.mtime == core.mtime && !self.is_new(core.mtime);
        let has_all_blocks = earlier.is_full || self.is_settled(core);
        earlier.kind == Some(FileType::Regular) && !(is_as_it_was && has_all_blocks)
    }

    /// Whether all that a program had written to a file that is removed had its blocks long before.
    fn is_settled(&self, core: &InodeCore) -> bool {
        self.unmounted.is_some_and(|time| time >= core.mtime)
            || core.ctime.seconds.saturating_sub(core.mtime.seconds) >= WRITTEN_AFTER
    }

    /// Whether a file has a block for each of its bytes.
    fn is_full(&self, copy: &InodeCopy, earlier: Option<Copy>) -> bool {
        let core = &copy.core;
        let Some(bytes) = &copy.data else {
            return earlier.is_some_and(|earlier| {
                earlier.is_full && earlier.size == core.size && earlier.extents == core.data_extents
            });
        };
        if core.data_format != ForkFormat::Extents {
            return false;
        }
        let map = map::of_fork(self.disk, core.number, MapFork::data(core, bytes));
        let end = self.disk.geometry.blocks_for(core.size);
        let mut extents = map.iter().flat_map(|map| &map.extents);
        extents
            .try_fold(0, |at, extent| (extent.offset.0 == at).then_some(extent.end().0))
            .is_some_and(|at| at >= end)
    }
}
