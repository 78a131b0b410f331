//! Operations on volumes with mutated metadata: a verb of the command, on paths that the sound
//! volume has.

use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_fs::{Allocation, Change, FileSystem, OpenOptions, RenameFlags};
use undercroft_judges::random::Random;
use undercroft_xfs::format::FileType;
use undercroft_xfs::units::InodeNumber;

/// Block size of the volumes.
const BLOCK: u64 = 4096;

/// A path of the volume before the damage.
pub struct Known {
    pub path: PathBuf,
    pub number: InodeNumber,
    pub kind: FileType,
}

/// Why a verb was not done.
pub enum Refusal {
    Open,
    Verb,
}

/// A verb and its paths.
#[derive(Debug)]
pub enum Verb {
    Remove(PathBuf),
    RemoveAll(PathBuf),
    Move(PathBuf, PathBuf),
    Mode(PathBuf),
    Truncate(PathBuf, u64, InodeNumber),
    PutNew(PathBuf, usize),
    PutOver(PathBuf, usize, InodeNumber),
    Overwrite(PathBuf, u64, InodeNumber),
    Allocate(PathBuf, Allocation, Range<u64>, InodeNumber),
}

impl Verb {
    pub fn random(random: &mut Random, known: &[Known]) -> Self {
        let mut any = |wanted: Option<FileType>| loop {
            let one = &known[random.below(known.len() as u64) as usize];
            if wanted.is_none_or(|kind| kind == one.kind) && one.path != Path::new("/") {
                return (one.path.clone(), one.number);
            }
        };
        let (file, number) = any(Some(FileType::Regular));
        let (directory, _) = any(Some(FileType::Directory));
        let (path, _) = any(None);
        let size = random.magnitude(24);
        match random.below(10) {
            0 => Self::Remove(path),
            1 => Self::RemoveAll(directory),
            2 => Self::Move(path, directory.join("moved")),
            3 => Self::Mode(path),
            4 => Self::Truncate(file, size, number),
            5 => Self::PutNew(directory.join("new"), size as usize),
            6 => Self::PutOver(file, size as usize, number),
            7 => Self::Overwrite(file, size, number),
            _ => {
                let (mode, range) = allocation(random, size);
                Self::Allocate(file, mode, range, number)
            }
        }
    }

    /// The file whose bytes it may change.
    pub fn target(&self) -> Option<InodeNumber> {
        match self {
            Self::Truncate(_, _, number)
            | Self::PutOver(_, _, number)
            | Self::Overwrite(_, _, number)
            | Self::Allocate(_, _, _, number) => Some(*number),
            _ => None,
        }
    }

    /// Opens the volume, does it, and closes the volume.
    pub fn run(&self, device: Arc<dyn BlockDevice>) -> Result<(), Refusal> {
        let fs = FileSystem::open(device, &OpenOptions::writable()).map_err(|_| Refusal::Open)?;
        let done = self.apply(&fs);
        let closed = fs.close();
        done.and(closed.map_err(Into::into)).map_err(|_| Refusal::Verb)
    }

    fn apply(&self, fs: &FileSystem) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Remove(path) => fs.remove_file(path)?,
            Self::RemoveAll(path) => fs.remove_dir_all(path)?,
            Self::Move(from, to) => fs.rename(from, to, RenameFlags::default())?,
            Self::Mode(path) => {
                let number = fs.symlink_metadata(path)?.number;
                fs.nodes()
                    .set_attributes(number, &Change { mode: Some(0o640), ..Change::default() })?;
            }
            Self::Truncate(path, size, _) => fs.open_file(path)?.set_len(*size)?,
            Self::PutNew(path, size) | Self::PutOver(path, size, _) => {
                fs.write(path, vec![0x5a; *size])?;
            }
            Self::Overwrite(path, offset, _) => {
                let file = fs.open_file(path)?;
                file.write_at(*offset, &[0x5a; 20_000])?;
                file.fsync_and_wait()?;
            }
            Self::Allocate(path, mode, range, _) => {
                fs.open_file(path)?.allocate(*mode, range.clone())?;
            }
        }
        Ok(())
    }
}

/// A way to change the space of a file, and a range of up to 16 MiB from `start`.
fn allocation(random: &mut Random, start: u64) -> (Allocation, Range<u64>) {
    let keep_size = random.one_in(2);
    let mode = match random.below(6) {
        0 => Allocation::Reserve { keep_size },
        1 => Allocation::PunchHole,
        2 => Allocation::Zero { keep_size },
        3 => Allocation::Collapse,
        4 => Allocation::Insert,
        _ => Allocation::Unshare,
    };
    let len = 1 + random.magnitude(24);
    if matches!(mode, Allocation::Collapse | Allocation::Insert) {
        let start = start / BLOCK * BLOCK;
        return (mode, start..start + len.next_multiple_of(BLOCK));
    }
    (mode, start..start + len)
}
