//! Common parts of the headers of an allocation group: their errors, the checks of the fields that
//! identify them, and the pair of root and height of a tree.

use crate::bytes::{EditBytes, array, be32};
use crate::checksum::ChecksumError;
use crate::geometry::Geometry;
use crate::units::{AgBlock, AgNumber};
use thiserror::Error;
use uuid::Uuid;

/// The defect of a header.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HeaderError {
    /// The checksum does not match.
    #[error(transparent)]
    Checksum(#[from] ChecksumError),

    /// A field must have one certain value and has another.
    #[error("{field} is {found:#x}, expected {expected:#x}")]
    Value {
        /// Name in docs/format/groups.md.
        field: &'static str,
        /// Value on disk.
        found: u64,
        /// Value it must have.
        expected: u64,
    },

    /// A field is outside its range.
    #[error("{field} is {found}, the range is {min} to {max}")]
    Range {
        /// Name in docs/format/groups.md.
        field: &'static str,
        /// Value on disk.
        found: u64,
        /// Lowest legal value.
        min: u64,
        /// Highest legal value.
        max: u64,
    },

    /// The structure belongs to another volume.
    #[error("uuid is {found}, the volume has {expected}")]
    Uuid {
        /// Value on disk.
        found: Uuid,
        /// Metadata identifier of the volume.
        expected: Uuid,
    },

    /// The number of free-list entries and the ends of the list contradict each other: damage, or
    /// a list that wrapped under a kernel before 4.5, which saw one slot fewer.
    #[error(
        "the free list holds {counted} blocks from slot {first} to {last} of {slots}, flcount says \
         {count}; `xfs_repair` rebuilds the list"
    )]
    FreeList {
        /// First live slot.
        first: u32,
        /// Last live slot.
        last: u32,
        /// Slots of the list.
        slots: u32,
        /// Live slots by `first` and `last`.
        counted: u32,
        /// Live slots by the counter.
        count: u32,
    },
}

impl HeaderError {
    /// The field that is wrong, by its name in docs/format/groups.md.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Checksum(_) => "crc",
            Self::Value { field, .. } | Self::Range { field, .. } => field,
            Self::Uuid { .. } => "uuid",
            Self::FreeList { .. } => "flcount",
        }
    }
}

/// Root block and height of a tree; all zero when the volume has no such tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeRoot {
    /// Root block.
    pub block: AgBlock,
    /// Number of levels; a root that is a leaf has 1.
    pub levels: u32,
}

pub(crate) fn check_value(
    field: &'static str,
    found: impl Into<u64>,
    expected: impl Into<u64>,
) -> Result<(), HeaderError> {
    let (found, expected) = (found.into(), expected.into());
    if found == expected { Ok(()) } else { Err(HeaderError::Value { field, found, expected }) }
}

pub(crate) fn check_range(
    field: &'static str,
    found: u32,
    min: u32,
    max: u32,
) -> Result<(), HeaderError> {
    if (min..=max).contains(&found) {
        Ok(())
    } else {
        let (found, min, max) = (found.into(), min.into(), max.into());
        Err(HeaderError::Range { field, found, min, max })
    }
}

pub(crate) fn check_uuid(
    bytes: &[u8],
    offset: usize,
    geometry: &Geometry,
) -> Result<(), HeaderError> {
    let found = Uuid::from_bytes(array(bytes, offset));
    let expected = geometry.meta_uuid;
    if found == expected { Ok(()) } else { Err(HeaderError::Uuid { found, expected }) }
}

/// Magic, version, group number and length, the first sixteen bytes of AGF and AGI, and where v5
/// headers have the volume's identifier.
pub(crate) fn check_identity(
    bytes: &[u8],
    (magic, uuid): (u32, usize),
    geometry: &Geometry,
    ag: AgNumber,
) -> Result<(), HeaderError> {
    check_value("magicnum", be32(bytes, 0), magic)?;
    check_value("versionnum", be32(bytes, 4), 1_u32)?;
    check_value("seqno", be32(bytes, 8), ag.0)?;
    check_value("length", be32(bytes, 12), geometry.ag_length(ag))?;
    if geometry.features.crc { check_uuid(bytes, uuid, geometry) } else { Ok(()) }
}

/// Root and height of a tree as two fields say.
pub(crate) fn tree_root(bytes: &[u8], block: usize, levels: usize) -> TreeRoot {
    TreeRoot { block: AgBlock(be32(bytes, block)), levels: be32(bytes, levels) }
}

/// A tree that must exist: root inside the group, height possible.
pub(crate) fn check_root(
    names: (&'static str, &'static str),
    root: TreeRoot,
    max_levels: u32,
    geometry: &Geometry,
    ag: AgNumber,
) -> Result<(), HeaderError> {
    let first = geometry.ag_header_last().0 + 1;
    check_range(names.0, root.block.0, first, geometry.ag_length(ag).saturating_sub(1))?;
    check_range(names.1, root.levels, 1, max_levels)
}

/// Stores the words that differ from the bytes, so that only they count as changed.
pub(crate) fn store_changes(edit: &mut EditBytes<'_>, words: impl Iterator<Item = (usize, u32)>) {
    for (offset, value) in words {
        if be32(edit.bytes(), offset) != value {
            edit.put_be32(offset, value);
        }
    }
}
