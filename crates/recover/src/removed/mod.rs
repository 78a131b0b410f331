//! Removed files: found, named, and judged by who had their blocks since.

mod evidence;
mod file;
mod judge;
mod paths;

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::{InodeNumber, Lsn};

use crate::disk::Disk;
use crate::error::RecoverError;
use crate::file_id::FileId;
use crate::journal::Span;
use crate::progress::{Progress, Step};
use evidence::Evidence;
pub(crate) use file::Content;
pub use file::{Loss, Path, RemovedFile, SizeFrom, State};

/// The removed files of a volume.
#[derive(Debug)]
pub struct Removed {
    /// In the order of their paths; files without any come last.
    pub files: Vec<RemovedFile>,
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
        let mut progress = Progress::new(report);
        let evidence = Evidence::gather(disk, &mut progress)?;
        let mut files = file::all(disk, &evidence);
        judge::judge(disk, &evidence, &mut files);
        paths::name(disk, &evidence, &mut files);
        files.sort_by(|one, other| one.order().cmp(&other.order()));
        Ok(Self {
            files,
            journal: evidence.journal,
            unreadable_inodes: evidence.present.unreadable,
            unreadable_sectors: evidence.remains.unreadable,
        })
    }

    /// The file with this number and generation.
    #[must_use]
    pub fn file(&self, id: FileId) -> Option<&RemovedFile> {
        self.files.iter().find(|file| file.id == id)
    }
}

/// The files of each number, in the order of the times at which they were last seen.
struct ByNumber {
    files: FxHashMap<InodeNumber, Vec<(u64, usize)>>,
}

impl ByNumber {
    fn new(files: &[RemovedFile]) -> Self {
        let mut by_number: FxHashMap<InodeNumber, Vec<(u64, usize)>> = FxHashMap::default();
        for (index, file) in files.iter().enumerate() {
            by_number.entry(file.id.number).or_default().push((file.last_seen, index));
        }
        by_number.values_mut().for_each(|files| files.sort_unstable());
        Self { files: by_number }
    }

    /// The newest file of a number.
    fn newest(&self, number: InodeNumber) -> Option<usize> {
        self.files.get(&number)?.last().map(|(_, index)| *index)
    }

    /// The file that had a number at a time; `None` if those that are known were gone by then.
    fn at(&self, number: InodeNumber, lsn: Lsn) -> Option<usize> {
        let files = self.files.get(&number)?;
        let first = files.partition_point(|(seen, _)| *seen < lsn.0);
        files.get(first).map(|(_, index)| *index)
    }
}
