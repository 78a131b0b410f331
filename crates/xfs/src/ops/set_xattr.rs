//! One extended attribute of an inode in use, under the name that programs use.

use super::locks::Locked;
use super::unlink::affected;
use super::xattr::{disk_kind, invalid_list, split};
use super::{attribute_fork, path_text, set_attributes};
use crate::attr::{self, Attribute, SetMode};
use crate::bmap::worst_case;
use crate::bmap::{ForkReader, ForkWriter};
use crate::error::{Error, ErrorKind};
use crate::format::{Acl, AclKind, FileType, Namespace, Timestamp};
use crate::inode::{ForkKind, InodeState};
use crate::log::Work;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// The value of an attribute, `None` if the inode has none of this name.
///
/// # Errors
/// No attribute can have this name; a damaged structure; the device failed.
pub fn get_xattr(
    volume: &Volume,
    inode: &InodeState,
    name: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let stored = stored(name)?;
    inode.expect_in_use()?;
    if inode.attr.is_none() {
        return Ok(None);
    }
    let mut fork = ForkReader::new(volume, inode, ForkKind::Attr);
    let value = attr::get(&mut fork, stored.namespace, stored.name)?;
    match (value, disk_kind(&stored)) {
        (Some(value), Some(kind)) => {
            let list = Acl::from_disk(&value).map_err(|error| Error::Inode {
                inode: inode.number,
                what: format!("{}: {error}", kind.disk_name()),
            })?;
            Ok(Some(list.to_xattr()))
        }
        (value, _) => Ok(value),
    }
}

/// Stores an attribute. An access list sets the permission bits too, and is not stored if it says
/// no more than they do; a list without entries removes the one there is.
///
/// # Errors
/// A name or value that cannot be stored, or not on a file of this type; `mode` demands otherwise;
/// no space; a damaged structure; the device failed.
pub fn set_xattr(
    volume: &Volume,
    number: InodeNumber,
    (name, value): (&[u8], &[u8]),
    mode: SetMode,
    now: Timestamp,
) -> Result<(), Error> {
    let mut trans = volume.begin_for(Work::Attribute)?;
    let mut inodes = Locked::new(volume, &[number])?;
    let inode = inodes.get(number);
    let stored = Attribute { value, ..stored(name)? };
    stored.verify()?;
    check(inode, &stored)?;
    let list = match disk_kind(&stored) {
        Some(kind) => match access_list(kind, value)? {
            None => {
                drop((trans, inodes));
                return remove_xattr(volume, number, name, now).map(|_| ());
            }
            list => list,
        },
        None => None,
    };
    let exists = get_xattr(volume, inode, name)?.is_some();
    match mode {
        SetMode::Create if exists => return Err(Error::Exists(attribute_text(name))),
        SetMode::Replace if !exists => return Err(Error::NoAttribute(attribute_text(name))),
        _ => {}
    }
    let bytes = value.len().max(list_size(list.as_ref()));
    trans.reserve(worst_case::attribute(&trans, bytes) + attribute_fork::blocks(&trans, inode))?;
    trans.lock_groups(affected(volume, inode)?)?;
    trans.begin_changes();
    match &list {
        // A list that needs no storing must not leave an older one behind.
        Some(list) if list.to_disk(AclKind::Access).is_none() && is_access(&stored) => {
            inode.core.mode = list.mode(inode.core.mode);
            attr::remove(&mut ForkWriter::new(&mut trans, inode, ForkKind::Attr), &stored)?;
        }
        Some(list) => {
            let kind = if is_access(&stored) { AclKind::Access } else { AclKind::Default };
            let value = list.to_xattr();
            set_attributes(&mut trans, inode, [(kind.xattr_name().as_bytes(), &value[..])])?;
        }
        None => {
            attribute_fork::make(&mut trans, inode, attr::local_size([stored]))?;
            let mut fork = ForkWriter::new(&mut trans, inode, ForkKind::Attr);
            attr::set(&mut fork, &stored, SetMode::Either)?;
        }
    }
    inode.set_changed(now);
    trans.commit(&mut [inode])
}

/// Removes an attribute; `false` if there was none of this name.
///
/// # Errors
/// No attribute can have this name; the inode is immutable; a damaged structure; the device
/// failed.
pub fn remove_xattr(
    volume: &Volume,
    number: InodeNumber,
    name: &[u8],
    now: Timestamp,
) -> Result<bool, Error> {
    let mut trans = volume.begin_for(Work::Attribute)?;
    let mut inodes = Locked::new(volume, &[number])?;
    let inode = inodes.get(number);
    let stored = stored(name)?;
    check(inode, &stored)?;
    if get_xattr(volume, inode, name)?.is_none() {
        return Ok(false);
    }
    trans.reserve_for_removal(worst_case::removal(&trans));
    trans.lock_groups(affected(volume, inode)?)?;
    trans.begin_changes();
    attr::remove(&mut ForkWriter::new(&mut trans, inode, ForkKind::Attr), &stored)?;
    inode.set_changed(now);
    trans.commit(&mut [inode])?;
    Ok(true)
}

/// An attribute as it is stored, without its value.
fn stored(name: &[u8]) -> Result<Attribute<'_>, Error> {
    match AclKind::from_xattr_name(name) {
        Some(kind) => {
            let name = kind.disk_name().as_bytes();
            Ok(Attribute { namespace: Namespace::Trusted, name, value: &[] })
        }
        None => split(name, &[]),
    }
}

/// Refuses inodes that cannot have the attribute.
fn check(inode: &InodeState, attribute: &Attribute<'_>) -> Result<(), Error> {
    inode.expect_in_use()?;
    inode.expect_mutable(true)?;
    let kind = inode.file_type();
    let (what, refused) = match (disk_kind(attribute), attribute.namespace) {
        (Some(AclKind::Default), _) if kind != FileType::Directory => {
            ("only a directory has a default access list", ErrorKind::AccessDenied)
        }
        (Some(AclKind::Access), _) if kind == FileType::Symlink => {
            ("a symbolic link has no access list", ErrorKind::NotSupported)
        }
        (None, Namespace::User) if !matches!(kind, FileType::Regular | FileType::Directory) => {
            ("only files and directories have attributes of users", ErrorKind::NotPermitted)
        }
        _ => return Ok(()),
    };
    Err(Error::WrongKind { path: format!("inode {}", inode.number), what, kind: refused })
}

/// The list in a value, which may be in its form for programs or on disk; `None` if it has no
/// entries.
fn access_list(kind: AclKind, value: &[u8]) -> Result<Option<Acl>, Error> {
    match Acl::from_xattr(value) {
        Ok(list) => Ok(list),
        Err(error) => match Acl::from_disk(value) {
            Ok(list) => Ok(Some(list)),
            Err(_) => Err(invalid_list(kind.xattr_name())(error)),
        },
    }
}

fn is_access(attribute: &Attribute<'_>) -> bool {
    disk_kind(attribute) == Some(AclKind::Access)
}

fn list_size(list: Option<&Acl>) -> usize {
    list.and_then(|list| list.to_disk(AclKind::Default)).map_or(0, |value| value.len())
}

fn attribute_text(name: &[u8]) -> String {
    format!("attribute {}", path_text(name))
}
