//! The copies of inodes that the journal has.

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{InodeCore, Timestamp};

use crate::disk::Disk;
use crate::file_id::FileId;
use crate::journal::{self, Span, Told};
use crate::progress::Progress;
use crate::trail::{End, Trail};

/// The last state of a number that the journal has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latest {
    pub(super) lsn: Lsn,
    pub(super) id: FileId,
    /// It is a removal.
    pub(super) is_end: bool,
    /// Last change of the inode.
    ctime: Timestamp,
}

impl Latest {
    /// Whether it is later than an inode in its place. In version 4 that does not say when it was written.
    pub(super) fn is_behind(&self, core: &InodeCore) -> bool {
        if core.version < 3 { self.ctime > core.ctime } else { self.lsn > core.lsn }
    }
}

/// The copies of inodes in the journal.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pub(super) trails: FxHashMap<FileId, Trail>,
    pub(super) latest: FxHashMap<InodeNumber, Latest>,
    pub(super) span: Option<Span>,
}

impl Copies {
    pub(super) fn read(disk: &Disk, progress: &mut Progress<'_>) -> Self {
        let mut copies = Self::default();
        let span = journal::read(disk, false, progress, |told| {
            let Told::Inode(number, copy) = told else { return };
            let is_end = copy.core.mode == 0;
            let id = if is_end {
                FileId::freed(&copy.core)
            } else {
                FileId { number, generation: copy.core.generation }
            };
            // They come in the order of time.
            let latest = Latest { lsn: copy.lsn, id, is_end, ctime: copy.core.ctime };
            copies.latest.insert(number, latest);
            let trail = copies.trails.entry(id).or_default();
            if is_end {
                let (lsn, time) = (copy.lsn, copy.core.ctime);
                trail.set_end(End { lsn, time, core: copy.core, literal: None });
            } else {
                trail.add(copy, |_| true);
            }
        });
        copies.span = span;
        copies
    }

    pub(super) fn latest(&self, number: InodeNumber) -> Option<Latest> {
        self.latest.get(&number).copied()
    }
}
