//! The properties of one kind of tree that the engine needs.

use crate::bytes::{EditBytes, be32, be64};
use crate::format::{FieldDefect, TreeGeometry, TreeKind};
use crate::units::{AgBlock, FsBlock};
use std::fmt;

/// Pointer to a block of a tree: inside the group, or anywhere in the volume.
pub trait BlockPointer: Copy + Eq + fmt::Debug {
    /// Bytes on disk.
    const LEN: usize;
    /// "No block" in a sibling field.
    const NONE: Self;

    /// The pointer stored at `offset`.
    fn load(bytes: &[u8], offset: usize) -> Self;

    /// Stores the pointer at `offset`.
    fn store(self, edit: &mut EditBytes<'_>, offset: usize);

    /// The bare number, for messages.
    fn number(self) -> u64;

    /// The pointer, unless it is null.
    #[inline]
    fn present(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

impl BlockPointer for AgBlock {
    const LEN: usize = 4;
    const NONE: Self = Self::NULL;

    #[inline]
    fn load(bytes: &[u8], offset: usize) -> Self {
        Self(be32(bytes, offset))
    }

    fn store(self, edit: &mut EditBytes<'_>, offset: usize) {
        edit.put_be32(offset, self.0);
    }

    fn number(self) -> u64 {
        self.0.into()
    }
}

impl BlockPointer for FsBlock {
    const LEN: usize = 8;
    const NONE: Self = Self::NULL;

    #[inline]
    fn load(bytes: &[u8], offset: usize) -> Self {
        Self(be64(bytes, offset))
    }

    fn store(self, edit: &mut EditBytes<'_>, offset: usize) {
        edit.put_be64(offset, self.0);
    }

    fn number(self) -> u64 {
        self.0
    }
}

/// One kind of tree: its record, its order and its sizes.
///
/// Decoding is total: any bytes give a record or a key. What a cursor hands to its user has passed
/// [`validate`](Self::validate).
pub trait BtreeKind: Sized + 'static {
    /// Which tree.
    const TREE: TreeKind;
    /// Bytes of a record.
    const RECORD_LEN: usize;
    /// Bytes of one key.
    const KEY_LEN: usize;
    /// Records may overlap: nodes keep a low and a high key per child.
    const OVERLAPPING: bool;
    /// A full block gives way to an insertion by one entry, not by half of the room that its sibling
    /// has. Only for trees whose searches depend on which records share a leaf.
    const SHIFTS_ONE: bool = false;

    /// Record of a leaf.
    type Record: Copy + fmt::Debug;
    /// Sort key. Equal keys are the same place in the tree, even if a tree stores more with it.
    type Key: Copy + Ord + fmt::Debug;
    /// Pointer to a block of the tree.
    type Pointer: BlockPointer;

    /// Decodes a record.
    fn decode(bytes: &[u8], geometry: &TreeGeometry) -> Self::Record;

    /// Encodes a record into the first [`RECORD_LEN`](Self::RECORD_LEN) bytes of `out`.
    fn encode(record: &Self::Record, geometry: &TreeGeometry, out: &mut [u8]);

    /// Checks a record as far as it can be without knowing the volume.
    ///
    /// # Errors
    /// The field that is wrong.
    fn validate(record: &Self::Record) -> Result<(), FieldDefect>;

    /// Where the record sorts.
    fn key(record: &Self::Record) -> Self::Key;

    /// Key of the last thing the record covers (docs/format/btrees.md#order).
    fn high_key(record: &Self::Record) -> Self::Key;

    /// Decodes a stored key.
    fn decode_key(bytes: &[u8]) -> Self::Key;

    /// Encodes a key into the first [`KEY_LEN`](Self::KEY_LEN) bytes of `out`.
    fn encode_key(key: &Self::Key, out: &mut [u8]);
}
