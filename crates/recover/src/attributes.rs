//! Extended attributes inside an inode.

use undercroft_xfs_format::{Acl, AclKind, AttrShortform, Namespace};

/// The attributes of a fork under their full names, with values as system calls have them.
pub(crate) fn of_shortform(fork: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Ok(list) = AttrShortform::parse(fork) else { return Vec::new() };
    let mut attributes: Vec<_> = list
        .entries()
        .filter(|entry| entry.namespace != Namespace::Parent)
        .filter_map(|entry| {
            let acl = AclKind::from_disk_name(entry.name);
            match acl.filter(|_| entry.namespace == Namespace::Trusted) {
                Some(kind) => {
                    let value = Acl::from_disk(entry.value).ok()?.to_xattr();
                    Some((kind.xattr_name().as_bytes().to_vec(), value))
                }
                None => Some((entry.namespace.full_name(entry.name), entry.value.to_vec())),
            }
        })
        .collect();
    attributes.sort_unstable();
    attributes
}
