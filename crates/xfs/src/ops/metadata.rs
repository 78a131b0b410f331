//! Mode, owner, times, project and flags of an inode.

use super::locks::Locked;
use super::unlink::affected;
use super::{attributes, set_attributes};
use crate::attr::{self, Attribute};
use crate::bmap::ForkWriter;
use crate::bmap::worst_case;
use crate::error::Error;
use crate::format::{Acl, AclKind, FileType, InodeFlags, InodeFlags2, Namespace, Timestamp};
use crate::inode::{ForkKind, InodeState};
use crate::log::Work;
use crate::trans::Transaction;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// Permission bits in a mode, with setuid, setgid and sticky.
const PERMISSIONS: u16 = 0o7777;

const SET_USER: u16 = 0o4000;
const SET_GROUP: u16 = 0o2000;
const GROUP_EXECUTE: u16 = 0o010;

/// Changes of an inode; `None` leaves a field as it is. Times that the inode cannot hold are moved
/// to the nearest that it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataChange {
    /// Permission bits, with setuid, setgid and sticky.
    pub mode: Option<u16>,
    /// Owner. Setting owner or group of a file takes away its setuid bit, its setgid bit if its
    /// group may execute it, and its capabilities, as on Linux.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Last access.
    pub access: Option<Timestamp>,
    /// Last change of the content.
    pub modification: Option<Timestamp>,
    /// Birth.
    pub creation: Option<Timestamp>,
    /// Project.
    pub project: Option<u32>,
    /// The first flag word: only what users may set.
    pub flags: Option<InodeFlags>,
    /// The flag of the second word that asks for direct access to persistent memory: kept, and handed down.
    pub direct_access: Option<bool>,
    /// A cache above has counted the times, and may tell late: flags that forbid changes forbid none
    /// that was made before the inode was changed last.
    pub is_counted: bool,
}

impl MetadataChange {
    /// Flags that are not the file system's own.
    pub const FLAGS: InodeFlags = InodeFlags::IMMUTABLE
        .union(InodeFlags::APPEND)
        .union(InodeFlags::SYNC)
        .union(InodeFlags::NOATIME)
        .union(InodeFlags::NODUMP)
        .union(InodeFlags::NODEFRAG)
        .union(InodeFlags::FILESTREAM)
        .union(Self::DIRECTORY_FLAGS);

    /// Flags of these that only directories have.
    pub const DIRECTORY_FLAGS: InodeFlags =
        InodeFlags::NOSYMLINKS.union(InodeFlags::PROJINHERIT).union(InodeFlags::RTINHERIT);

    /// Whether it changes times of access and modification at most.
    fn sets_times_only(&self) -> bool {
        let rest = Self { access: None, modification: None, is_counted: false, ..*self };
        rest == Self::default()
    }

    fn sets_owner(&self) -> bool {
        self.uid.is_some() || self.gid.is_some()
    }
}

/// Changes an inode; the time of its change becomes `now`. An access list follows the mode.
///
/// # Errors
/// A value that the inode cannot hold; the inode is immutable; no space for an access list; a
/// damaged structure; the device failed.
pub fn change_metadata(
    volume: &Volume,
    number: InodeNumber,
    change: &MetadataChange,
    now: Timestamp,
) -> Result<(), Error> {
    let mut trans = volume.begin_for(Work::Metadata)?;
    let mut inodes = Locked::new(volume, &[number])?;
    let inode = inodes.get(number);
    inode.expect_in_use()?;
    check(inode, change, now)?;
    let mode = new_mode(inode, change);
    let list = match change.mode {
        Some(_) => following_list(volume, inode, mode)?,
        None => None,
    };
    let capability = change.sets_owner() && inode.file_type() == FileType::Regular;
    if let Some(list) = &list {
        trans.reserve(worst_case::attribute(&trans, list.len()))?;
    }
    if list.is_some() || capability {
        trans.reserve_for_removal(worst_case::removal(&trans));
        trans.lock_groups(affected(volume, inode)?)?;
    }
    trans.begin_changes();
    if capability {
        remove_capability(&mut trans, inode)?;
    }
    if let Some(list) = &list {
        let name = AclKind::Access.xattr_name().as_bytes();
        set_attributes(&mut trans, inode, [(name, &list[..])])?;
    }
    apply(inode, change, mode);
    inode.set_changed(now);
    trans.commit(&mut [inode])
}

/// Finds all that speaks against a change.
fn check(inode: &InodeState, change: &MetadataChange, now: Timestamp) -> Result<(), Error> {
    let invalid = |what: String| Err(Error::Invalid(format!("inode {}: {what}", inode.number)));
    if change.mode.is_some_and(|mode| mode & !PERMISSIONS != 0) {
        return invalid("a mode has twelve bits".into());
    }
    if change.mode.is_some() && inode.file_type() == FileType::Symlink {
        let what = "the mode of a symbolic link has no meaning and is not changed";
        return Err(Error::NotSupported(format!("inode {}: {what}", inode.number)));
    }
    if change.direct_access == Some(true) {
        if !matches!(inode.file_type(), FileType::Regular | FileType::Directory) {
            return invalid("direct access is for files and directories".into());
        }
        if inode.core.version < 3 {
            return invalid("the volume is too old for a flag of direct access".into());
        }
    }
    let Some(flags) = change.flags else {
        return expect_changeable(inode, change, now);
    };
    let unknown = flags - MetadataChange::FLAGS;
    if !unknown.is_empty() {
        return invalid(format!("flags {unknown:?} are the file system's own"));
    }
    let misplaced = flags & MetadataChange::DIRECTORY_FLAGS;
    if !misplaced.is_empty() && inode.file_type() != FileType::Directory {
        return invalid(format!("flags {misplaced:?} are for directories"));
    }
    // Clearing the flag that forbids changes is the one change that it allows.
    let rest = MetadataChange { flags: None, is_counted: false, ..*change };
    if rest == MetadataChange::default() { Ok(()) } else { inode.expect_mutable(true) }
}

/// Refuses what the flags of the inode forbid. Who may append may say that it was changed now.
fn expect_changeable(
    inode: &InodeState,
    change: &MetadataChange,
    now: Timestamp,
) -> Result<(), Error> {
    if !change.sets_times_only() {
        return inode.expect_mutable(true);
    }
    if change.is_counted && change.access.is_none() && now < inode.core.ctime {
        return Ok(());
    }
    let is_now = [change.access, change.modification].into_iter().flatten().all(|time| time == now);
    inode.expect_mutable(!is_now)
}

/// The mode of the inode after the change.
fn new_mode(inode: &InodeState, change: &MetadataChange) -> u16 {
    let mut mode = inode.core.mode;
    if change.sets_owner() && inode.file_type() != FileType::Directory {
        mode &= !SET_USER;
        if mode & GROUP_EXECUTE != 0 {
            mode &= !SET_GROUP;
        }
    }
    change.mode.map_or(mode, |bits| (mode & !PERMISSIONS) | bits)
}

/// The access list of an inode, if it has one, as it follows a new mode.
fn following_list(
    volume: &Volume,
    inode: &InodeState,
    mode: u16,
) -> Result<Option<Vec<u8>>, Error> {
    let name = AclKind::Access.xattr_name().as_bytes();
    let all = attributes(volume, inode)?;
    let Some((_, value)) = all.iter().find(|(found, _)| found == name) else { return Ok(None) };
    let Some(mut list) = Acl::from_xattr(value)? else { return Ok(None) };
    list.set_mode(mode);
    Ok(Some(list.to_xattr()))
}

/// Takes the capabilities of a file away, if it has any.
pub(super) fn remove_capability(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
) -> Result<(), Error> {
    if inode.attr.is_none() {
        return Ok(());
    }
    let gone = Attribute { namespace: Namespace::Security, name: b"capability", value: &[] };
    attr::remove(&mut ForkWriter::new(trans, inode, ForkKind::Attr), &gone)?;
    Ok(())
}

fn apply(inode: &mut InodeState, change: &MetadataChange, mode: u16) {
    let core = &mut inode.core;
    core.mode = mode;
    core.uid = change.uid.unwrap_or(core.uid);
    core.gid = change.gid.unwrap_or(core.gid);
    core.project = change.project.unwrap_or(core.project);
    core.atime = change.access.unwrap_or(core.atime);
    core.mtime = change.modification.unwrap_or(core.mtime);
    core.crtime = change.creation.unwrap_or(core.crtime);
    if let Some(flags) = change.flags {
        core.flags = (core.flags - MetadataChange::FLAGS) | flags;
    }
    if let Some(is_set) = change.direct_access {
        core.flags2.set(InodeFlags2::DAX, is_set);
    }
}
