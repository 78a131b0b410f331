//! Names and links of inodes one side at a time: for tools that put a damaged volume right.
//!
//! Each is one transaction. What the other side says (the inode of an entry, the entry of a parent
//! pointer, the names that a link count counts) is the caller's to bring in line.

use super::create::free_slot;
use super::locks::{self, Locked};
use super::unlink::affected;
use super::{attribute_fork, directory};
use crate::attr::parent::{self as parent_pointer, ParentPointer};
use crate::attr::{self, Attribute, SetMode};
use crate::bmap::{ForkReader, ForkWriter, worst_case};
use crate::dir::{self, Entry};
use crate::error::Error;
use crate::format::{EntryType, NLINK_MAX, NLINK_PINNED, Namespace};
use crate::inode::{ForkKind, InodeState};
use crate::log::Work;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// A name that leads to an inode, with the generation of the directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkedName {
    /// The directory.
    pub directory: InodeNumber,
    /// Its generation.
    pub generation: u32,
    /// The name.
    pub name: Vec<u8>,
}

/// Adds an entry to a directory, whether or not there is such an inode.
///
/// # Errors
/// The name exists, or cannot be one; no space; a damaged structure; the device failed.
pub fn add_entry(
    volume: &Volume,
    parent: InodeNumber,
    name: &[u8],
    child: InodeNumber,
    kind: EntryType,
) -> Result<(), Error> {
    dir::check_name(name)?;
    let mut trans = volume.begin_for(Work::Create)?;
    let mut inodes = Locked::new(volume, &[parent])?;
    let directory = inodes.get(parent);
    directory::expect_directory(directory)?;
    let slot = free_slot(&mut trans, directory, name)?;
    trans.reserve(worst_case::entry(&trans))?;
    trans.lock_groups(affected(volume, directory)?)?;
    trans.begin_changes();
    let mut space = directory.space;
    let mut fork = ForkWriter::new(&mut trans, directory, ForkKind::Data);
    dir::insert(&mut fork, slot, name, Entry { inode: child, ftype: kind }, &mut space)?;
    directory.space = space;
    directory.touch();
    inodes.commit(trans)
}

/// Takes an entry out of a directory, whatever it leads to.
///
/// # Errors
/// There is no such name; a damaged structure; the device failed.
pub fn remove_entry(volume: &Volume, parent: InodeNumber, name: &[u8]) -> Result<(), Error> {
    let mut trans = volume.begin_for(Work::Create)?;
    let mut inodes = Locked::new(volume, &[parent])?;
    let directory = inodes.get(parent);
    locks::entry(volume, directory, name)?;
    trans.reserve(worst_case::entry(&trans))?;
    trans.lock_groups(affected(volume, directory)?)?;
    trans.begin_changes();
    let mut space = directory.space;
    let mut fork = ForkWriter::new(&mut trans, directory, ForkKind::Data);
    dir::remove(&mut fork, name, &mut space)?;
    directory.space = space;
    directory.touch();
    inodes.commit(trans)
}

/// Makes `parent` the parent that a directory names.
///
/// # Errors
/// It is no directory; a damaged structure; the device failed.
pub fn set_dot_dot(
    volume: &Volume,
    directory: InodeNumber,
    parent: InodeNumber,
) -> Result<(), Error> {
    let mut trans = volume.begin_for(Work::Create)?;
    let mut inodes = Locked::new(volume, &[directory])?;
    let inode = inodes.get(directory);
    directory::expect_directory(inode)?;
    trans.reserve(worst_case::entry(&trans))?;
    trans.lock_groups(affected(volume, inode)?)?;
    trans.begin_changes();
    dir::set_parent(&mut ForkWriter::new(&mut trans, inode, ForkKind::Data), parent)?;
    inode.touch();
    inodes.commit(trans)
}

/// Sets the link count of an inode.
///
/// # Errors
/// There is no such inode; it is damaged; the device failed.
pub fn set_links(volume: &Volume, number: InodeNumber, links: u32) -> Result<(), Error> {
    let trans = volume.begin_for(Work::Create)?;
    let mut inodes = Locked::new(volume, &[number])?;
    let inode = inodes.get(number);
    inode.core.nlink = if links > NLINK_MAX { NLINK_PINNED } else { links };
    inode.touch();
    inodes.commit(trans)
}

/// An attribute as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RawAttribute {
    /// Whose it is.
    pub namespace: Namespace,
    /// Its name, without a prefix.
    pub name: Vec<u8>,
    /// Its value as it is stored.
    pub value: Vec<u8>,
}

/// Stores an attribute of an inode, other than a parent pointer, as it was stored.
///
/// # Errors
/// The name or value cannot be stored; no space; a damaged structure; the device failed.
pub fn restore_attribute(
    volume: &Volume,
    number: InodeNumber,
    attribute: &RawAttribute,
) -> Result<(), Error> {
    let stored = Attribute {
        namespace: attribute.namespace,
        name: &attribute.name,
        value: &attribute.value,
    };
    stored.verify()?;
    let mut trans = volume.begin_for(Work::Attribute)?;
    let mut inodes = Locked::new(volume, &[number])?;
    let inode = inodes.get(number);
    let blocks = worst_case::attribute(&trans, stored.value.len());
    trans.reserve(blocks + attribute_fork::blocks(&trans, inode))?;
    trans.lock_groups(affected(volume, inode)?)?;
    trans.begin_changes();
    attribute_fork::make(&mut trans, inode, attr::local_size([stored]))?;
    attr::set(&mut ForkWriter::new(&mut trans, inode, ForkKind::Attr), &stored, SetMode::Either)?;
    inode.touch();
    inodes.commit(trans)
}

/// Takes parent pointers away from an inode, then adds others.
///
/// # Errors
/// One to be taken away is not there, or one to be added is; no space; a damaged structure; the device
/// failed.
pub fn change_parents(
    volume: &Volume,
    number: InodeNumber,
    gone: &[LinkedName],
    new: &[LinkedName],
) -> Result<(), Error> {
    let steps = gone.iter().map(|name| (name, false)).chain(new.iter().map(|name| (name, true)));
    for (of, is_new) in steps {
        let mut trans = volume.begin_for(Work::Attribute)?;
        let mut inodes = Locked::new(volume, &[number])?;
        let inode = inodes.get(number);
        let LinkedName { directory: parent, generation, name } = of;
        let pointer = ParentPointer { name, parent: *parent, generation: *generation };
        let value = pointer.value();
        let is_there = parent_pointers(volume, inode)?.contains(of);
        if is_there == is_new {
            let what = format!("a parent pointer to directory {parent} is there: {is_there}");
            return Err(Error::Inode { inode: number, what });
        }
        trans
            .reserve(worst_case::parent_pointer(&trans) + attribute_fork::blocks(&trans, inode))?;
        trans.lock_groups(affected(volume, inode)?)?;
        trans.begin_changes();
        attribute_fork::make(&mut trans, inode, attr::local_size([pointer.attribute(&value)]))?;
        let mut fork = ForkWriter::new(&mut trans, inode, ForkKind::Attr);
        if is_new {
            parent_pointer::add(&mut fork, &pointer)?;
        } else {
            parent_pointer::remove(&mut fork, &pointer)?;
        }
        inode.touch();
        inodes.commit(trans)?;
    }
    Ok(())
}

/// The parent pointers of an inode, with generations.
///
/// # Errors
/// Its attributes are damaged, or the device failed.
pub fn parent_pointers(volume: &Volume, inode: &InodeState) -> Result<Vec<LinkedName>, Error> {
    let mut names = Vec::new();
    if inode.attr.is_some() {
        let mut fork = ForkReader::new(volume, inode, ForkKind::Attr);
        parent_pointer::for_each_parent(&mut fork, &mut |pointer| {
            let (directory, generation) = (pointer.parent, pointer.generation);
            names.push(LinkedName { directory, generation, name: pointer.name.to_vec() });
            Ok(())
        })?;
    }
    Ok(names)
}
