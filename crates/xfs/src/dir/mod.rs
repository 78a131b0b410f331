//! Directories: names to inodes, in all four forms.
//!
//! A directory is stored inside its inode (short form), in one block (block form), in data blocks
//! with one hash block (leaf form) or with a hash tree and a free index (node form). The form is
//! never stored, it follows from the fork, and it changes as names come and go
//! (docs/format/directories.md#forms; docs/algorithms/directories.md and
//! docs/algorithms/hash-trees.md).
//!
//! Creating a name takes one search: [`find`] says that the name is absent and where it belongs,
//! [`insert`] puts it there. Between the two the directory must not change. A change that
//! fails may have changed some blocks already: its transaction must be cancelled.
//!
//! The link counts and times of inodes and the parent pointers are the caller's.

mod block;
mod fits;
mod form;
mod free_index;
mod grow;
mod hash_leaf;
mod iterate;
mod leaf;
mod node;
mod search;
mod shortform;
mod shrink;
mod wipe;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(crate) use fits::fits;
pub use free_index::SpaceHint;
pub use iterate::{DirectoryEntry, Position, iterate};
pub(crate) use wipe::wipe_names;

use crate::cache::BufferRef;
use crate::da::{DaFork, DaForkMut, Path};
use crate::error::Error;
use crate::format::dir_data::{self, DataEntry};
use crate::format::dir_layout::{DirLayout, MAX_NAME};
use crate::format::dir_shortform::{ShortWriter, is_wide};
use crate::format::{EntryType, name_defect};
use crate::geometry::Geometry;
use crate::units::{FileBlock, InodeNumber};
use form::{Form, form};
use search::{Hit, Index, Search, search};

/// Moves a directory that is inside its inode to a block.
///
/// # Errors
/// No space, damage, or a device error.
pub(crate) fn leave_inode<F: DaForkMut + ?Sized>(fork: &mut F) -> Result<(), Error> {
    grow::short_to_block(fork, DirLayout::new(fork.geometry())).map(drop)
}

/// The target of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Inode.
    pub inode: InodeNumber,
    /// Type, [`EntryType::Unknown`] on volumes that do not record it.
    pub ftype: EntryType,
}

/// Where an absent name belongs. It is valid until the directory changes.
#[derive(Debug)]
pub struct Slot {
    hash: u32,
    place: SlotBlock,
}

/// The block that the hash of a new name goes to.
#[derive(Debug)]
enum SlotBlock {
    Short,
    Block(BufferRef),
    Leaf(BufferRef),
    Node(Path),
}

/// Result of [`find`].
#[derive(Debug)]
pub enum Found {
    /// The name exists.
    Entry(Entry),
    /// It does not; [`insert`] takes this.
    Absent(Slot),
}

/// A new entry on its way in.
#[derive(Clone, Copy, Debug)]
struct NewEntry<'a> {
    hash: u32,
    entry: DataEntry<'a>,
    /// Bytes it takes in a data block.
    len: usize,
}

/// Content of an empty directory below `parent`, in short form.
#[must_use]
pub fn empty(geometry: &Geometry, parent: InodeNumber) -> Vec<u8> {
    ShortWriter::new(DirLayout::new(geometry), parent, is_wide(parent), 10).finish()
}

/// Makes the fork an empty directory below `parent`.
///
/// # Errors
/// The fork cannot be made local.
#[cfg(test)]
pub(crate) fn init<F: DaForkMut + ?Sized>(fork: &mut F, parent: InodeNumber) -> Result<(), Error> {
    let content = empty(fork.geometry(), parent);
    fork.set_size(content.len() as u64);
    fork.set_local(Some(content))
}

/// Looks `name` up; "." and ".." are names like any other.
///
/// # Errors
/// The directory is damaged or cannot be read.
pub fn lookup<F: DaFork + ?Sized>(fork: &mut F, name: &[u8]) -> Result<Option<Entry>, Error> {
    Ok(match find(fork, name)? {
        Found::Entry(entry) => Some(entry),
        Found::Absent(_) => None,
    })
}

/// Looks `name` up, and if it is absent returns where it belongs.
///
/// # Errors
/// The directory is damaged or cannot be read.
pub fn find<F: DaFork + ?Sized>(fork: &mut F, name: &[u8]) -> Result<Found, Error> {
    let layout = DirLayout::new(fork.geometry());
    if form(fork, layout)? == Form::Short {
        return Ok(match shortform::find(fork, layout, name)? {
            Some(entry) => Found::Entry(entry),
            None => Found::Absent(Slot { hash: layout.hash(name), place: SlotBlock::Short }),
        });
    }
    Ok(match search(fork, layout, name)? {
        Search::Hit(hit) => Found::Entry(hit.entry),
        Search::Absent(slot) => Found::Absent(slot),
    })
}

/// Puts `name`, which [`find`] found absent, into its slot. `space` is where the last names of
/// this directory found room; a new one is always right.
///
/// # Errors
/// A name or inode that no directory can hold; no space; a damaged directory.
pub fn insert<F: DaForkMut + ?Sized>(
    fork: &mut F,
    slot: Slot,
    name: &[u8],
    target: Entry,
    space: &mut SpaceHint,
) -> Result<(), Error> {
    check_name(name)?;
    check_inode(fork, target.inode)?;
    let layout = DirLayout::new(fork.geometry());
    let new = NewEntry {
        hash: slot.hash,
        entry: DataEntry { inode: target.inode, name, ftype: target.ftype },
        len: layout.entry_size(name.len()),
    };
    let mut place = slot.place;
    loop {
        // A form without room is converted to the next larger one, at most three times.
        place = match place {
            SlotBlock::Short => {
                if shortform::insert(fork, layout, &new)? {
                    return Ok(());
                }
                SlotBlock::Block(grow::short_to_block(fork, layout)?)
            }
            SlotBlock::Block(buffer) => {
                if block::insert(fork, layout, &buffer, &new)? {
                    return Ok(());
                }
                SlotBlock::Leaf(grow::block_to_leaf(fork, layout, &buffer)?)
            }
            SlotBlock::Leaf(leaf) => {
                if leaf::insert(fork, layout, &leaf, &new)? {
                    return Ok(());
                }
                SlotBlock::Node(grow::leaf_to_node(fork, layout, &leaf, new.hash)?)
            }
            SlotBlock::Node(path) => return node::insert(fork, layout, path, &new, space),
        };
    }
}

/// Adds `name`.
///
/// # Errors
/// As [`insert`], and [`Error::Exists`] if the name exists.
pub fn add<F: DaForkMut + ?Sized>(
    fork: &mut F,
    name: &[u8],
    target: Entry,
    space: &mut SpaceHint,
) -> Result<(), Error> {
    match find(fork, name)? {
        Found::Absent(slot) => insert(fork, slot, name, target, space),
        Found::Entry(_) => Err(Error::Exists(String::from_utf8_lossy(name).into_owned())),
    }
}

/// Removes `name` and returns its entry, `None` if it does not exist.
///
/// # Errors
/// "." and ".." cannot be removed; a damaged directory; no space for a change of the mapping.
pub fn remove<F: DaForkMut + ?Sized>(
    fork: &mut F,
    name: &[u8],
    space: &mut SpaceHint,
) -> Result<Option<Entry>, Error> {
    check_name(name)?;
    let layout = DirLayout::new(fork.geometry());
    if form(fork, layout)? == Form::Short {
        return shortform::remove(fork, layout, name);
    }
    let Search::Hit(hit) = search(fork, layout, name)? else { return Ok(None) };
    let Hit { entry, data, pointer, pair, index } = hit;
    match index {
        Index::Block => block::remove(fork, layout, &data, pointer, pair)?,
        Index::Leaf(leaf) => leaf::remove(fork, layout, &leaf, &data, pointer, pair)?,
        Index::Node(path) => {
            node::remove(fork, layout, path, &data, pointer, pair, space)?;
        }
    }
    Ok(Some(entry))
}

/// Points `name` to another inode and returns the entry as it was before, `None` if it does not
/// exist.
///
/// # Errors
/// An inode that no directory can hold; no space (short form with a large inode number); a
/// damaged directory.
pub fn replace<F: DaForkMut + ?Sized>(
    fork: &mut F,
    name: &[u8],
    target: Entry,
) -> Result<Option<Entry>, Error> {
    check_inode(fork, target.inode)?;
    let layout = DirLayout::new(fork.geometry());
    if form(fork, layout)? == Form::Short {
        match shortform::replace(fork, layout, name, target)? {
            shortform::Replaced::Absent => return Ok(None),
            shortform::Replaced::Done(old) => return Ok(Some(old)),
            shortform::Replaced::NoRoom => {
                grow::short_to_block(fork, layout)?;
            }
        }
    }
    let Search::Hit(hit) = search(fork, layout, name)? else { return Ok(None) };
    let (_, offset) = layout.split_pointer(hit.pointer);
    let mut guard = fork.edit(&hit.data);
    dir_data::replace_inode(&mut guard.edit(), layout, offset, target.inode, target.ftype);
    Ok(Some(hit.entry))
}

/// The directory that ".." names.
///
/// # Errors
/// A damaged directory.
pub fn parent<F: DaFork + ?Sized>(fork: &mut F) -> Result<InodeNumber, Error> {
    match lookup(fork, b"..")? {
        Some(entry) => Ok(entry.inode),
        None => Err(fork.corrupt(FileBlock(0), "\"..\" is missing".into())),
    }
}

/// Makes ".." name another directory.
///
/// # Errors
/// As [`replace`].
pub fn set_parent<F: DaForkMut + ?Sized>(fork: &mut F, parent: InodeNumber) -> Result<(), Error> {
    match replace(fork, b"..", Entry { inode: parent, ftype: EntryType::Directory })? {
        Some(_) => Ok(()),
        None => Err(fork.corrupt(FileBlock(0), "\"..\" is missing".into())),
    }
}

/// Whether there are no names but "." and "..".
///
/// # Errors
/// A damaged directory.
pub fn is_empty<F: DaFork + ?Sized>(fork: &mut F) -> Result<bool, Error> {
    let mut empty = true;
    iterate(fork, Position::START, |entry| {
        empty = matches!(entry.name, b"." | b"..");
        empty
    })?;
    Ok(empty)
}

/// Refuses names that no entry can have, and the two that every directory has.
///
/// # Errors
/// The defect of the name.
pub fn check_name(name: &[u8]) -> Result<(), Error> {
    let Some(what) = name_defect(name) else { return Ok(()) };
    let what = format!("the name {:?} {what}", String::from_utf8_lossy(name));
    Err(if name.len() > MAX_NAME { Error::NameTooLong(what) } else { Error::Invalid(what) })
}

fn check_inode<F: DaFork + ?Sized>(fork: &F, inode: InodeNumber) -> Result<(), Error> {
    if fork.geometry().valid_inode(inode) {
        Ok(())
    } else {
        Err(Error::Invalid(format!("inode {inode} cannot exist on this volume")))
    }
}
