//! Extended attributes under the names that programs use.
//!
//! ACLs have a form of their own on disk (docs/format/access-control-lists.md#value); all other
//! attributes are stored as they are, without their prefix.

use super::{attribute_fork, path_text};
use crate::alloc;
use crate::attr::{self, Attribute};
use crate::bmap::{ForkReader, ForkWriter};
use crate::error::Error;
use crate::format::Namespace;
use crate::format::{Acl, AclKind};
use crate::inode::{ForkKind, InodeState};
use crate::trans::Transaction;
use crate::volume::Volume;
use std::fmt::Display;

/// A full name with its prefix, and a value.
pub type NamedValue = (Vec<u8>, Vec<u8>);

/// Gives a new inode these attributes, by their full names. An access ACL sets the permission bits
/// of the mode as well, and is not stored when it says no more than they do. ACLs may also come in
/// their form on disk, under the names `trusted.SGI_ACL_FILE` and `trusted.SGI_ACL_DEFAULT`.
///
/// # Errors
/// A name or value cannot be stored; no space; a damaged structure; the device failed.
pub fn set_attributes<'a>(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    attributes: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), Error> {
    alloc::return_if_scarce(trans)?;
    let Sorted { mut plain, lists } = sort(attributes)?;
    let lists: Vec<_> = lists
        .iter()
        .filter_map(|(kind, list)| Some((*kind, disk_list(inode, *kind, list.as_ref()?)?)))
        .collect();
    plain.extend(lists.iter().map(|(kind, value)| Attribute {
        namespace: Namespace::Trusted,
        name: kind.disk_name().as_bytes(),
        value,
    }));
    if plain.is_empty() {
        return Ok(());
    }
    attribute_fork::make(trans, inode, attr::local_size(plain.iter().copied()))?;
    attr::set_all(&mut ForkWriter::new(trans, inode, ForkKind::Attr), &plain)
}

/// Attributes by the form in which they are stored.
struct Sorted<'a> {
    plain: Vec<Attribute<'a>>,
    lists: Vec<(AclKind, Option<Acl>)>,
}

/// Finds all that speaks against [storing](set_attributes) these attributes, but for space.
///
/// # Errors
/// A name or value cannot be stored, or a name is there twice.
pub(super) fn check_attributes<'a>(
    attributes: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), Error> {
    attr::verify_all(&sort(attributes)?.plain)
}

fn sort<'a>(
    attributes: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<Sorted<'a>, Error> {
    let (mut plain, mut lists, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in attributes {
        if let Some(kind) = AclKind::from_xattr_name(name) {
            lists.push((kind, Acl::from_xattr(value).map_err(invalid_list(kind.xattr_name()))?));
            continue;
        }
        let attribute = split(name, value)?;
        match disk_kind(&attribute) {
            Some(kind) => raw.push((kind, value)),
            None => plain.push(attribute),
        }
    }
    // Kernels show a list of an XFS volume under both names; each is stored once.
    for (kind, value) in raw {
        if lists.iter().all(|(known, _)| *known != kind) {
            let list = Acl::from_disk(value).map_err(invalid_list(kind.disk_name()))?;
            lists.push((kind, Some(list)));
        }
    }
    Ok(Sorted { plain, lists })
}

pub(super) fn split<'a>(name: &'a [u8], value: &'a [u8]) -> Result<Attribute<'a>, Error> {
    let (namespace, name) = Namespace::split(name).ok_or_else(|| {
        Error::NotSupported(format!(
            "attribute {}: XFS stores user., trusted. and security. attributes and POSIX ACLs",
            path_text(name)
        ))
    })?;
    Ok(Attribute { namespace, name, value })
}

/// Which ACL an attribute is, under its name on disk.
pub(super) fn disk_kind(attribute: &Attribute<'_>) -> Option<AclKind> {
    let trusted = attribute.namespace == Namespace::Trusted;
    trusted.then(|| AclKind::from_disk_name(attribute.name)).flatten()
}

pub(super) fn invalid_list<E: Display>(name: &str) -> impl FnOnce(E) -> Error {
    move |error| Error::Invalid(format!("{name}: {error}"))
}

/// The disk form of an ACL, unless it need not be stored; the mode follows an access list.
fn disk_list(inode: &mut InodeState, kind: AclKind, list: &Acl) -> Option<Vec<u8>> {
    if kind == AclKind::Access {
        inode.core.mode = list.mode(inode.core.mode);
        inode.touch();
    }
    list.to_disk(kind)
}

/// The attributes of an inode under their full names, in the order of the volume. Parent pointers
/// are not among them.
///
/// # Errors
/// A damaged structure, or the device failed.
pub fn attributes(volume: &Volume, inode: &InodeState) -> Result<Vec<NamedValue>, Error> {
    let mut found = Vec::new();
    if inode.attr.is_none() {
        return Ok(found);
    }
    let mut fork = ForkReader::new(volume, inode, ForkKind::Attr);
    attr::for_each(&mut fork, &mut |attribute| {
        if attribute.namespace == Namespace::Parent {
            return Ok(());
        }
        let named = match disk_kind(attribute) {
            Some(kind) => {
                let list = Acl::from_disk(attribute.value).map_err(|error| Error::Inode {
                    inode: inode.number,
                    what: format!("{}: {error}", kind.disk_name()),
                })?;
                (kind.xattr_name().as_bytes().to_vec(), list.to_xattr())
            }
            None => (attribute.namespace.full_name(attribute.name), attribute.value.to_vec()),
        };
        found.push(named);
        Ok(())
    })?;
    Ok(found)
}
