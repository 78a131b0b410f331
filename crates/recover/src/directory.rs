//! Entries of directories: those in use, and those that were removed and are still legible.

use undercroft_xfs_format::bytes::{be16, be32, be64};
use undercroft_xfs_format::dir_layout::{DATA_ALIGN, DirLayout};
use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{
    BufferKind, EntryType, FileType, Geometry, Header, dir_block, dir_data, dir_shortform,
    name_defect,
};

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number of the inode; of a removed entry the lower 32 bits may be all that is left.
    pub inode: InodeNumber,
    /// The name.
    pub name: Vec<u8>,
    /// What the entry says of the kind.
    pub kind: EntryType,
    /// It was removed.
    pub is_removed: bool,
    /// Only the lower half of the number is there.
    pub is_half: bool,
}

impl Entry {
    /// Whether it says that the file is of another kind.
    pub(crate) fn is_not(&self, kind: FileType) -> bool {
        self.kind.file_type().is_some_and(|own| own != kind)
    }
}

/// An entry that a directory had.
#[derive(Clone, Debug)]
pub(crate) struct OldEntry {
    /// The directory.
    pub(crate) parent: InodeNumber,
    /// Its generation, where that is known.
    pub(crate) generation: Option<u32>,
    /// When it had it; 0 where nothing says so.
    pub(crate) lsn: Lsn,
    pub(crate) entry: Entry,
}

/// What a block of a directory says.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// The directory's parent.
    pub parent: Option<InodeNumber>,
    /// The entries, those that were removed among them.
    pub entries: Vec<Entry>,
}

/// A directory inside its inode.
pub(crate) fn of_shortform(geometry: &Geometry, fork: &[u8]) -> Option<Entries> {
    let form = dir_shortform::ShortForm::new(fork, DirLayout::new(geometry)).ok()?;
    let entries = form
        .entries()
        .map_while(Result::ok)
        .filter(|short| name_defect(short.entry.name).is_none());
    let entries = entries.map(|short| Entry {
        inode: short.entry.inode,
        name: short.entry.name.to_vec(),
        kind: short.entry.ftype,
        is_removed: false,
        is_half: false,
    });
    Some(Entries { parent: Some(form.parent()), entries: entries.collect() })
}

/// The kind of a block of entries by its magic number, if it is one.
pub(crate) fn kind(geometry: &Geometry, block: &[u8]) -> Option<BufferKind> {
    let magics: [&[u8; 4]; 2] =
        if geometry.features.crc { [b"XDB3", b"XDD3"] } else { [b"XD2B", b"XD2D"] };
    let place = magics.iter().position(|magic| block.starts_with(*magic))?;
    Some([BufferKind::DirBlock, BufferKind::DirData][place])
}

/// The owner that a whole block of entries names.
pub(crate) fn owner(geometry: &Geometry, block: &[u8], kind: BufferKind) -> Option<InodeNumber> {
    let header = Header::of(kind).filter(|_| geometry.features.crc)?;
    header.owner(block).map(InodeNumber)
}

/// Whether a block of entries is sound at its place.
pub(crate) fn is_sound(geometry: &Geometry, block: &[u8], kind: BufferKind, sector: u64) -> bool {
    let Some(header) = Header::of(kind).filter(|_| geometry.features.crc) else { return true };
    let sector = undercroft_block::Sector(sector);
    header.verify(block, sector, &geometry.meta_uuid, geometry.block_size()).is_ok()
}

/// All entries of a block, as far as its tiling is whole.
pub(crate) fn of_block(geometry: &Geometry, block: &[u8], kind: BufferKind) -> Entries {
    let layout = DirLayout::new(geometry);
    if block.len() != layout.block_size() {
        return Entries::default();
    }
    let end = match kind {
        BufferKind::DirBlock => dir_block::checked_table(block, layout)
            .map_or(block.len() - dir_block::TAIL_SIZE, |table| table.base),
        _ => block.len(),
    };
    let mut found = Entries::default();
    for item in dir_data::items(block, layout, end) {
        let Ok((offset, item)) = item else { break };
        match item {
            dir_data::Item::Used(entry) if entry.name == b".." => found.parent = Some(entry.inode),
            dir_data::Item::Used(entry) if entry.name == b"." => {}
            dir_data::Item::Used(entry) if name_defect(entry.name).is_none() => {
                found.entries.push(Entry {
                    inode: entry.inode,
                    name: entry.name.to_vec(),
                    kind: entry.ftype,
                    is_removed: false,
                    is_half: false,
                });
            }
            dir_data::Item::Used(_) => {}
            dir_data::Item::Free(len) => {
                removed(block, layout, offset..offset + len, &mut found.entries);
            }
        }
    }
    found
}

/// The entries that a free region was: each keeps its name, and its own place at its end. The first
/// four bytes of one are those of a free region by now.
fn removed(block: &[u8], layout: DirLayout, region: std::ops::Range<usize>, to: &mut Vec<Entry>) {
    let mut at = region.start;
    while at + DATA_ALIGN * 2 <= region.end {
        let Some((entry, len)) = removed_at(block, layout, at, region.end) else {
            at += DATA_ALIGN;
            continue;
        };
        to.push(entry);
        at += len;
    }
}

/// The entry at a place, in use, whose own mark says that it is there.
pub(crate) fn whole_entry_at(block: &[u8], layout: DirLayout, at: usize) -> Option<Entry> {
    if at < layout.data_start() || at + 2 * DATA_ALIGN > block.len() {
        return None;
    }
    let (entry, len) = removed_at(block, layout, at, block.len())?;
    let is_marked = usize::from(be16(block, at + len - 2)) == at;
    (is_marked && !entry.is_half).then_some(Entry { is_removed: false, ..entry })
}

/// The entry that was removed at a place, by its own marks: that of a free region, and its place at its end.
pub(crate) fn gone_entry_at(block: &[u8], layout: DirLayout, at: usize) -> Option<Entry> {
    if at < layout.data_start() || at + 2 * DATA_ALIGN > block.len() {
        return None;
    }
    let (entry, len) = removed_at(block, layout, at, block.len())?;
    let is_marked = usize::from(be16(block, at + len - 2)) == at;
    (is_marked && entry.is_half).then_some(entry)
}

fn removed_at(block: &[u8], layout: DirLayout, at: usize, end: usize) -> Option<(Entry, usize)> {
    let name_len = usize::from(block[at + 8]);
    let len = layout.entry_size(name_len);
    if name_len == 0 || at + len > end {
        return None;
    }
    // The last entry of the region has the tag of the region at its end.
    let is_tagged = usize::from(be16(block, at + len - 2)) == at;
    if !is_tagged && at + len != end {
        return None;
    }
    let name = &block[at + 9..at + 9 + name_len];
    let kind = if layout.ftype { block[at + 9 + name_len] } else { 0 };
    let kind = EntryType::from_raw(kind)?;
    let is_half = be16(block, at) == 0xffff;
    let number = if is_half { u64::from(be32(block, at + 4)) } else { be64(block, at) };
    let entry =
        Entry { inode: InodeNumber(number), name: name.to_vec(), kind, is_removed: true, is_half };
    name_defect(name).is_none().then_some((entry, len))
}
