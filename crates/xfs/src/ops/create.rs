//! New files, directories and links.
//!
//! What belongs together in one transaction: docs/algorithms/names.md#units; the state of a new
//! inode: docs/algorithms/inodes.md#new-inodes.

use super::path_text;
use crate::alloc;
use crate::attr::fork_offset;
use crate::attr::parent::{self as parent_pointer, ParentPointer};
use crate::bmap::ForkWriter;
use crate::dir::{self, Entry, Found, Slot};
use crate::error::Error;
use crate::format::{
    DeviceNumber, FileType, InodeCore, InodeFlags, InodeFlags2, NLINK_MAX, Timestamp,
    TimestampEncoding,
};
use crate::inode::{Fork, ForkKind, InodeGuard, InodeState};
use crate::inode_allocation;
use crate::symlink;
use crate::trans::Transaction;
use crate::units::{AgInode, InodeNumber};

/// Permission bits in a mode, with setuid, setgid and sticky.
const PERMISSIONS: u16 = 0o7777;

/// The four times of an inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Last access.
    pub access: Timestamp,
    /// Last change of the content.
    pub modification: Timestamp,
    /// Last change of the inode.
    pub change: Timestamp,
    /// Birth.
    pub creation: Timestamp,
}

/// The attributes of a new inode.
#[derive(Clone, Debug)]
pub struct NewInode<'a> {
    /// Type and permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Times; ones that the volume cannot hold are moved to the nearest it can.
    pub times: Times,
    /// Device number of a device, zero for all others.
    pub device: DeviceNumber,
    /// Target of a symbolic link, empty for all others.
    pub target: &'a [u8],
}

impl NewInode<'_> {
    /// A file of root, without times, that is no device and no symbolic link.
    #[must_use]
    pub fn new(kind: FileType, permissions: u16) -> Self {
        Self {
            mode: kind.mode_bits() | permissions,
            uid: 0,
            gid: 0,
            times: Times::default(),
            device: DeviceNumber { major: 0, minor: 0 },
            target: &[],
        }
    }

    /// The type of file that the mode names.
    ///
    /// # Errors
    /// It names none.
    pub fn file_type(&self) -> Result<FileType, Error> {
        let invalid = || Error::Invalid(format!("mode {:o} names no type of file", self.mode));
        FileType::from_mode(self.mode).ok_or_else(invalid)
    }
}

/// Creates `name` in the directory `parent`, which has no such entry yet. The times of the parent
/// are left alone: callers that keep time set them.
///
/// # Errors
/// No space, a damaged structure, a name or target that cannot be stored, or the device failed.
pub fn create(
    trans: &mut Transaction<'_>,
    parent: &mut InodeGuard,
    name: &[u8],
    new: &NewInode<'_>,
) -> Result<InodeGuard, Error> {
    let file_type = new.file_type()?;
    alloc::return_if_scarce(trans)?;
    let slot = free_slot(trans, parent, name)?;
    let number =
        inode_allocation::allocate(trans, Some(parent.number), file_type == FileType::Directory)?;
    enter(trans, parent, (slot, name), new, number)
}

/// As [`create`], with an inode that was allocated and a [free slot](free_slot) for its name.
pub(super) fn enter(
    trans: &mut Transaction<'_>,
    parent: &mut InodeGuard,
    (slot, name): (Slot, &[u8]),
    new: &NewInode<'_>,
    number: InodeNumber,
) -> Result<InodeGuard, Error> {
    let file_type = new.file_type()?;
    let mut inode = new_inode(trans, number, Some(parent.number), file_type, new)?;
    insert_entry(trans, parent, slot, name, &inode)?;
    if file_type == FileType::Directory {
        parent.core.nlink += 1;
    }
    if file_type == FileType::Symlink {
        symlink::write(&mut ForkWriter::new(trans, &mut inode, ForkKind::Data), new.target)?;
        inode.core.size = new.target.len() as u64;
    }
    add_parent_pointer(trans, &mut inode, parent, name)?;
    Ok(trans.volume().insert_inode(inode))
}

/// The root directory of a new volume.
///
/// # Errors
/// No space, or the device failed.
pub(crate) fn create_root(
    trans: &mut Transaction<'_>,
    new: &NewInode<'_>,
) -> Result<InodeGuard, Error> {
    let number = inode_allocation::allocate(trans, None, true)?;
    let inode = new_inode(trans, number, None, FileType::Directory, new)?;
    Ok(trans.volume().insert_inode(inode))
}

/// The inode of the realtime bitmap (`bitmap`) or summary: empty files that every volume has,
/// rooted in the superblock (docs/format/new-volumes.md#first-inodes).
///
/// # Errors
/// No space, or the device failed.
pub(crate) fn create_reserved(
    trans: &mut Transaction<'_>,
    root: &NewInode<'_>,
    bitmap: bool,
) -> Result<InodeGuard, Error> {
    let number = inode_allocation::allocate(trans, None, false)?;
    let new = NewInode { mode: FileType::Regular.mode_bits(), uid: 0, gid: 0, ..root.clone() };
    let mut inode = new_inode(trans, number, None, FileType::Regular, &new)?;
    if bitmap {
        inode.core.flags = InodeFlags::NEWRTBM;
        inode.core.atime = Timestamp::default();
    }
    Ok(trans.volume().insert_inode(inode))
}

/// Adds `name` in the directory `parent` for an inode that exists.
///
/// # Errors
/// As [`create`]; or the inode has as many links as the format can count.
pub fn add_link(
    trans: &mut Transaction<'_>,
    parent: &mut InodeGuard,
    name: &[u8],
    inode: &mut InodeGuard,
) -> Result<(), Error> {
    if inode.core.nlink >= NLINK_MAX {
        return Err(Error::TooManyLinks(format!("inode {} has too many links", inode.number)));
    }
    alloc::return_if_scarce(trans)?;
    let slot = free_slot(trans, parent, name)?;
    insert_entry(trans, parent, slot, name, inode)?;
    inode.core.nlink += 1;
    inode.core.changecount += 1;
    inode.touch();
    add_parent_pointer(trans, inode, parent, name)
}

/// Gives an inode the permission bits, owner and times of `new`; its type stays.
pub fn set_metadata(trans: &Transaction<'_>, inode: &mut InodeState, new: &NewInode<'_>) {
    let core = &mut inode.core;
    core.mode = (core.mode & !PERMISSIONS) | (new.mode & PERMISSIONS);
    (core.uid, core.gid) = (new.uid, new.gid);
    set_times(trans, core, &new.times);
    core.changecount += 1;
    inode.touch();
}

fn set_times(trans: &Transaction<'_>, core: &mut InodeCore, times: &Times) {
    let bigtime = trans.geometry().features.bigtime();
    let encoding = if bigtime { TimestampEncoding::Bigtime } else { TimestampEncoding::Legacy };
    core.atime = times.access.clamped(encoding);
    core.mtime = times.modification.clamped(encoding);
    core.ctime = times.change.clamped(encoding);
    core.crtime = times.creation.clamped(encoding);
}

/// Where `name` goes in a directory that does not have it; nothing is changed. It is good until the
/// directory changes.
pub(super) fn free_slot(
    trans: &mut Transaction<'_>,
    parent: &mut InodeState,
    name: &[u8],
) -> Result<Slot, Error> {
    match dir::find(&mut ForkWriter::new(trans, parent, ForkKind::Data), name)? {
        Found::Absent(slot) => Ok(slot),
        Found::Entry(_) => Err(Error::Exists(path_text(name))),
    }
}

/// Adds an entry for `inode` to a directory.
fn insert_entry(
    trans: &mut Transaction<'_>,
    parent: &mut InodeState,
    slot: Slot,
    name: &[u8],
    inode: &InodeState,
) -> Result<(), Error> {
    let entry = Entry { inode: inode.number, ftype: inode.file_type().into() };
    let mut space = parent.space;
    let mut fork = ForkWriter::new(trans, parent, ForkKind::Data);
    dir::insert(&mut fork, slot, name, entry, &mut space)?;
    parent.space = space;
    parent.core.changecount += 1;
    parent.touch();
    Ok(())
}

/// Records in an inode that `parent` has an entry `name` for it.
pub(super) fn add_parent_pointer(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    parent: &InodeState,
    name: &[u8],
) -> Result<(), Error> {
    if !trans.geometry().features.parent_pointers() {
        return Ok(());
    }
    let pointer = ParentPointer { name, parent: parent.number, generation: parent.core.generation };
    parent_pointer::add(&mut ForkWriter::new(trans, inode, ForkKind::Attr), &pointer)
}

/// The state of an inode at birth.
pub(super) fn new_inode(
    trans: &Transaction<'_>,
    number: InodeNumber,
    parent: Option<InodeNumber>,
    file_type: FileType,
    new: &NewInode<'_>,
) -> Result<InodeState, Error> {
    let geometry = trans.geometry();
    let features = &geometry.features;
    let mut flags2 = InodeFlags2::empty();
    flags2.set(InodeFlags2::BIGTIME, features.bigtime());
    flags2.set(InodeFlags2::NREXT64, features.nrext64());
    let mut core = InodeCore {
        mode: new.mode,
        version: 3,
        uid: new.uid,
        gid: new.gid,
        nlink: if file_type == FileType::Directory { 2 } else { 1 },
        generation: inode_allocation::next_generation(trans, number)?,
        next_unlinked: AgInode::NULL,
        changecount: 1,
        flags2,
        number,
        uuid: geometry.meta_uuid,
        ..InodeCore::default()
    };
    set_times(trans, &mut core, &new.times);
    let data = match file_type {
        FileType::Directory => {
            let content = dir::empty(geometry, parent.unwrap_or(number));
            core.size = content.len() as u64;
            Fork::local(content)
        }
        _ if file_type.is_special() => Fork::device(new.device),
        _ => Fork::empty(),
    };
    let mut attr = None;
    if features.parent_pointers() && parent.is_some() {
        core.forkoff = fork_offset::default_offset(geometry, data.format());
        attr = Some(Fork::empty());
    }
    Ok(InodeState::new(core, data, attr))
}
