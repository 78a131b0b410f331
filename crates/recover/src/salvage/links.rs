//! Names of files, with what says them.

use undercroft_xfs_format::EntryType;
use undercroft_xfs_format::units::InodeNumber;

use crate::directory::Entry;
use crate::names::Name;

/// What says a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// An entry of the directory.
    Entry(Kind),
    /// An attribute of the file, which knows the generation of its parent.
    Pointer(u32),
}

/// The kind of a file, as an entry has it.
pub(super) type Kind = u8;

/// A name of a file in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) child: InodeNumber,
    pub(super) parent: InodeNumber,
    pub(super) name: Box<[u8]>,
    pub(super) source: Source,
}

impl Link {
    pub(super) fn entry(parent: InodeNumber, entry: Entry) -> Self {
        let source = Source::Entry(entry.kind as Kind);
        Self { child: entry.inode, parent, name: entry.name.into(), source }
    }

    pub(super) fn pointer(child: InodeNumber, name: Name) -> Self {
        let source = Source::Pointer(name.generation.unwrap_or(0));
        Self { child, parent: name.parent, name: name.name.into(), source }
    }

    /// The kind that an entry says.
    pub(super) fn kind(&self) -> Option<EntryType> {
        match self.source {
            Source::Entry(kind) => EntryType::from_raw(kind),
            Source::Pointer(_) => None,
        }
    }
}
