//! Removed files: found, named, and judged by who had their blocks since.

mod clones;
mod evidence;
mod file;
mod judge;
mod literal;
mod passing;
mod paths;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use undercroft_xfs_format::InodeCore;
use undercroft_xfs_format::units::{InodeNumber, Lsn};

use crate::disk::Disk;
use crate::error::RecoverError;
use crate::file_id::FileId;
use crate::found::FoundFile;
use crate::journal::{Span, Told};
use crate::progress::{Progress, Step};
use evidence::Evidence;

/// Seconds after which a kernel has written what a program wrote: it begins after thirty.
const WRITTEN_AFTER: i64 = 120;

/// The removed files of a volume.
#[derive(Debug)]
pub struct Removed {
    /// In the order of their paths; files without any come last.
    pub files: Arc<[FoundFile]>,
    /// The part of time that the journal covers, if it holds anything.
    pub journal: Option<Span>,
    /// Inodes that could not be read, or are damaged.
    pub unreadable_inodes: u64,
    /// Sectors of free space that could not be read.
    pub unreadable_sectors: u64,
}

impl Removed {
    /// Looks for removed files: in all inodes that the trees know, in the journal, and in free space.
    /// Nothing is written.
    ///
    /// `report` is told the step, and how many bytes of how many were read in it; 0 of 0 where the
    /// whole is not known.
    ///
    /// # Errors
    /// The trees that say what is in use are damaged, or the device failed at them.
    pub fn find(disk: &Disk, report: &mut dyn FnMut(Step, u64, u64)) -> Result<Self, RecoverError> {
        Self::find_before(disk, &mut (), report)
    }

    /// As [`find`](Self::find); `witness` sees what is read on the way.
    pub(crate) fn find_before(
        disk: &Disk,
        witness: &mut dyn Witness,
        report: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<Self, RecoverError> {
        let mut progress = Progress::new(report);
        let evidence = Evidence::gather(disk, witness, &mut progress)?;
        let mut files = file::all(disk, &evidence);
        judge::judge(disk, &evidence, &mut files);
        paths::name(disk, &evidence, &mut files);
        files.sort_by(|one, other| one.order().cmp(&other.order()));
        Ok(Self {
            files: files.into(),
            journal: evidence.journal,
            unreadable_inodes: evidence.present.unreadable,
            unreadable_sectors: evidence.remains.unreadable_sectors(&disk.geometry),
        })
    }

    /// The file with this number and generation.
    #[must_use]
    pub fn file(&self, id: FileId) -> Option<&FoundFile> {
        self.files.iter().find(|file| file.id == id)
    }
}

/// Sees what the search reads, so that nobody else has to read it again.
pub(crate) trait Witness {
    /// An inode in use.
    fn present(&mut self, _core: &InodeCore) {}

    /// Something that the journal tells, in the order of time; after all inodes.
    fn told(&mut self, _told: &Told) {}

    /// Entries of directories in the journal are wanted on any volume.
    fn wants_entries(&self) -> bool {
        false
    }
}

impl Witness for () {}

/// The files of each number, in the order of the times at which they were last seen.
struct ByNumber {
    files: FxHashMap<InodeNumber, Vec<Seen>>,
}

/// A file, when it was last seen, and whether that was its removal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    lsn: u64,
    is_removal: bool,
    index: usize,
}

impl ByNumber {
    fn new(files: &[FoundFile]) -> Self {
        let mut by_number: FxHashMap<InodeNumber, Vec<Seen>> = FxHashMap::default();
        for (index, file) in files.iter().enumerate() {
            let (lsn, is_removal) = (file.last_seen, file.removed_at.is_some());
            let seen = Seen { lsn, is_removal, index };
            by_number.entry(file.id.number).or_default().push(seen);
        }
        by_number.values_mut().for_each(|files| files.sort_unstable());
        Self { files: by_number }
    }

    /// Whether any file of a number is known.
    fn has(&self, number: InodeNumber) -> bool {
        self.files.contains_key(&number)
    }

    /// The only file of a number that is known.
    fn only(&self, number: InodeNumber) -> Option<usize> {
        match self.files.get(&number)?.as_slice() {
            [seen] => Some(seen.index),
            _ => None,
        }
    }

    /// The first file of a number that was there, or was being removed, at a time.
    fn until(&self, number: InodeNumber, lsn: Lsn) -> Option<usize> {
        let mut files = self.files.get(&number)?.iter();
        files.find(|seen| seen.lsn >= lsn.0).map(|seen| seen.index)
    }

    /// The first file of a number that was there at a time or later.
    fn at(&self, number: InodeNumber, lsn: Lsn) -> Option<usize> {
        let mut files = self.files.get(&number)?.iter();
        // A removal and what it left are of one time.
        let is_later = |seen: &&Seen| seen.lsn > lsn.0 || (seen.lsn == lsn.0 && !seen.is_removal);
        files.find(is_later).map(|seen| seen.index)
    }
}
