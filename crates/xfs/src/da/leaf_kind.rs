//! The properties of leaves that the hash tree needs: directories and attributes each have their
//! own.

use crate::bytes::EditBytes;
use crate::format::BufferKind;

/// One of two neighbouring blocks in hash order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one with the lower hashes.
    Left,
    /// The one with the higher hashes.
    Right,
}

/// A kind of leaf. The bytes handed in were verified as such a leaf; the common header (links,
/// magic, self-address) is the tree's business, everything behind it is the leaf's.
pub(crate) trait LeafKind {
    /// How its buffers are read and verified.
    const KIND: BufferKind;

    /// The entry that a split makes room for.
    type Entry;

    /// Makes a zeroed block, whose common header is written, an empty leaf.
    fn init(&self, leaf: &mut EditBytes<'_>);

    /// Highest hash, `None` without entries.
    fn last_hash(&self, leaf: &[u8]) -> Option<u32>;

    /// Moves the upper entries of `left` to the empty leaf `right` so that both keep at least one
    /// entry, and says which of them the new entry belongs to. It may still not fit there: the
    /// caller, which adds it, splits again. Where entries may be nearly as large as a leaf, a split
    /// may add the entry itself, and counts it as one that its leaf keeps.
    fn split(
        &self,
        left: &mut EditBytes<'_>,
        right: &mut EditBytes<'_>,
        entry: &Self::Entry,
    ) -> Side;

    /// Whether the leaf holds nothing and can be taken out of the tree.
    fn is_empty(&self, leaf: &[u8]) -> bool;

    /// Whether at most half of it is used, so that a merge is worth trying.
    fn is_sparse(&self, leaf: &[u8]) -> bool;

    /// Whether the two fit one leaf and leave some room there.
    fn can_merge(&self, left: &[u8], right: &[u8]) -> bool;

    /// Moves the entries of `dropped`, which is on the `side` of `kept` in hash order, to `kept`.
    fn merge(&self, kept: &mut EditBytes<'_>, dropped: &[u8], side: Side);
}
