//! Entries in the one form in which they are compared.

use undercroft_source::Entry;
use undercroft_xfs::format::{Acl, AclKind};
use undercroft_xfs::mkfs::is_property;

/// What names of access lists in their form on disk begin with.
const ON_DISK: &[u8] = b"trusted.";

/// Brings an entry into the form that it would have in a volume. An access list that cannot be
/// decoded stays as it is.
pub(super) fn normalize(entry: &mut Entry) {
    if entry.path.is_root() {
        entry.xattrs.retain(|xattr| !is_property(&xattr.name));
    }
    // Kernels show the lists of an XFS volume under two names.
    let names: Vec<_> = entry.xattrs.iter().map(|xattr| xattr.name.clone()).collect();
    entry.xattrs.retain_mut(|xattr| {
        let on_disk = xattr.name.strip_prefix(ON_DISK).and_then(AclKind::from_disk_name);
        if let (Some(kind), Ok(list)) = (on_disk, Acl::from_disk(&xattr.value)) {
            let name = kind.xattr_name().as_bytes();
            if names.iter().any(|other| other == name) {
                return false;
            }
            (xattr.name, xattr.value) = (name.to_vec(), list.to_xattr());
        }
        let Some(kind) = AclKind::from_xattr_name(&xattr.name) else { return true };
        match Acl::from_xattr(&xattr.value) {
            Ok(Some(list)) => {
                if kind == AclKind::Access {
                    entry.metadata.mode = list.mode(entry.metadata.mode);
                }
                xattr.value = list.to_xattr();
                list.to_disk(kind).is_some()
            }
            Ok(None) => false,
            Err(_) => true,
        }
    });
    entry.xattrs.sort_unstable_by(|one, other| one.name.cmp(&other.name));
}
