//! Access control lists of entries whose mode or owner changes.

use super::value::OwnerMap;
use crate::Entry;
use crate::acl::{ACCESS, DEFAULT, GROUP, GROUP_OBJ, MASK, OTHER, USER, USER_OBJ};

const VERSION_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;

fn tag(entry: &[u8]) -> u16 {
    u16::from_le_bytes([entry[0], entry[1]])
}

/// The entries of a list, if it has whole ones.
fn entries(value: &mut [u8]) -> std::slice::ChunksExactMut<'_, u8> {
    let start = VERSION_BYTES.min(value.len());
    value[start..].chunks_exact_mut(ENTRY_BYTES)
}

/// Makes the access list say what the mode does: the bits of the group are those of the mask, where
/// there is one.
pub(super) fn follow_mode(entry: &mut Entry) {
    let mode = entry.metadata.mode;
    let Some(list) = entry.xattrs.iter_mut().find(|xattr| xattr.name == ACCESS) else { return };
    let has_mask = entries(&mut list.value).any(|entry| tag(entry) == MASK);
    for entry in entries(&mut list.value) {
        let bits = match tag(entry) {
            USER_OBJ => mode >> 6 & 7,
            GROUP_OBJ if !has_mask => mode >> 3 & 7,
            MASK => mode >> 3 & 7,
            OTHER => mode & 7,
            _ => continue,
        };
        entry[2..4].copy_from_slice(&bits.to_le_bytes());
    }
}

/// Maps the users and groups that lists name.
pub(super) fn map_owners(entry: &mut Entry, map: &OwnerMap) {
    let lists =
        entry.xattrs.iter_mut().filter(|xattr| xattr.name == ACCESS || xattr.name == DEFAULT);
    for list in lists {
        for entry in entries(&mut list.value) {
            let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
            let id = match tag(entry) {
                USER => map.user(id),
                GROUP => map.group(id),
                _ => continue,
            };
            entry[4..].copy_from_slice(&id.to_le_bytes());
        }
    }
}
