//! Names in a directory.

use crate::bmap::ForkReader;
use crate::dir::{self, DirectoryEntry, Position};
use crate::error::{Error, ErrorKind};
use crate::format::FileType;
use crate::inode::{ForkKind, InodeState};
use crate::units::InodeNumber;
use crate::volume::Volume;

/// Checks that an inode is a directory.
pub(super) fn expect_directory(inode: &InodeState) -> Result<(), Error> {
    inode.expect_in_use()?;
    if inode.file_type() == FileType::Directory {
        return Ok(());
    }
    let (path, kind) = (format!("inode {}", inode.number), ErrorKind::NotDirectory);
    Err(Error::WrongKind { path, what: "not a directory", kind })
}

/// The inode that `name` stands for in a directory.
///
/// # Errors
/// The inode is no directory, the directory is damaged, or the device failed.
pub fn lookup(
    volume: &Volume,
    directory: &InodeState,
    name: &[u8],
) -> Result<Option<InodeNumber>, Error> {
    expect_directory(directory)?;
    let mut fork = ForkReader::new(volume, directory, ForkKind::Data);
    Ok(dir::lookup(&mut fork, name)?.map(|found| found.inode))
}

/// As [`lookup`], of an inode in use: no thread takes the entry away while the directory is locked,
/// so one that leads to an inode which is not is damage.
///
/// # Errors
/// As for [`lookup`]; or the inode is damaged.
pub fn lookup_in_use(
    volume: &Volume,
    directory: &InodeState,
    name: &[u8],
) -> Result<Option<InodeNumber>, Error> {
    let Some(number) = lookup(volume, directory, name)? else { return Ok(None) };
    volume.inode(number).map(|_| Some(number)).map_err(Error::into_damage)
}

/// Calls `visit` for the entries of a directory at and behind `from`, but not for `.` and `..`, in
/// the order of the directory, until it returns `false`. Returns where to go on:
/// [`Position::END`] after the last.
///
/// # Errors
/// The inode is no directory, the directory is damaged, or the device failed.
pub fn entries(
    volume: &Volume,
    directory: &InodeState,
    from: Position,
    mut visit: impl FnMut(DirectoryEntry<'_>) -> bool,
) -> Result<Position, Error> {
    let is_own = |name: &[u8]| matches!(name, b"." | b"..");
    all_entries(volume, directory, from, |entry| is_own(entry.name) || visit(entry))
}

/// As [`entries`], with `.` and `..`.
///
/// # Errors
/// As for [`entries`].
pub fn all_entries(
    volume: &Volume,
    directory: &InodeState,
    from: Position,
    visit: impl FnMut(DirectoryEntry<'_>) -> bool,
) -> Result<Position, Error> {
    expect_directory(directory)?;
    dir::iterate(&mut ForkReader::new(volume, directory, ForkKind::Data), from, visit)
}
