//! The root of a fork's mapping tree, which lives in the inode.
//!
//! Four bytes of header, then keys, then pointers; the key array has room for as many entries as
//! the fork can hold, so the pointers move when the fork changes its size
//! (docs/format/extents.md#root).

use crate::bytes::{be16, be64, put_be16, put_be64};
use crate::units::{FileBlock, FsBlock};
use crate::{FieldDefect, MAX_TREE_HEIGHT, Rule};

/// Root of a mapping tree in the bytes of its fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BmapRoot {
    bytes: Vec<u8>,
}

impl BmapRoot {
    /// Bytes before the keys.
    pub const HEADER_LEN: usize = 4;
    /// Offset of the level (be16).
    pub const LEVEL: usize = 0;
    /// Offset of the number of entries (be16).
    pub const NUMRECS: usize = 2;
    /// Bytes of a key and a pointer.
    const ENTRY_LEN: usize = 16;

    /// A root of `fork_len` bytes over the leaf `child`, whose first mapping is at `first`. `None`
    /// if the fork has no room for an entry.
    #[must_use]
    pub fn over_leaf(fork_len: usize, first: FileBlock, child: FsBlock) -> Option<Self> {
        let capacity = Self::capacity_of(fork_len);
        (capacity > 0).then(|| {
            let mut bytes = vec![0; fork_len];
            put_be16(&mut bytes, Self::LEVEL, 1);
            put_be16(&mut bytes, Self::NUMRECS, 1);
            put_be64(&mut bytes, Self::HEADER_LEN, first.0);
            put_be64(&mut bytes, Self::HEADER_LEN + 8 * capacity, child.0);
            Self { bytes }
        })
    }

    /// Takes the bytes of a fork in B+tree format.
    ///
    /// # Errors
    /// The header field that is wrong.
    pub fn decode(fork: &[u8]) -> Result<Self, FieldDefect> {
        let capacity = Self::capacity_of(fork.len()) as u64;
        let room = Rule::Text("room for an entry");
        FieldDefect::unless(capacity > 0, "fork size", fork.len() as u64, room)?;
        let root = Self { bytes: fork.to_vec() };
        let (level, count) = (u64::from(root.level()), root.len() as u64);
        let highest = u64::from(MAX_TREE_HEIGHT) - 1;
        FieldDefect::unless(level >= 1, "level", level, Rule::AtLeast(1))?;
        FieldDefect::unless(level <= highest, "level", level, Rule::AtMost(highest))?;
        FieldDefect::unless(count >= 1, "numrecs", count, Rule::AtLeast(1))?;
        FieldDefect::unless(count <= capacity, "numrecs", count, Rule::AtMost(capacity))?;
        Ok(root)
    }

    const fn capacity_of(fork_len: usize) -> usize {
        fork_len.saturating_sub(Self::HEADER_LEN) / Self::ENTRY_LEN
    }

    /// The bytes, as long as the fork.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes for the engine's edits, which keep the header consistent.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Level, at least 1.
    #[must_use]
    pub fn level(&self) -> u16 {
        be16(&self.bytes, Self::LEVEL)
    }

    /// Entries in use.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(be16(&self.bytes, Self::NUMRECS))
    }

    /// Never: a root has at least one entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries the fork has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        Self::capacity_of(self.bytes.len())
    }

    /// The entries: first file block and block of each child.
    pub fn entries(&self) -> impl Iterator<Item = (FileBlock, FsBlock)> + '_ {
        let (keys, pointers) = (Self::HEADER_LEN, Self::HEADER_LEN + 8 * self.capacity());
        (0..self.len().min(self.capacity())).map(move |entry| {
            let key = FileBlock(be64(&self.bytes, keys + 8 * entry));
            (key, FsBlock(be64(&self.bytes, pointers + 8 * entry)))
        })
    }

    /// The same root in a fork of another size; `None` if its entries do not fit.
    #[must_use]
    pub fn resized(&self, fork_len: usize) -> Option<Self> {
        let (capacity, count) = (Self::capacity_of(fork_len), self.len());
        (count <= capacity).then(|| {
            let mut bytes = vec![0; fork_len];
            bytes[..Self::HEADER_LEN].copy_from_slice(&self.bytes[..Self::HEADER_LEN]);
            for (entry, (key, pointer)) in self.entries().enumerate() {
                put_be64(&mut bytes, Self::HEADER_LEN + 8 * entry, key.0);
                put_be64(&mut bytes, Self::HEADER_LEN + 8 * (capacity + entry), pointer.0);
            }
            Self { bytes }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_of_the_reference() {
        let root = BmapRoot::over_leaf(336, FileBlock(0), FsBlock(9)).unwrap();
        assert_eq!(root.capacity(), 20);
        assert_eq!(root.resized(192).unwrap().capacity(), 11);
        assert!(BmapRoot::over_leaf(19, FileBlock(0), FsBlock(9)).is_none());
    }

    #[test]
    fn resizing_moves_the_pointers() {
        let root = BmapRoot::over_leaf(336, FileBlock(5), FsBlock(9)).unwrap();
        let small = root.resized(52).unwrap();
        assert_eq!(small.as_bytes().len(), 52);
        assert_eq!(be64(small.as_bytes(), 4 + 8 * 3), 9);
        assert_eq!(small.entries().collect::<Vec<_>>(), [(FileBlock(5), FsBlock(9))]);
        assert_eq!(small.resized(336).unwrap(), root);
        assert_eq!(BmapRoot::decode(small.as_bytes()), Ok(small));
    }

    #[test]
    fn wrong_headers_are_refused() {
        let good = BmapRoot::over_leaf(68, FileBlock(5), FsBlock(9)).unwrap();
        for (at, value, field) in
            [(0, 0, "level"), (0, 99, "level"), (2, 0, "numrecs"), (2, 5, "numrecs")]
        {
            let mut bytes = good.as_bytes().to_vec();
            put_be16(&mut bytes, at, value);
            assert_eq!(BmapRoot::decode(&bytes).unwrap_err().field, field);
        }
        assert_eq!(BmapRoot::decode(&[0; 3]).unwrap_err().field, "fork size");
    }
}
