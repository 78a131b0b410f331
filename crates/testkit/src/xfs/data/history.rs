//! A random history of operations on the data of some files of a volume, beside the same files as
//! vectors of bytes.

use super::operation::{Bounds, Operation, pattern};
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::Xfsprogs;
use undercroft_judges::random::Random;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs;
use undercroft_xfs::ops::{self, CloneRange, MappedExtent, NewInode, Size};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, Volume};

/// A format: its name, what `mkfs.xfs` is told, and the block size.
pub struct Format {
    pub name: &'static str,
    pub arguments: &'static [&'static str],
    pub block_size: u64,
    pub reflink: bool,
}

const fn format(name: &'static str, arguments: &'static [&'static str], block_size: u64) -> Format {
    Format { name, arguments, block_size, reflink: true }
}

impl Format {
    /// Bytes of a volume that is soon full; `mkfs.xfs` makes no group of less than 16 MiB.
    pub fn small_volume(&self) -> u64 {
        let groups = if self.arguments.contains(&MANY_GROUPS) { 11 } else { 4 };
        (8192 * self.block_size).max(groups * (24 << 20))
    }
}

const MANY_GROUPS: &str = "agcount=11";

/// What operations on data depend on.
pub const FORMATS: [Format; 9] = [
    format("default", &[], 4096),
    format("no rmapbt", &["-m", "rmapbt=0"], 4096),
    Format { reflink: false, ..format("no reflink", &["-m", "reflink=0"], 4096) },
    Format {
        reflink: false,
        ..format(
            "plain",
            &["-m", "reflink=0,rmapbt=0,finobt=0,inobtcount=0", "-i", "nrext64=0,sparse=0"],
            4096,
        )
    },
    format("no nrext64", &["-i", "nrext64=0", "-d", MANY_GROUPS], 4096),
    format("1 KiB blocks", &["-b", "size=1024"], 1024),
    format("2 KiB blocks", &["-b", "size=2048", "-m", "rmapbt=0"], 2048),
    format("16 KiB blocks", &["-b", "size=16384"], 16384),
    format("64 KiB blocks", &["-b", "size=65536"], 65536),
];

/// The time of every operation.
const NOW: Timestamp = Timestamp { seconds: 1_700_000_000, nanoseconds: 1 };

/// A piece of a file, in sectors of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    pub offset: u64,
    pub sector: u64,
    pub len: u64,
    pub unwritten: bool,
    pub shared: bool,
}

/// A volume under test and what its files should hold.
pub struct History {
    pub volume: Arc<Volume>,
    pub files: Vec<Vec<u8>>,
    pub inodes: Vec<InodeNumber>,
    random: Random,
    bounds: Bounds,
    live: bool,
    /// Operations refused for want of space.
    pub refused: u64,
}

/// Name of a file.
pub fn name(file: usize) -> String {
    format!("file-{file}")
}

/// Makes a volume of the format with empty files in it.
pub fn prepare(image: &Path, format: &Format, size: u64, files: usize) {
    Xfsprogs::newest().unwrap().mkfs(image, size, format.arguments).unwrap();
    let volume = open(image, false);
    let mut root = volume.lock_inode(volume.geometry().root_inode).unwrap();
    for file in 0..files {
        let new = NewInode::new(FileType::Regular, 0o644);
        let mut trans = volume.begin().unwrap();
        let mut inode = ops::create(&mut trans, &mut root, name(file).as_bytes(), &new).unwrap();
        trans.commit(&mut [&mut root, &mut inode]).unwrap();
    }
    drop(root);
    mkfs::finish(&volume, false).unwrap();
}

pub fn open(image: &Path, live: bool) -> Volume {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    if live {
        Volume::open_live(device, &LiveOptions::default()).unwrap()
    } else {
        Volume::open_bulk(device).unwrap()
    }
}

impl History {
    /// Opens a prepared volume, for changes through its journal or past it.
    pub fn start(image: &Path, format: &Format, count: usize, (seed, live): (u64, bool)) -> Self {
        let files: Vec<usize> = (0..count).collect();
        Self::of(Arc::new(open(image, live)), format, &files, (seed, live))
    }

    /// A history of some files of a volume.
    pub fn of(
        volume: Arc<Volume>,
        format: &Format,
        files: &[usize],
        (seed, live): (u64, bool),
    ) -> Self {
        let root = volume.inode(volume.geometry().root_inode).unwrap();
        let lookup = |file: &usize| ops::lookup(&volume, &root.read(), name(*file).as_bytes());
        let inodes = files.iter().map(|file| lookup(file).unwrap().unwrap()).collect();
        let size_max = 300 * format.block_size.max(2048);
        let Format { block_size, reflink, .. } = *format;
        Self {
            volume,
            files: vec![Vec::new(); files.len()],
            inodes,
            random: Random::new(seed),
            bounds: Bounds { block_size, size_max, reflink },
            live,
            refused: 0,
        }
    }

    /// Sizes up to which files grow.
    pub fn set_size_max(&mut self, size_max: u64) {
        self.bounds.size_max = size_max;
    }

    /// Appends to all files in turn until there is no space left.
    pub fn fill(&mut self) {
        for number in 0.. {
            let file = number % self.files.len();
            let (offset, seed) = (self.files[file].len() as u64, self.random.bits());
            let len = 1 + self.random.below(256 * self.bounds.block_size);
            if !self.perform_on_both(&Operation::Write { file, offset, len, seed }) {
                return;
            }
        }
    }

    /// A random operation, done on the volume and on the files in memory.
    pub fn step(&mut self) -> Operation {
        let operation = Operation::random(&mut self.random, &self.files, &self.bounds);
        self.perform_on_both(&operation);
        operation
    }

    /// Does an operation on the volume and on the files in memory; whether there was space for it.
    pub fn perform_on_both(&mut self, operation: &Operation) -> bool {
        match self.perform(operation) {
            Ok(()) => operation.apply(&mut self.files),
            Err(Error::NoSpace { .. }) => {
                // A part of it may have been done; the others' data must not have changed.
                self.refused += 1;
                let file = operation.file();
                self.files[file] = self.content(file);
                return false;
            }
            Err(error) => panic!("{operation:?}: {error}"),
        }
        true
    }

    /// Many of them; the file that changed is compared each time.
    pub fn run(&mut self, steps: u64) -> Vec<Operation> {
        let mut done = Vec::new();
        for step in 0..steps {
            let operation = self.step();
            self.compare(operation.file(), &format!("step {step}, {operation:?}"));
            done.push(operation);
        }
        self.compare_all();
        done
    }

    fn open(&self, file: usize) -> OpenFile {
        OpenFile::open(&self.volume, self.inodes[file]).unwrap()
    }

    fn perform(&mut self, operation: &Operation) -> Result<(), Error> {
        let size = |keep| if keep { Size::Keep } else { Size::Grow };
        let bytes = |(offset, len): (u64, u64)| offset..offset + len;
        let file = self.open(operation.file());
        match *operation {
            Operation::Write { offset, len, seed, .. } => {
                file.write_direct(offset, &Arc::new(pattern(seed, len)), 0..len as usize, NOW)
            }
            Operation::Truncate { size, .. } => file.truncate(size, NOW),
            Operation::Preallocate { range, keep, .. } => {
                file.preallocate(bytes(range), size(keep), NOW)
            }
            Operation::Punch { range, .. } => file.punch(bytes(range), NOW),
            Operation::Zero { range, keep, .. } => file.zero(bytes(range), size(keep), NOW),
            Operation::Collapse { range, .. } => file.collapse(bytes(range), NOW),
            Operation::Insert { range, .. } => file.insert(bytes(range), NOW),
            Operation::Clone { from, source, target, len, .. } => {
                let range = CloneRange { source, target, len };
                file.clone_range(&self.open(from), &range, NOW)
            }
            Operation::Dedupe { from, to, source, target, len } => {
                let range = CloneRange { source, target, len };
                let same = file.dedupe_range(&self.open(from), &range)?;
                let part = |file: &[u8], at: u64| file[at as usize..(at + len) as usize].to_vec();
                let equal = part(&self.files[from], source) == part(&self.files[to], target);
                assert_eq!(same, equal, "{operation:?}");
                Ok(())
            }
        }
    }

    /// What a file holds on the volume.
    pub fn content(&self, file: usize) -> Vec<u8> {
        let file = self.open(file);
        let mut bytes = vec![0xff; file.size() as usize];
        assert_eq!(file.read(0, &mut bytes).unwrap(), bytes.len());
        bytes
    }

    /// Where a file is, in sectors of 512 bytes.
    pub fn map(&self, file: usize) -> Vec<Mapped> {
        let geometry = self.volume.geometry();
        let per_block = self.bounds.block_size / 512;
        let map = |found: &MappedExtent| Mapped {
            offset: found.extent.offset.0 * per_block,
            sector: geometry.sector(found.extent.start).0,
            len: u64::from(found.extent.len) * per_block,
            unwritten: found.extent.unwritten,
            shared: found.shared,
        };
        let inode = self.volume.inode(self.inodes[file]).unwrap();
        let extents = ops::extent_map(&self.volume, &inode.read()).unwrap();
        extents.iter().map(map).collect()
    }

    fn compare(&self, file: usize, when: &str) {
        same(&self.content(file), &self.files[file], &format!("{when}: file {file}"));
    }

    pub fn compare_all(&self) {
        (0..self.files.len()).for_each(|file| self.compare(file, "at the end"));
    }

    /// Empties all files.
    pub fn empty(&mut self) {
        for file in 0..self.files.len() {
            self.open(file).truncate(0, NOW).unwrap();
            self.files[file].clear();
        }
    }

    /// Writes everything to the image; returns the count of free blocks.
    pub fn finish(self, image: &Path) -> u64 {
        if self.live {
            self.volume.close().unwrap();
        } else {
            mkfs::finish(&self.volume, false).unwrap();
        }
        drop(self);
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
        Volume::open(device).unwrap().superblock().free_blocks
    }
}

/// Compares contents without printing them.
pub fn same(found: &[u8], expected: &[u8], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}: size");
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    if let Some(at) = differs {
        let (found, expected) = (found[at], expected[at]);
        panic!("{what}: byte {at} is {found:#x}, must be {expected:#x}");
    }
}
