//! Entries and free regions of directory data blocks.
//!
//! A data block is tiled by used entries and free regions; the header lists the three longest free
//! regions (docs/format/directories.md#data-blocks;
//! docs/algorithms/directories.md#free-space-in-blocks). In block form the tiling ends before the
//! hash table, elsewhere at the end of the block: that is the `end` these functions take. What they
//! follow from one place to another is checked, so that no content makes them panic.

use super::layout::{DATA_ALIGN, DirLayout};
use crate::EntryType;
use crate::bytes::{EditBytes, be16, be64};
use crate::geometry::Geometry;
use crate::units::InodeNumber;

/// First two bytes of a free region; no inode number begins so.
const FREE_TAG: u16 = 0xffff;

/// A free region: where, and how many bytes. Length 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeRegion {
    /// Offset in the block.
    pub offset: usize,
    /// Bytes.
    pub len: usize,
}

impl FreeRegion {
    /// First byte behind it.
    #[must_use]
    pub const fn end(self) -> usize {
        self.offset + self.len
    }
}

/// A used entry of a data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataEntry<'a> {
    /// Inode.
    pub inode: InodeNumber,
    /// Name, 1 to 255 bytes.
    pub name: &'a [u8],
    /// Type.
    pub ftype: EntryType,
}

/// One piece of the tiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A used entry.
    Used(DataEntry<'a>),
    /// A free region of this many bytes.
    Free(usize),
}

impl Item<'_> {
    /// Bytes it takes.
    #[must_use]
    pub const fn len(&self, layout: DirLayout) -> usize {
        match self {
            Self::Used(entry) => layout.entry_size(entry.name.len()),
            Self::Free(len) => *len,
        }
    }
}

/// The item at `offset`, which lies wholly before `end`.
///
/// # Errors
/// The defect of the bytes there.
pub fn item(
    bytes: &[u8],
    layout: DirLayout,
    offset: usize,
    end: usize,
) -> Result<Item<'_>, String> {
    let room = end.min(bytes.len()).saturating_sub(offset);
    if offset < layout.data_start() || !offset.is_multiple_of(DATA_ALIGN) || room < DATA_ALIGN {
        return Err(format!("no entry can be at offset {offset}"));
    }
    let (item, len) = if be16(bytes, offset) == FREE_TAG {
        let len = usize::from(be16(bytes, offset + 2));
        if len == 0 || !len.is_multiple_of(DATA_ALIGN) || len > room {
            return Err(format!("free region at offset {offset} has length {len}"));
        }
        (Item::Free(len), len)
    } else {
        let name_len = bytes.get(offset + 8).map_or(0, |len| usize::from(*len));
        let len = layout.entry_size(name_len);
        if name_len == 0 || len > room {
            return Err(format!("entry at offset {offset} has a name of {name_len} bytes"));
        }
        let name_end = offset + 9 + name_len;
        let ftype = if layout.ftype { bytes[name_end] } else { 0 };
        let Some(ftype) = EntryType::from_raw(ftype) else {
            return Err(format!("entry at offset {offset} has file type {ftype}"));
        };
        let inode = InodeNumber(be64(bytes, offset));
        (Item::Used(DataEntry { inode, name: &bytes[offset + 9..name_end], ftype }), len)
    };
    let tag = usize::from(be16(bytes, offset + len - 2));
    if tag != offset {
        return Err(format!("item at offset {offset} is tagged {tag}"));
    }
    Ok(item)
}

/// The used entry at `offset`.
///
/// # Errors
/// What else is there.
pub fn entry(
    bytes: &[u8],
    layout: DirLayout,
    offset: usize,
    end: usize,
) -> Result<DataEntry<'_>, String> {
    match item(bytes, layout, offset, end)? {
        Item::Used(entry) => Ok(entry),
        Item::Free(_) => Err(format!("the entry at offset {offset} is free")),
    }
}

/// All items up to `end` with their offsets; after an error there are no more.
pub fn items(
    bytes: &[u8],
    layout: DirLayout,
    end: usize,
) -> impl Iterator<Item = Result<(usize, Item<'_>), String>> {
    let mut next = layout.data_start();
    std::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let offset = next;
        let found = item(bytes, layout, offset, end);
        next = found.as_ref().map_or(end, |item| offset + item.len(layout));
        Some(found.map(|item| (offset, item)))
    })
}

/// Listed free region `slot`, 0 for the longest to 2.
#[must_use]
#[inline]
pub fn best(bytes: &[u8], layout: DirLayout, slot: usize) -> FreeRegion {
    let at = layout.best_offset() + slot * 4;
    FreeRegion { offset: be16(bytes, at).into(), len: be16(bytes, at + 2).into() }
}

/// Length of the longest free region, as the index of the directory records it.
#[must_use]
pub fn longest(bytes: &[u8], layout: DirLayout) -> u16 {
    be16(bytes, layout.best_offset() + 2)
}

/// Writes a used entry at `offset`, padding and tag included.
pub fn put_entry(
    edit: &mut EditBytes<'_>,
    layout: DirLayout,
    offset: usize,
    entry: &DataEntry<'_>,
) {
    let (name_len, len) = (entry.name.len(), layout.entry_size(entry.name.len()));
    let region = edit.region(offset..offset + len);
    region[..8].copy_from_slice(&entry.inode.0.to_be_bytes());
    region[8] = name_len as u8;
    region[9..9 + name_len].copy_from_slice(entry.name);
    region[9 + name_len..].fill(0);
    if layout.ftype {
        region[9 + name_len] = entry.ftype as u8;
    }
    region[len - 2..].copy_from_slice(&(offset as u16).to_be_bytes());
}

/// Lets the entry at `offset` name another inode.
pub fn replace_inode(
    edit: &mut EditBytes<'_>,
    layout: DirLayout,
    offset: usize,
    inode: InodeNumber,
    ftype: EntryType,
) {
    edit.put_be64(offset, inode.0);
    if layout.ftype {
        let name_len = usize::from(edit.bytes()[offset + 8]);
        edit.put_u8(offset + 9 + name_len, ftype as u8);
    }
}

/// Makes the block an empty tiling: one free region up to `end`.
pub fn init(edit: &mut EditBytes<'_>, layout: DirLayout, end: usize) {
    let start = layout.data_start();
    put_free(edit, FreeRegion { offset: start, len: end - start });
    put_bests(edit, layout, &Bests::default().with(FreeRegion { offset: start, len: end - start }));
}

/// Takes `len` bytes at `at` out of the free region `region`; the rests on both sides stay free.
/// The bytes taken hold an entry already, or lie behind `end`.
///
/// # Errors
/// A damaged tiling, if it had to be walked.
pub fn use_free(
    edit: &mut EditBytes<'_>,
    layout: DirLayout,
    region: FreeRegion,
    at: usize,
    len: usize,
    end: usize,
) -> Result<(), String> {
    let front = FreeRegion { offset: region.offset, len: at - region.offset };
    let back = FreeRegion { offset: at + len, len: region.end() - (at + len) };
    for rest in [front, back].into_iter().filter(|rest| rest.len > 0) {
        put_free(edit, rest);
    }
    let old = bests(edit.bytes(), layout);
    let mut new = old;
    let listed = new.drop_region(region);
    // With a full list there may be regions that are not listed, none longer than the third.
    let unlisted = if listed { old.0[2].len } else { 0 };
    new = new.with(front).with(back);
    if new.0[2].len < unlisted {
        new = collect_bests(edit.bytes(), layout, end)?;
    }
    if new != old {
        put_bests(edit, layout, &new);
    }
    Ok(())
}

/// Fills free regions with zeros, but for their own fields: names that were removed are there.
///
/// # Errors
/// A damaged tiling.
pub fn wipe_free(edit: &mut EditBytes<'_>, layout: DirLayout, end: usize) -> Result<(), String> {
    let mut at = layout.data_start();
    while at < end {
        let found = item(edit.bytes(), layout, at, end)?;
        let (is_free, len) = (matches!(found, Item::Free(_)), found.len(layout));
        // Tag and length at its front, its own offset at its end.
        let inside = at + 4..at + len - 2;
        if is_free && edit.bytes()[inside.clone()].iter().any(|byte| *byte != 0) {
            edit.region(inside).fill(0);
        }
        at += len;
    }
    Ok(())
}

/// Frees `len` bytes at `offset` and merges them with free neighbours.
///
/// # Errors
/// The defect of the neighbours, or of the tiling if it had to be walked.
pub fn make_free(
    edit: &mut EditBytes<'_>,
    layout: DirLayout,
    offset: usize,
    len: usize,
    end: usize,
) -> Result<(), String> {
    let bytes = edit.bytes();
    let before =
        if offset > layout.data_start() { region_before(bytes, layout, offset)? } else { None };
    let after = if offset + len < end {
        match item(bytes, layout, offset + len, end)? {
            Item::Free(rest) => Some(FreeRegion { offset: offset + len, len: rest }),
            Item::Used(_) => None,
        }
    } else {
        None
    };
    let start = before.map_or(offset, |region| region.offset);
    let union =
        FreeRegion { offset: start, len: after.map_or(offset + len, FreeRegion::end) - start };
    let old = bests(bytes, layout);
    let mut new = old;
    let dropped =
        [before, after].into_iter().flatten().filter(|region| new.drop_region(*region)).count();
    put_free(edit, union);
    new = new.with(union);
    // One region taken out of a full list is made up for by the longer union; two are not.
    if dropped == 2 && old.0[2].len > 0 {
        new = collect_bests(edit.bytes(), layout, end)?;
    }
    put_bests(edit, layout, &new);
    Ok(())
}

/// The free region that ends at `offset`, if that is what lies before it.
///
/// # Errors
/// The defect of the item before `offset`.
pub fn region_before(
    bytes: &[u8],
    layout: DirLayout,
    offset: usize,
) -> Result<Option<FreeRegion>, String> {
    if offset <= layout.data_start() || offset > bytes.len() {
        return Ok(None);
    }
    let start = usize::from(be16(bytes, offset - 2));
    let found = item(bytes, layout, start, offset)?;
    if start + found.len(layout) != offset {
        return Err(format!("item at offset {start} does not end at {offset}, as its tag says"));
    }
    Ok(match found {
        Item::Free(len) => Some(FreeRegion { offset: start, len }),
        Item::Used(_) => None,
    })
}

fn put_free(edit: &mut EditBytes<'_>, region: FreeRegion) {
    edit.put_be32(region.offset, u32::from(FREE_TAG) << 16 | region.len as u32);
    edit.put_be16(region.end() - 2, region.offset as u16);
}

/// The list of the three longest free regions, longest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bests([FreeRegion; 3]);

impl Bests {
    /// The list with one more region, if it is long enough.
    fn with(mut self, region: FreeRegion) -> Self {
        let mut carried = region;
        for slot in &mut self.0 {
            if carried.len > slot.len {
                std::mem::swap(slot, &mut carried);
            }
        }
        self
    }

    /// Takes a region out of the list; whether it was there.
    fn drop_region(&mut self, region: FreeRegion) -> bool {
        let Some(at) = self.0.iter().position(|slot| *slot == region) else { return false };
        self.0[at..].rotate_left(1);
        self.0[2] = FreeRegion::default();
        true
    }
}

fn bests(bytes: &[u8], layout: DirLayout) -> Bests {
    Bests([0, 1, 2].map(|slot| best(bytes, layout, slot)))
}

fn put_bests(edit: &mut EditBytes<'_>, layout: DirLayout, list: &Bests) {
    let mut bytes = [0; 12];
    for (region, slot) in list.0.iter().zip(bytes.as_chunks_mut::<4>().0) {
        *slot = ((region.offset as u32) << 16 | region.len as u32).to_be_bytes();
    }
    edit.put_bytes(layout.best_offset(), &bytes);
}

/// The list as the tiling says.
fn collect_bests(bytes: &[u8], layout: DirLayout, end: usize) -> Result<Bests, String> {
    items(bytes, layout, end).try_fold(Bests::default(), |list, found| {
        Ok(match found? {
            (offset, Item::Free(len)) => list.with(FreeRegion { offset, len }),
            (_, Item::Used(_)) => list,
        })
    })
}

/// Checks the tiling up to `end` and the list of free regions; every used entry is handed to
/// `used` with its offset.
///
/// # Errors
/// The field and its defect.
pub fn verify_tiling(
    bytes: &[u8],
    layout: DirLayout,
    geometry: &Geometry,
    end: usize,
    mut used: impl FnMut(usize, &DataEntry<'_>),
) -> Result<(), String> {
    let listed = bests(bytes, layout);
    let (mut real, mut seen, mut after_free) = (Bests::default(), 0, false);
    for found in items(bytes, layout, end) {
        let (offset, item) = found?;
        match item {
            Item::Free(_) if after_free => {
                return Err(format!("free region at offset {offset} follows another"));
            }
            Item::Free(len) => {
                let region = FreeRegion { offset, len };
                real = real.with(region);
                seen += usize::from(listed.0.contains(&region));
            }
            Item::Used(entry) if !geometry.valid_inode(entry.inode) => {
                return Err(format!("entry at offset {offset} has inode {}", entry.inode));
            }
            Item::Used(entry) => used(offset, &entry),
        }
        after_free = matches!(item, Item::Free(_));
    }
    let wanted = listed.0.iter().filter(|region| region.len > 0).count();
    let empty = listed.0.iter().all(|region| region.len > 0 || region.offset == 0);
    // Ties may be listed in any order, so lengths are compared, and that each one is real.
    if !empty
        || seen != wanted
        || listed.0.map(|region| region.len) != real.0.map(|region| region.len)
    {
        return Err(format!(
            "list of free regions is {:?}, the longest are {:?}",
            listed.0, real.0
        ));
    }
    Ok(())
}

/// Checks a data block of leaf or node form.
///
/// # Errors
/// The field and its defect.
pub fn verify_data(bytes: &[u8], layout: DirLayout, geometry: &Geometry) -> Result<(), String> {
    if bytes.len() != layout.block_size() {
        return Err(format!("block has {} bytes instead of {}", bytes.len(), layout.block_size()));
    }
    verify_tiling(bytes, layout, geometry, layout.block_size(), |_, _| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Changes;
    use proptest::prelude::*;

    const LAYOUT: DirLayout =
        DirLayout { crc: true, ftype: true, fold_case: false, block_log: 12, fs_block_log: 12 };

    #[test]
    fn sizes_are_those_of_the_format() {
        for (name_len, size) in
            [(1, 16), (4, 16), (5, 24), (12, 24), (13, 32), (20, 32), (255, 272)]
        {
            assert_eq!(LAYOUT.entry_size(name_len), size);
        }
        assert_eq!(LAYOUT.first_name_offset(), 96);
        let v4 = DirLayout { crc: false, ftype: false, ..LAYOUT };
        assert_eq!((v4.data_start(), v4.best_offset(), v4.first_name_offset()), (16, 4, 48));
        assert_eq!((v4.entry_size(5), v4.entry_size(6)), (16, 24));
    }

    #[test]
    fn entries_have_the_bytes_of_the_format() {
        let (mut bytes, mut changes) = (vec![0xaa; 4096], Changes::default());
        let mut edit = EditBytes::new(&mut bytes, &mut changes);
        init(&mut edit, LAYOUT, 4096);
        assert_eq!(edit.bytes()[48..60], *b"\x00\x40\x0f\xc0\0\0\0\0\0\0\0\0");
        assert_eq!(edit.bytes()[64..68], *b"\xff\xff\x0f\xc0");
        assert_eq!(edit.bytes()[4094..], *b"\x00\x40");
        let entry =
            DataEntry { inode: InodeNumber(131), name: b"hello", ftype: EntryType::Regular };
        put_entry(&mut edit, LAYOUT, 64, &entry);
        use_free(&mut edit, LAYOUT, FreeRegion { offset: 64, len: 4032 }, 64, 24, 4096).unwrap();
        assert_eq!(edit.bytes()[64..88], *b"\0\0\0\0\0\0\0\x83\x05hello\x01\0\0\0\0\0\0\0\0\x40");
        assert_eq!(best(edit.bytes(), LAYOUT, 0), FreeRegion { offset: 88, len: 4008 });
        assert_eq!(super::entry(edit.bytes(), LAYOUT, 64, 4096), Ok(entry));
        replace_inode(&mut edit, LAYOUT, 64, InodeNumber(5), EntryType::Fifo);
        let entry = DataEntry { inode: InodeNumber(5), ftype: EntryType::Fifo, ..entry };
        assert_eq!(super::entry(edit.bytes(), LAYOUT, 64, 4096), Ok(entry));
    }

    proptest! {
        /// The list of free regions stays exact through any sequence of uses and frees.
        #[test]
        fn free_regions_are_listed(steps in proptest::collection::vec((0_usize..40, 1_usize..40), 1..200)) {
            let (mut bytes, mut changes) = (vec![0; 1024], Changes::default());
            let mut edit = EditBytes::new(&mut bytes, &mut changes);
            init(&mut edit, LAYOUT, 1024);
            for (pick, name_len) in steps {
                let name = vec![b'n'; name_len];
                let all: Vec<_> = items(edit.bytes(), LAYOUT, 1024)
                    .map(|found| found.map(|(offset, item)| match item {
                        Item::Free(len) => (offset, len, true),
                        Item::Used(_) => (offset, item.len(LAYOUT), false),
                    }))
                    .collect::<Result<_, _>>()
                    .unwrap();
                let (offset, len, free) = all[pick % all.len()];
                let size = LAYOUT.entry_size(name_len);
                if !free {
                    make_free(&mut edit, LAYOUT, offset, len, 1024).unwrap();
                } else if size <= len {
                    // From the front, the back or the middle.
                    let at = offset + (len - size) / 8 * (pick % 3) / 2 * 8;
                    let entry = DataEntry {
                        inode: InodeNumber(1),
                        name: &name,
                        ftype: EntryType::Unknown,
                    };
                    put_entry(&mut edit, LAYOUT, at, &entry);
                    let region = FreeRegion { offset, len };
                    use_free(&mut edit, LAYOUT, region, at, size, 1024).unwrap();
                }
                let listed = bests(edit.bytes(), LAYOUT);
                let real = collect_bests(edit.bytes(), LAYOUT, 1024).unwrap();
                prop_assert_eq!(listed.0.map(|r| r.len), real.0.map(|r| r.len));
                for region in listed.0.into_iter().filter(|region| region.len > 0) {
                    let found = item(edit.bytes(), LAYOUT, region.offset, 1024);
                    prop_assert_eq!(found, Ok(Item::Free(region.len)));
                }
            }
        }
    }
}
