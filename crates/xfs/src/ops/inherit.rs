//! What a directory hands down to what is created in it (docs/format/inodes.md#inheritance).

use super::{NamedValue, NewInode, attributes, set_attributes};
use crate::error::Error;
use crate::format::{Acl, AclKind, FileType, InodeFlags, InodeFlags2};
use crate::inode::InodeState;
use crate::trans::Transaction;
use crate::volume::Volume;

/// Set group id: new files in such a directory take its group.
const SET_GROUP: u16 = 0o2000;

/// Flags that files and directories take over as they are.
const COMMON: InodeFlags = InodeFlags::SYNC
    .union(InodeFlags::NOATIME)
    .union(InodeFlags::NODUMP)
    .union(InodeFlags::NOSYMLINKS)
    .union(InodeFlags::NODEFRAG)
    .union(InodeFlags::FILESTREAM);

/// The attributes that a new inode inherits from its directory.
#[derive(Debug)]
pub(super) struct Inherited {
    /// Group, from a directory with the set-group-id bit.
    group: Option<u32>,
    /// The bit itself, for directories.
    mode: u16,
    project: u32,
    flags: InodeFlags,
    flags2: InodeFlags2,
    extsize: u32,
    cowextsize: u32,
    /// Access lists, by their names in Linux.
    pub(super) attributes: Vec<NamedValue>,
}

impl Inherited {
    /// What `directory` hands down to a new inode of type `kind`.
    ///
    /// # Errors
    /// The directory's attributes are damaged, or the device failed.
    pub(super) fn from(
        volume: &Volume,
        directory: &InodeState,
        kind: FileType,
    ) -> Result<Self, Error> {
        let core = &directory.core;
        let subdirectory = kind == FileType::Directory;
        let with_group = core.mode & SET_GROUP != 0;
        let inherits = core.flags.contains(InodeFlags::PROJINHERIT);
        let mut new = Self {
            group: with_group.then_some(core.gid),
            mode: if with_group && subdirectory { SET_GROUP } else { 0 },
            project: if inherits { core.project } else { 0 },
            flags: InodeFlags::empty(),
            flags2: InodeFlags2::empty(),
            extsize: 0,
            cowextsize: 0,
            attributes: access_lists(volume, directory, kind)?,
        };
        if !matches!(kind, FileType::Directory | FileType::Regular) {
            return Ok(new);
        }
        new.flags = core.flags & COMMON;
        if subdirectory {
            new.flags |= core.flags & (InodeFlags::PROJINHERIT | InodeFlags::RTINHERIT);
        }
        if core.flags.contains(InodeFlags::EXTSZINHERIT) {
            new.extsize = core.extsize;
            new.flags |= if subdirectory { InodeFlags::EXTSZINHERIT } else { InodeFlags::EXTSIZE };
        }
        new.flags2 = core.flags2 & (InodeFlags2::DAX | InodeFlags2::COWEXTSIZE);
        if core.flags2.contains(InodeFlags2::COWEXTSIZE) {
            new.cowextsize = core.cowextsize;
        }
        Ok(new)
    }

    /// The new inode with the group and mode that it gets.
    pub(super) fn apply<'n>(&self, new: &NewInode<'n>) -> NewInode<'n> {
        NewInode { gid: self.group.unwrap_or(new.gid), mode: new.mode | self.mode, ..new.clone() }
    }

    /// Gives the inode all else.
    ///
    /// # Errors
    /// No space for the access lists; a damaged structure; the device failed.
    pub(super) fn give(
        &self,
        trans: &mut Transaction<'_>,
        inode: &mut InodeState,
    ) -> Result<(), Error> {
        let core = &mut inode.core;
        core.project = self.project;
        core.flags |= self.flags;
        core.flags2 |= self.flags2;
        (core.extsize, core.cowextsize) = (self.extsize, self.cowextsize);
        inode.touch();
        for (name, value) in &self.attributes {
            let list = Acl::from_xattr(value)?;
            let Some(mut list) = list else { continue };
            let value = if AclKind::from_xattr_name(name) == Some(AclKind::Access) {
                // No class gets more than both the directory and the creator allow.
                list.restrict(inode.core.mode);
                list.to_xattr()
            } else {
                value.clone()
            };
            set_attributes(trans, inode, [(&name[..], &value[..])])?;
        }
        Ok(())
    }
}

/// The default list of a directory: the access list of new files in it, and the default list of a
/// new directory as well.
fn access_lists(
    volume: &Volume,
    directory: &InodeState,
    kind: FileType,
) -> Result<Vec<NamedValue>, Error> {
    if kind == FileType::Symlink {
        return Ok(Vec::new());
    }
    let default = AclKind::Default.xattr_name().as_bytes();
    let all = attributes(volume, directory)?;
    let Some((_, list)) = all.into_iter().find(|(name, _)| name == default) else {
        return Ok(Vec::new());
    };
    let mut lists = vec![(AclKind::Access.xattr_name().as_bytes().to_vec(), list.clone())];
    if kind == FileType::Directory {
        lists.push((default.to_vec(), list));
    }
    Ok(lists)
}
