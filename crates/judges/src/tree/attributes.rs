//! Extended attributes of any entry, symbolic links and devices among them, in a form that
//! compares.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;

use rustix::fs::{lgetxattr, llistxattr};
use rustix::io::Errno;

/// The kernel's limits for the list of names and for one value.
const LARGEST: usize = 65536;

/// XFS shows ACLs twice, the second time in its own form under these names; the portable form is
/// compared.
const SECOND_FORMS: [&[u8]; 2] = [b"trusted.SGI_ACL_FILE", b"trusted.SGI_ACL_DEFAULT"];

/// What `mkfs.xfs` says about a whole volume, in its root directory; no part of the tree.
const PROPERTY: &[u8] = b"trusted.xfs:autofsck";

/// Reads attributes with buffers that are kept from entry to entry.
pub(super) struct Reader {
    names: Vec<u8>,
    value: Vec<u8>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { names: vec![0; 1024], value: vec![0; 1024] }
    }

    /// All attributes of the entry at `path`, whose last component is not followed.
    pub(super) fn read(&mut self, path: &Path) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Errno> {
        let mut attributes = BTreeMap::new();
        let length = match grow(&mut self.names, |names| llistxattr(path, names)) {
            Err(Errno::NOTSUP) => 0,
            other => other?,
        };
        for name in self.names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            if SECOND_FORMS.contains(&name) || name == PROPERTY {
                continue;
            }
            let text = CString::new(name).expect("split at each zero byte");
            let length = grow(&mut self.value, |value| lgetxattr(path, text.as_c_str(), value))?;
            attributes.insert(name.to_owned(), self.value[..length].to_owned());
        }
        Ok(attributes)
    }
}

/// Calls `read` with a small buffer, and with the largest one when that is too small.
fn grow(
    buffer: &mut Vec<u8>,
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    match read(buffer) {
        Err(Errno::RANGE) if buffer.len() < LARGEST => {
            buffer.resize(LARGEST, 0);
            read(buffer)
        }
        other => other,
    }
}
