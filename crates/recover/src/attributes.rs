//! Extended attributes of inodes.

use undercroft_xfs_format::{Acl, AclKind, AttrShortform, Namespace};

/// The attributes of a fork inside an inode under their full names, with values as system calls have
/// them.
pub(crate) fn of_shortform(fork: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Ok(list) = AttrShortform::parse(fork) else { return Vec::new() };
    let entries = list.entries().filter(|entry| entry.namespace != Namespace::Parent);
    let mut attributes: Vec<_> =
        entries.filter_map(|entry| named(entry.namespace, entry.name, entry.value)).collect();
    attributes.sort_unstable();
    attributes
}

/// An attribute under its full name, with its value as system calls have it.
pub(crate) fn named(namespace: Namespace, name: &[u8], value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let acl = AclKind::from_disk_name(name).filter(|_| namespace == Namespace::Trusted);
    match acl {
        Some(kind) => {
            let value = Acl::from_disk(value).ok()?.to_xattr();
            Some((kind.xattr_name().as_bytes().to_vec(), value))
        }
        None => Some((namespace.full_name(name), value.to_vec())),
    }
}
