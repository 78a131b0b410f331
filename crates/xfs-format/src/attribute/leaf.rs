//! Attribute leaves (docs/format/attributes.md#leaves): reading and verifying.
//!
//! A sorted table of entries grows up behind the header, names and values grow down from the end.
//! Accessors index directly and expect a block that [`verify_attr_leaf`] accepted; changes are in
//! `attr_leaf_edit.rs`.

use crate::bytes::{be16, be32};
use crate::geometry::Geometry;
use crate::hash_tree::block::DaLayout;
use crate::units::FileBlock;
use crate::{ATTR_VALUE_MAX, AttrFlags, Namespace, PARENT_VALUE_SIZE, verify_attr_name};
use smallvec::{SmallVec, smallvec};

/// Bytes of one entry of the table.
pub const ATTR_ENTRY_SIZE: usize = 8;

/// Bytes of a local item before its name: value length, name length.
pub(crate) const LOCAL_HEADER: usize = 3;

/// Bytes of a remote item before its name: block, value length, name length.
pub(crate) const REMOTE_HEADER: usize = 9;

/// Bytes that a remote item has besides its name: two of them are padding that the format counts.
const REMOTE_OVERHEAD: usize = 11;

/// Items start at multiples of this.
pub(crate) const ITEM_ALIGN: usize = 4;

/// Fields behind the common header, as offsets from its end.
pub(crate) mod field {
    pub(crate) const COUNT: usize = 0;
    pub(crate) const USED: usize = 2;
    pub(crate) const FIRST_USED: usize = 4;
    pub(crate) const HOLES: usize = 6;
    pub(crate) const FREE_MAP: usize = 8;
}

/// Regions in the free map.
pub(crate) const FREE_MAP_SLOTS: usize = 3;

/// Where the fields of an attribute leaf are on one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrLeafLayout {
    /// Version 5 headers.
    pub crc: bool,
    /// Bytes per block.
    pub block_size: usize,
}

/// Where the value of an attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrValue<'a> {
    /// Beside the name.
    Local(&'a [u8]),
    /// In blocks of its own in the attribute fork.
    Remote {
        /// First of them; 0 as long as the entry is incomplete.
        block: FileBlock,
        /// Bytes of the value.
        len: u32,
    },
}

/// One attribute of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrLeafEntry<'a> {
    /// Hash of the name.
    pub hash: u32,
    /// Flags.
    pub flags: AttrFlags,
    /// Name without prefix.
    pub name: &'a [u8],
    /// Value.
    pub value: AttrValue<'a>,
}

impl AttrLeafEntry<'_> {
    /// Whether readers skip the entry.
    #[must_use]
    pub const fn incomplete(&self) -> bool {
        self.flags.contains(AttrFlags::INCOMPLETE)
    }

    /// Namespace; the verifier accepts none but known ones.
    #[must_use]
    pub fn namespace(&self) -> Namespace {
        Namespace::from_flags(self.flags).unwrap_or(Namespace::User)
    }
}

impl AttrLeafLayout {
    /// Layout of the leaves of a volume.
    #[must_use]
    pub const fn new(geometry: &Geometry) -> Self {
        Self { crc: geometry.features.crc, block_size: geometry.block_size() }
    }

    /// Layout of the tree above.
    #[must_use]
    pub const fn tree(self) -> DaLayout {
        DaLayout { crc: self.crc, block_size: self.block_size }
    }

    /// Offset of a header field.
    pub(crate) const fn at(self, field: usize) -> usize {
        self.tree().info_size() + field
    }

    /// Bytes before the entry table.
    #[must_use]
    pub const fn header_size(self) -> usize {
        if self.crc { 80 } else { 32 }
    }

    /// Number of entries.
    #[must_use]
    #[inline]
    pub fn count(self, bytes: &[u8]) -> usize {
        usize::from(be16(bytes, self.at(field::COUNT)))
    }

    /// Bytes that items take.
    #[must_use]
    pub fn used(self, bytes: &[u8]) -> usize {
        usize::from(be16(bytes, self.at(field::USED)))
    }

    /// Bytes for items and entries that are not in use, wherever they lie.
    #[must_use]
    pub fn free(self, bytes: &[u8]) -> usize {
        self.block_size - self.entry_offset(self.count(bytes)) - self.used(bytes)
    }

    /// Bytes that entries with their items may take in an empty leaf.
    #[must_use]
    pub const fn capacity(self) -> usize {
        self.block_size - self.header_size()
    }

    /// Offset below which there is no item. It may lie below the lowest one.
    pub(crate) fn first_used(self, bytes: &[u8]) -> usize {
        match be16(bytes, self.at(field::FIRST_USED)) {
            // 64 KiB does not fit the field; only an empty leaf has nothing in use.
            0 if self.count(bytes) == 0 => self.block_size,
            first => usize::from(first),
        }
    }

    /// Whether the lowest byte in use is recorded as it must be: exactly, unless removals left gaps
    /// between the items. The leaf is a verified one.
    #[must_use]
    pub fn first_used_is_exact(self, bytes: &[u8]) -> bool {
        let items = (0..self.count(bytes)).map(|index| self.item_offset(bytes, index));
        let lowest = items.min().unwrap_or(self.block_size);
        bytes[self.at(field::HOLES)] != 0 || self.first_used(bytes) == lowest
    }

    /// Offset of entry `index` of the table.
    pub(crate) const fn entry_offset(self, index: usize) -> usize {
        self.header_size() + index * ATTR_ENTRY_SIZE
    }

    /// Hash of entry `index`.
    #[must_use]
    #[inline]
    pub fn hash(self, bytes: &[u8], index: usize) -> u32 {
        be32(bytes, self.entry_offset(index))
    }

    /// Offset of the item of entry `index`.
    pub(crate) fn item_offset(self, bytes: &[u8], index: usize) -> usize {
        usize::from(be16(bytes, self.entry_offset(index) + 4))
    }

    fn flags(self, bytes: &[u8], index: usize) -> AttrFlags {
        AttrFlags::from_bits_retain(bytes[self.entry_offset(index) + 6])
    }

    /// Entry `index`.
    #[must_use]
    pub fn entry(self, bytes: &[u8], index: usize) -> AttrLeafEntry<'_> {
        let flags = self.flags(bytes, index);
        let item = &bytes[self.item_offset(bytes, index)..];
        let (name, value) = if flags.contains(AttrFlags::LOCAL) {
            let (value, name) = (usize::from(be16(item, 0)), usize::from(item[2]));
            let (name, rest) = item[LOCAL_HEADER..].split_at(name);
            (name, AttrValue::Local(&rest[..value]))
        } else {
            let value =
                AttrValue::Remote { block: FileBlock(be32(item, 0).into()), len: be32(item, 4) };
            (&item[REMOTE_HEADER..REMOTE_HEADER + usize::from(item[8])], value)
        };
        AttrLeafEntry { hash: self.hash(bytes, index), flags, name, value }
    }

    /// All entries by hash.
    pub fn entries(self, bytes: &[u8]) -> impl Iterator<Item = AttrLeafEntry<'_>> {
        (0..self.count(bytes)).map(move |index| self.entry(bytes, index))
    }

    /// Bytes of the item of entry `index`.
    pub(crate) fn item_size(self, bytes: &[u8], index: usize) -> usize {
        let item = &bytes[self.item_offset(bytes, index)..];
        if self.flags(bytes, index).contains(AttrFlags::LOCAL) {
            local_item_size(item[2].into(), be16(item, 0).into())
        } else {
            remote_item_size(item[8].into())
        }
    }

    /// Whether a value of this length is stored beside its name.
    #[must_use]
    pub const fn is_local(self, name: usize, value: usize) -> bool {
        local_item_size(name, value) < self.block_size / 2 + self.block_size / 4
    }
}

/// Bytes of an item with its value.
#[must_use]
pub const fn local_item_size(name: usize, value: usize) -> usize {
    (LOCAL_HEADER + name + value).next_multiple_of(ITEM_ALIGN)
}

/// Bytes of an item whose value is elsewhere.
#[must_use]
pub const fn remote_item_size(name: usize) -> usize {
    (REMOTE_OVERHEAD + name).next_multiple_of(ITEM_ALIGN)
}

/// Checks the structure of an attribute leaf behind the common header; `bytes` is one block.
///
/// # Errors
///
/// The field and its defect.
pub fn verify_attr_leaf(bytes: &[u8], geometry: &Geometry) -> Result<(), String> {
    let layout = AttrLeafLayout::new(geometry);
    if bytes.len() != layout.block_size {
        return Err(format!("{} bytes, a leaf has {}", bytes.len(), layout.block_size));
    }
    let (count, first) = (layout.count(bytes), layout.first_used(bytes));
    let table_end = layout.entry_offset(count);
    if table_end > first || first > layout.block_size {
        return Err(format!(
            "first used byte is {first}, but {count} entries end at {table_end} in a block of {}",
            layout.block_size
        ));
    }
    let mut taken = Units::new(layout.block_size);
    let mut used = 0;
    for index in 0..count {
        if index > 0 && layout.hash(bytes, index) < layout.hash(bytes, index - 1) {
            return Err(format!("hash of entry {index} is below its predecessor's"));
        }
        used += verify_item(bytes, layout, index, geometry.features.ascii_ci())
            .and_then(|size| taken.take(layout.item_offset(bytes, index), size).map(|()| size))
            .map_err(|what| format!("entry {index}: {what}"))?;
    }
    if used != layout.used(bytes) {
        return Err(format!("used bytes are {}, but items take {used}", layout.used(bytes)));
    }
    verify_free_map(bytes, layout, &mut taken)
}

/// Checks one entry with its item, and returns the size of the item.
fn verify_item(
    bytes: &[u8],
    layout: AttrLeafLayout,
    index: usize,
    fold_case: bool,
) -> Result<usize, String> {
    let (at, flags) = (layout.item_offset(bytes, index), layout.flags(bytes, index));
    let Some(namespace) = Namespace::from_flags(flags) else {
        return Err(format!("flags {:#04x}", flags.bits()));
    };
    if at < layout.first_used(bytes) || !at.is_multiple_of(ITEM_ALIGN) {
        return Err(format!("item at byte {at}"));
    }
    let local = flags.contains(AttrFlags::LOCAL);
    let rest = layout.block_size.saturating_sub(at);
    let fixed = if local { LOCAL_HEADER } else { REMOTE_HEADER };
    if rest < fixed || layout.item_size(bytes, index) > rest {
        return Err(format!("item at byte {at} does not fit the block"));
    }
    let entry = layout.entry(bytes, index);
    verify_attr_name(entry.name)?;
    let value = match entry.value {
        AttrValue::Local(value) => value,
        AttrValue::Remote { block, len } => {
            if len as usize > ATTR_VALUE_MAX {
                return Err(format!("value of {len} bytes, at most {ATTR_VALUE_MAX} are possible"));
            }
            if block.0 == 0 && !entry.incomplete() {
                return Err("value at block 0".into());
            }
            &[]
        }
    };
    // It may be incomplete: in the middle of its removal, which an intent in the journal ends.
    if namespace == Namespace::Parent && value.len() != PARENT_VALUE_SIZE {
        return Err(format!("flags {:#04x} of a parent pointer, or its value", flags.bits()));
    }
    let hash = namespace.hash(entry.name, value, fold_case);
    if hash != entry.hash {
        return Err(format!("hash is {:#010x}, the name's is {hash:#010x}", entry.hash));
    }
    Ok(layout.item_size(bytes, index))
}

/// The free map is a cache: regions may be missing, but those listed must be free.
fn verify_free_map(bytes: &[u8], layout: AttrLeafLayout, taken: &mut Units) -> Result<(), String> {
    let table = layout.entry_offset(layout.count(bytes));
    for slot in 0..FREE_MAP_SLOTS {
        let at = layout.at(field::FREE_MAP) + slot * 4;
        let (base, size) = (usize::from(be16(bytes, at)), usize::from(be16(bytes, at + 2)));
        let aligned = (base | size).is_multiple_of(ITEM_ALIGN);
        if !aligned || base + size > layout.block_size {
            return Err(format!("free region {slot} is {size} bytes at {base}"));
        }
        // Kernels before 2026 leave the base of a region that shrank to nothing inside the table.
        if size > 0 && (base < table || taken.take(base, size).is_err()) {
            return Err(format!("free region {slot} ({size} bytes at {base}) is in use"));
        }
    }
    Ok(())
}

/// Which units of a block are taken, to find overlaps.
struct Units(SmallVec<[u64; 16]>);

impl Units {
    fn new(block_size: usize) -> Self {
        Self(smallvec![0; (block_size / ITEM_ALIGN).div_ceil(64)])
    }

    /// Takes a range that lies in the block.
    fn take(&mut self, start: usize, len: usize) -> Result<(), String> {
        for unit in start / ITEM_ALIGN..(start + len).div_ceil(ITEM_ALIGN) {
            let (word, bit) = (&mut self.0[unit / 64], 1 << (unit % 64));
            if *word & bit != 0 {
                return Err(format!("{len} bytes at {start} overlap another item"));
            }
            *word |= bit;
        }
        Ok(())
    }
}
