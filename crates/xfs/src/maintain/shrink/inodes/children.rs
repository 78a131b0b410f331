//! What entries of a directory lead to, and know of it: `..` of directories, parent pointers.

use crate::attr::parent::{self as parent_pointer, ParentPointer};
use crate::bmap::ForkWriter;
use crate::dir::{self, Position};
use crate::error::Error;
use crate::format::{EntryType, FileType};
use crate::inode::{ForkKind, InodeState};
use crate::ops;
use crate::trans::Transaction;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// Entries that are looked at together.
const BATCH: usize = 1024;

/// An entry of a directory.
pub(super) struct Child {
    name: Vec<u8>,
    pub(super) inode: InodeNumber,
}

/// Visits the entries of a directory whose inodes know of it.
///
/// # Errors
/// The directory is damaged; the device failed; those of `visit`.
pub(super) fn for_each(
    volume: &Volume,
    directory: &InodeState,
    mut visit: impl FnMut(Child) -> Result<(), Error>,
) -> Result<(), Error> {
    let pointers = volume.geometry().features.parent_pointers();
    let mut from = Position::START;
    while from != Position::END {
        let mut batch = Vec::new();
        from = ops::entries(volume, directory, from, |entry| {
            if pointers || matches!(entry.ftype, EntryType::Directory | EntryType::Unknown) {
                batch.push(Child { name: entry.name.to_vec(), inode: entry.inode });
            }
            batch.len() < BATCH
        })?;
        volume.prefetch_inodes(batch.iter().map(|child| child.inode));
        batch.into_iter().try_for_each(&mut visit)?;
    }
    Ok(())
}

/// Tells the inodes that a directory leads to that its number is another than `old`.
///
/// # Errors
/// One of them is damaged; no space; the device failed.
pub(super) fn follow(
    trans: &mut Transaction<'_>,
    directory: &InodeState,
    old: InodeNumber,
) -> Result<(), Error> {
    let volume = trans.volume();
    let pointers = volume.geometry().features.parent_pointers();
    let (new, generation) = (directory.number, directory.core.generation);
    for_each(volume, directory, |Child { name, inode }| {
        let mut child = volume.lock_inode(inode).map_err(Error::into_damage)?;
        if child.file_type() == FileType::Directory {
            let mut fork = ForkWriter::new(trans, &mut child, ForkKind::Data);
            let parent = dir::parent(&mut fork)?;
            if parent != old {
                let what = format!("\"..\" is {parent}, and it is in directory {old}");
                return Err(Error::Inode { inode, what });
            }
            dir::set_parent(&mut fork, new)?;
        }
        if pointers {
            let pointer = |parent| ParentPointer { name: &name, parent, generation };
            let mut fork = ForkWriter::new(trans, &mut child, ForkKind::Attr);
            parent_pointer::replace(&mut fork, &pointer(old), &pointer(new))?;
        }
        child.store(trans)
    })
}
