//! Changes of attribute leaves.
//!
//! Free space is one region between the table and the lowest item; what removals leave above it
//! counts as a hole and is won back by compaction when an entry needs it. The free map on disk is
//! never trusted, only written, so leaves made by other writers are as good as ours.

use super::leaf::{FREE_MAP_SLOTS, field, local_item_size, remote_item_size};
use crate::bytes::EditBytes;
use crate::{ATTR_ENTRY_SIZE, AttrFlags, AttrLeafEntry, AttrLeafLayout, AttrValue};
use smallvec::SmallVec;

/// An attribute as it lies in a leaf: entry and item, free to move between leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttrItem {
    hash: u32,
    flags: AttrFlags,
    item: SmallVec<[u8; 64]>,
}

impl AttrItem {
    /// The item of an attribute. The flag `LOCAL` follows from the value.
    #[must_use]
    pub fn new(entry: &AttrLeafEntry<'_>) -> Self {
        let mut item = SmallVec::new();
        let mut flags = entry.flags - AttrFlags::LOCAL;
        // Lengths were checked by the caller: a name has at most 255 bytes, a local value less
        // than 3/4 of a block, which is at most 64 KiB.
        let size = match entry.value {
            AttrValue::Local(value) => {
                flags |= AttrFlags::LOCAL;
                item.extend_from_slice(&(value.len() as u16).to_be_bytes());
                item.push(entry.name.len() as u8);
                item.extend_from_slice(entry.name);
                item.extend_from_slice(value);
                local_item_size(entry.name.len(), value.len())
            }
            AttrValue::Remote { block, len } => {
                item.extend_from_slice(&(block.0 as u32).to_be_bytes());
                item.extend_from_slice(&len.to_be_bytes());
                item.push(entry.name.len() as u8);
                item.extend_from_slice(entry.name);
                remote_item_size(entry.name.len())
            }
        };
        item.resize(size, 0);
        Self { hash: entry.hash, flags, item }
    }

    /// Hash of its name.
    #[must_use]
    pub const fn hash(&self) -> u32 {
        self.hash
    }

    /// Bytes it takes in a leaf: item and table entry.
    #[must_use]
    pub fn size(&self) -> usize {
        self.item.len() + ATTR_ENTRY_SIZE
    }
}

impl AttrLeafLayout {
    /// Makes a block, whose common header is written, a leaf of these items (in hash order, their
    /// sizes at most [`capacity`](Self::capacity) together).
    pub fn rebuild<'i>(
        self,
        edit: &mut EditBytes<'_>,
        items: impl IntoIterator<Item = &'i AttrItem>,
    ) {
        edit.zero(self.at(0)..self.block_size);
        let (mut count, mut first) = (0, self.block_size);
        for item in items {
            first -= item.item.len();
            edit.put_bytes(first, &item.item);
            self.put_entry(edit, count, item, first);
            count += 1;
        }
        self.put_header(edit, count, self.block_size - first, first);
    }

    /// The entry at `index` with its item, to be put elsewhere.
    #[must_use]
    pub fn item(self, bytes: &[u8], index: usize) -> AttrItem {
        let at = self.item_offset(bytes, index);
        AttrItem {
            hash: self.hash(bytes, index),
            flags: self.entry(bytes, index).flags,
            item: SmallVec::from_slice(&bytes[at..at + self.item_size(bytes, index)]),
        }
    }

    /// Bytes that entry `index` takes: item and table entry.
    #[must_use]
    pub fn entry_size(self, bytes: &[u8], index: usize) -> usize {
        self.item_size(bytes, index) + ATTR_ENTRY_SIZE
    }

    /// Adds an item as entry `index`, where its hash belongs; `false` (and no change) without
    /// room.
    pub fn insert(self, edit: &mut EditBytes<'_>, index: usize, item: &AttrItem) -> bool {
        if self.free(edit.bytes()) < item.size() {
            return false;
        }
        let count = self.count(edit.bytes());
        if self.first_used(edit.bytes()) - self.entry_offset(count) < item.size() {
            let items: Vec<_> = (0..count).map(|index| self.item(edit.bytes(), index)).collect();
            self.rebuild(edit, &items);
        }
        let first = self.first_used(edit.bytes()) - item.item.len();
        let used = self.used(edit.bytes()) + item.item.len();
        edit.put_bytes(first, &item.item);
        let (from, end) = (self.entry_offset(index), self.entry_offset(count));
        edit.copy_within(from..end, from + ATTR_ENTRY_SIZE);
        self.put_entry(edit, index, item, first);
        self.put_header(edit, count + 1, used, first);
        true
    }

    /// Removes entry `index`.
    pub fn remove(self, edit: &mut EditBytes<'_>, index: usize) {
        let (at, size) =
            (self.item_offset(edit.bytes(), index), self.item_size(edit.bytes(), index));
        let count = self.count(edit.bytes()) - 1;
        let (used, lowest) = (self.used(edit.bytes()) - size, self.first_used(edit.bytes()));
        edit.zero(at..at + size);
        let end = self.entry_offset(count + 1);
        edit.copy_within(self.entry_offset(index + 1)..end, self.entry_offset(index));
        edit.zero(end - ATTR_ENTRY_SIZE..end);
        let first = if at > lowest {
            lowest
        } else {
            (0..count)
                .map(|index| self.item_offset(edit.bytes(), index))
                .min()
                .unwrap_or(self.block_size)
        };
        self.put_header(edit, count, used, first);
    }

    fn put_entry(self, edit: &mut EditBytes<'_>, index: usize, item: &AttrItem, at: usize) {
        let entry = self.entry_offset(index);
        edit.put_be32(entry, item.hash);
        // An item starts inside a block of at most 64 KiB.
        edit.put_be16(entry + 4, at as u16);
        edit.put_u8(entry + 6, item.flags.bits());
        edit.put_u8(entry + 7, 0);
    }

    /// Writes the counters and the free map. All numbers lie inside a block of at most 64 KiB;
    /// the one that can reach it, `first` of an empty leaf, is then stored as 0.
    fn put_header(self, edit: &mut EditBytes<'_>, count: usize, used: usize, first: usize) {
        edit.put_be16(self.at(field::COUNT), count as u16);
        edit.put_be16(self.at(field::USED), used as u16);
        edit.put_be16(self.at(field::FIRST_USED), first as u16);
        edit.put_u8(self.at(field::HOLES), u8::from(first + used != self.block_size));
        let table = self.entry_offset(count);
        let (base, size) = if first > table { (table, first - table) } else { (0, 0) };
        edit.zero(self.at(field::FREE_MAP)..self.at(field::FREE_MAP) + FREE_MAP_SLOTS * 4);
        edit.put_be16(self.at(field::FREE_MAP), base as u16);
        edit.put_be16(self.at(field::FREE_MAP) + 2, size as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Changes;
    use crate::inode::samples::geometry;
    use crate::units::FileBlock;
    use crate::{Namespace, verify_attr_leaf};
    use proptest::prelude::*;

    fn item(name: &[u8], value: AttrValue<'_>) -> AttrItem {
        let hash = Namespace::User.hash(name, &[], false);
        AttrItem::new(&AttrLeafEntry { hash, flags: AttrFlags::empty(), name, value })
    }

    proptest! {
        #[test]
        fn inserts_and_removals_keep_a_leaf_valid(
            block_log in prop_oneof![Just(10_u8), Just(12), Just(16)],
            steps in proptest::collection::vec((any::<u8>(), 1_usize..255, 0_usize..900), 1..120),
        ) {
            let geometry = geometry(block_log, 9);
            let layout = AttrLeafLayout::new(&geometry);
            let (mut bytes, mut changes) = (vec![0; layout.block_size], Changes::default());
            let mut edit = EditBytes::new(&mut bytes, &mut changes);
            layout.rebuild(&mut edit, []);
            let mut model: Vec<AttrItem> = Vec::new();
            for (choice, name, value) in steps {
                if choice < 100 && !model.is_empty() {
                    let index = usize::from(choice) % model.len();
                    layout.remove(&mut edit, index);
                    model.remove(index);
                } else {
                    let name = vec![choice.max(1); name];
                    let text = vec![7; value];
                    let value = if layout.is_local(name.len(), value) {
                        AttrValue::Local(&text)
                    } else {
                        AttrValue::Remote { block: FileBlock(9), len: 65536 }
                    };
                    let item = item(&name, value);
                    let index = model.partition_point(|other| other.hash < item.hash);
                    let total: usize = model.iter().map(AttrItem::size).sum();
                    let fits = total + item.size() <= layout.capacity();
                    prop_assert_eq!(layout.insert(&mut edit, index, &item), fits);
                    if fits {
                        model.insert(index, item);
                    }
                }
                prop_assert_eq!(verify_attr_leaf(edit.bytes(), &geometry), Ok(()));
                let found: Vec<_> =
                    (0..layout.count(edit.bytes())).map(|i| layout.item(edit.bytes(), i)).collect();
                prop_assert_eq!(&found, &model);
            }
        }

        #[test]
        fn any_bytes_verify_or_are_refused(
            mut bytes in proptest::collection::vec(any::<u8>(), 1024),
            count in 0_u8..6,
            offsets in proptest::collection::vec((200_u16..256, 0_u8..16), 6),
            crc: bool,
        ) {
            let mut geometry = geometry(10, 9);
            geometry.features.crc = crc;
            let layout = AttrLeafLayout::new(&geometry);
            bytes[layout.at(field::COUNT)] = 0;
            bytes[layout.at(field::COUNT) + 1] = count;
            bytes[layout.at(field::FIRST_USED)] = 1;
            for (index, (unit, flags)) in offsets.iter().enumerate() {
                let at = layout.entry_offset(index);
                bytes[at..at + 4].copy_from_slice(&(index as u32).to_be_bytes());
                bytes[at + 4..at + 6].copy_from_slice(&(unit * 4).to_be_bytes());
                bytes[at + 6] = *flags;
            }
            if verify_attr_leaf(&bytes, &geometry).is_ok() {
                for entry in layout.entries(&bytes) {
                    prop_assert!(!entry.name.is_empty());
                }
            }
        }
    }
}
