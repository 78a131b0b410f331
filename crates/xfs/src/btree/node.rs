//! The entries of one block, or of the root inside an inode, for reading and for change.
//!
//! Entries are counted from 1, as everywhere in the engine; 0 is "before the first".

use super::entries::Entries;
use super::frame::{Frame, Sizes};
use super::kind::{BlockPointer, BtreeKind};
use crate::bytes::EditBytes;
use crate::cache::{MetaBuffer, ReadGuard};
use crate::format::{BmapRoot, HeaderLayout};
use std::marker::PhantomData;

/// Bytes of a key on the stack; no kind has a longer one.
const KEY_BUFFER: usize = 40;
/// Bytes of a record on the stack; no kind has a longer one.
const RECORD_BUFFER: usize = 24;

/// Child of a node: the range of keys below it and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child<K: BtreeKind> {
    pub(super) low: K::Key,
    /// Equal to `low` in trees that do not overlap.
    pub(super) high: K::Key,
    pub(super) pointer: K::Pointer,
}

/// The entry that an insertion stores at one level.
#[derive(Debug)]
pub(super) enum Entry<K: BtreeKind> {
    Record(K::Record),
    Child(Child<K>),
}

enum Bytes<'a> {
    Block(ReadGuard<'a>),
    Inline(&'a [u8]),
}

/// A block, open for reading.
pub(super) struct Node<'a, K> {
    bytes: Bytes<'a>,
    frame: Frame,
    count: usize,
    kind: PhantomData<K>,
}

impl<'a, K: BtreeKind> Node<'a, K> {
    /// A block that was verified when it was loaded.
    #[inline]
    pub(super) fn block(buffer: &'a MetaBuffer, frame: Frame) -> Self {
        let guard = buffer.read();
        let count = usize::from(HeaderLayout::numrecs(&guard)).min(frame.max);
        Self { bytes: Bytes::Block(guard), frame, count, kind: PhantomData }
    }

    /// The root inside an inode.
    pub(super) fn inline(root: &'a BmapRoot, frame: Frame) -> Self {
        let count = root.len().min(frame.max);
        Self { bytes: Bytes::Inline(root.as_bytes()), frame, count, kind: PhantomData }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Block(guard) => guard,
            Bytes::Inline(bytes) => bytes,
        }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn max(&self) -> usize {
        self.frame.max
    }

    /// Right sibling; a root has none.
    #[inline]
    pub(super) fn right(&self) -> Option<K::Pointer> {
        self.sibling(self.frame.geometry.layout.right())
    }

    /// Left sibling; a root has none.
    #[inline]
    pub(super) fn left(&self) -> Option<K::Pointer> {
        self.sibling(self.frame.geometry.layout.left())
    }

    fn sibling(&self, offset: usize) -> Option<K::Pointer> {
        match &self.bytes {
            Bytes::Block(guard) => K::Pointer::load(guard, offset).present(),
            Bytes::Inline(_) => None,
        }
    }

    #[inline]
    pub(super) fn record(&self, index: usize) -> K::Record {
        Self::record_in(self.bytes(), &self.frame, index)
    }

    #[inline]
    fn record_in(bytes: &[u8], frame: &Frame, index: usize) -> K::Record {
        let at = frame.record::<K>(index);
        K::decode(&bytes[at..at + K::RECORD_LEN], &frame.geometry)
    }

    #[inline]
    fn key_in(bytes: &[u8], frame: &Frame, index: usize) -> K::Key {
        if frame.leaf {
            return K::key(&Self::record_in(bytes, frame, index));
        }
        let at = frame.key::<K>(index);
        K::decode_key(&bytes[at..at + K::KEY_LEN])
    }

    /// Sort key of an entry: the low key, where there are two.
    #[inline]
    pub(super) fn key(&self, index: usize) -> K::Key {
        Self::key_in(self.bytes(), &self.frame, index)
    }

    /// Highest key an entry covers; the low key in the nodes of trees that store no other.
    pub(super) fn high_key(&self, index: usize) -> K::Key {
        if self.frame.leaf {
            return K::high_key(&self.record(index));
        }
        let at = self.frame.key::<K>(index) + if K::OVERLAPPING { K::KEY_LEN } else { 0 };
        K::decode_key(&self.bytes()[at..at + K::KEY_LEN])
    }

    #[inline]
    pub(super) fn pointer(&self, index: usize) -> K::Pointer {
        K::Pointer::load(self.bytes(), self.frame.pointer::<K>(index))
    }

    /// Number of leading entries whose key fulfils `before`, which must hold for a prefix.
    #[inline]
    pub(super) fn partition(&self, before: impl Fn(&K::Key) -> bool) -> usize {
        if self.count == 0 {
            return 0;
        }
        let bytes = self.bytes();
        let holds = |index| before(&Self::key_in(bytes, &self.frame, index + 1));
        // Halves without a branch on the outcome, which no processor can predict.
        let (mut base, mut size) = (0, self.count);
        while size > 1 {
            let half = size / 2;
            base = std::hint::select_unpredictable(holds(base + half), base + half, base);
            size -= half;
        }
        base + usize::from(holds(base))
    }

    /// Key of the first entry, and the highest key of all entries if the tree keeps it; `None` if
    /// there are no entries.
    pub(super) fn bounds(&self) -> Option<(K::Key, K::Key)> {
        if self.count == 0 {
            return None;
        }
        let low = self.key(1);
        if !K::OVERLAPPING {
            return Some((low, low));
        }
        let highs = (2..=self.count).map(|index| self.high_key(index));
        Some((low, highs.fold(self.high_key(1), Ord::max)))
    }
}

/// A block, open for change.
pub(super) struct NodeEdit<'a, K> {
    entries: Entries<'a>,
    kind: PhantomData<K>,
}

impl<'a, K: BtreeKind> NodeEdit<'a, K> {
    pub(super) fn new(edit: EditBytes<'a>, frame: Frame) -> Self {
        Self { entries: Entries { edit, frame, sizes: Sizes::of::<K>() }, kind: PhantomData }
    }

    /// Sets the number of entries, at most the maximum of the block.
    pub(super) fn set_count(&mut self, count: usize) {
        self.entries.set_count(count);
    }

    pub(super) fn set_left(&mut self, pointer: K::Pointer) {
        let at = self.entries.frame.layout().left();
        pointer.store(self.raw(), at);
    }

    pub(super) fn set_right(&mut self, pointer: K::Pointer) {
        let at = self.entries.frame.layout().right();
        pointer.store(self.raw(), at);
    }

    /// The bytes, for fields outside the entries.
    pub(super) fn raw(&mut self) -> &mut EditBytes<'a> {
        &mut self.entries.edit
    }

    pub(super) fn put_record(&mut self, index: usize, record: &K::Record) {
        let mut bytes = [0; RECORD_BUFFER];
        let Entries { edit, frame, .. } = &mut self.entries;
        K::encode(record, &frame.geometry, &mut bytes);
        edit.put_bytes(frame.record::<K>(index), &bytes[..K::RECORD_LEN]);
    }

    pub(super) fn put_keys(&mut self, index: usize, low: &K::Key, high: &K::Key) {
        let mut bytes = [0; KEY_BUFFER];
        K::encode_key(low, &mut bytes);
        if K::OVERLAPPING {
            K::encode_key(high, &mut bytes[K::KEY_LEN..]);
        }
        let (at, stride) = (self.entries.frame.key::<K>(index), self.entries.sizes.keys);
        self.raw().put_bytes(at, &bytes[..stride]);
    }

    pub(super) fn put_pointer(&mut self, index: usize, pointer: K::Pointer) {
        let at = self.entries.frame.pointer::<K>(index);
        pointer.store(self.raw(), at);
    }

    fn put_child(&mut self, index: usize, child: &Child<K>) {
        self.put_keys(index, &child.low, &child.high);
        self.put_pointer(index, child.pointer);
    }

    /// Inserts an entry before the one at `index`; the block has room.
    pub(super) fn insert(&mut self, index: usize, entry: &Entry<K>) {
        self.entries.open_gap(index, 1);
        match entry {
            Entry::Record(record) => self.put_record(index, record),
            Entry::Child(child) => self.put_child(index, child),
        }
    }

    /// Appends a child; the block has room.
    pub(super) fn push(&mut self, child: &Child<K>) {
        let count = self.entries.count() + 1;
        self.set_count(count);
        self.put_child(count, child);
    }

    /// Removes the entry at `index`.
    pub(super) fn remove(&mut self, index: usize) {
        self.remove_range(index, 1);
    }

    /// Removes `width` entries from `index` on.
    pub(super) fn remove_range(&mut self, index: usize, width: usize) {
        self.entries.remove_range(index, width);
    }

    /// Appends entries `first..=last` of `source`, a block of the same level; there is room.
    pub(super) fn append(&mut self, source: &Node<'_, K>, first: usize, last: usize) {
        let count = self.entries.count();
        self.entries.copy(source.bytes(), &source.frame, first..last + 1, count + 1);
        self.set_count(count + last + 1 - first);
    }

    /// Inserts entries `first..=last` of `source`, a block of the same level, before the first
    /// one; there is room.
    pub(super) fn prepend(&mut self, source: &Node<'_, K>, first: usize, last: usize) {
        self.entries.open_gap(1, last + 1 - first);
        self.entries.copy(source.bytes(), &source.frame, first..last + 1, 1);
    }
}
