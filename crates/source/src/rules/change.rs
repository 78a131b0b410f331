//! Rules that change entries.

use super::access;
use super::value::OwnerMap;
use crate::selinux::{self, FileContexts, LabelledKind};
use crate::{Entry, EntryPath, Kind, ModeChange, Timestamp, Xattr};
use std::sync::Arc;

/// What becomes of the entries that a rule is for.
#[derive(Debug, Clone)]
pub(super) enum Change {
    OwnerMap(OwnerMap),
    Owner { uid: Option<u32>, gid: Option<u32> },
    Mode(ModeChange),
    Xattr { name: Vec<u8>, value: Vec<u8> },
    Modified(Timestamp),
    Labels(Arc<FileContexts>),
}

impl Change {
    /// Applies the change to an entry, which is no hard link.
    pub(super) fn apply(&self, entry: &mut Entry) {
        let metadata = &mut entry.metadata;
        match self {
            Self::OwnerMap(map) => {
                metadata.uid = map.user(metadata.uid);
                metadata.gid = map.group(metadata.gid);
                access::map_owners(entry, map);
            }
            Self::Owner { uid, gid } => {
                metadata.uid = uid.unwrap_or(metadata.uid);
                metadata.gid = gid.unwrap_or(metadata.gid);
            }
            // That of a symbolic link means nothing, and chmod leaves it alone.
            Self::Mode(_) if matches!(entry.kind, Kind::Symlink(_)) => {}
            Self::Mode(change) => {
                metadata.mode = change.apply(metadata.mode, entry.kind == Kind::Directory);
                access::follow_mode(entry);
            }
            Self::Xattr { name, value } => {
                // Kernels keep these of files and directories alone.
                let holds = matches!(entry.kind, Kind::Regular { .. } | Kind::Directory);
                if holds || !name.starts_with(b"user.") {
                    set(&mut entry.xattrs, name, value.clone());
                }
            }
            Self::Modified(time) => metadata.mtime = *time,
            Self::Labels(contexts) => {
                let kind = LabelledKind::of(&entry.kind);
                if let Some(label) = kind.and_then(|kind| label(contexts, &entry.path, kind)) {
                    // As setfiles writes it.
                    let value = [label, b"\0"].concat();
                    set(&mut entry.xattrs, selinux::ATTRIBUTE, value);
                }
            }
        }
    }
}

/// The label that a policy has for an entry.
pub(super) fn label<'a>(
    contexts: &'a FileContexts,
    path: &EntryPath,
    kind: LabelledKind,
) -> Option<&'a [u8]> {
    contexts.lookup(&[b"/", path.as_bytes()].concat(), kind)
}

/// Sets an attribute; the list stays sorted by name.
fn set(xattrs: &mut Vec<Xattr>, name: &[u8], value: Vec<u8>) {
    match xattrs.binary_search_by(|xattr| xattr.name.as_slice().cmp(name)) {
        Ok(at) => xattrs[at].value = value,
        Err(at) => xattrs.insert(at, Xattr { name: name.to_vec(), value }),
    }
}
