//! Short form: a small directory inside its inode (docs/format/directories.md#short-form).
//!
//! Inode numbers take four bytes, or all of them eight as soon as one needs more. Every entry
//! records the offset it would have in block form, which keeps positions stable.

use super::block;
use super::data::DataEntry;
use super::layout::DirLayout;
use crate::EntryType;
use crate::bytes::{be16, be32, be64};
use crate::geometry::Geometry;
use crate::hash_tree::block::PAIR_SIZE;
use crate::units::InodeNumber;

/// An entry with its saved offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortEntry<'a> {
    /// Offset in block form.
    pub offset: u16,
    /// The entry.
    pub entry: DataEntry<'a>,
}

/// A short form directory, open for reading.
#[derive(Clone, Copy, Debug)]
pub struct ShortForm<'a> {
    bytes: &'a [u8],
    layout: DirLayout,
}

/// Whether a number needs eight bytes.
#[must_use]
pub const fn is_wide(inode: InodeNumber) -> bool {
    inode.0 > u32::MAX as u64
}

/// Bytes of the header with numbers of four or eight bytes.
#[must_use]
pub const fn header_size(wide: bool) -> usize {
    if wide { 10 } else { 6 }
}

/// Bytes of an entry with numbers of four or eight bytes.
#[must_use]
pub const fn entry_size(layout: DirLayout, name_len: usize, wide: bool) -> usize {
    1 + 2 + name_len + layout.ftype as usize + if wide { 8 } else { 4 }
}

impl<'a> ShortForm<'a> {
    /// Opens the content of a local fork.
    ///
    /// # Errors
    /// The content is too short for a header.
    pub fn new(bytes: &'a [u8], layout: DirLayout) -> Result<Self, String> {
        if bytes.len() < 2 || bytes.len() < header_size(bytes[1] > 0) {
            return Err(format!("short form of {} bytes has no header", bytes.len()));
        }
        Ok(Self { bytes, layout })
    }

    /// Entries without "." and "..".
    #[must_use]
    pub fn count(&self) -> usize {
        self.bytes[0].into()
    }

    /// How many inode numbers, the parent's included, need eight bytes.
    #[must_use]
    pub fn wide_count(&self) -> usize {
        self.bytes[1].into()
    }

    /// Whether inode numbers take eight bytes.
    #[must_use]
    pub fn wide(&self) -> bool {
        self.bytes[1] > 0
    }

    /// The parent directory.
    #[must_use]
    pub fn parent(&self) -> InodeNumber {
        self.number(2)
    }

    fn number(&self, at: usize) -> InodeNumber {
        InodeNumber(if self.wide() { be64(self.bytes, at) } else { be32(self.bytes, at).into() })
    }

    /// Entries in order; after an error there are no more.
    pub fn entries(self) -> impl Iterator<Item = Result<ShortEntry<'a>, String>> {
        let (mut at, mut left) = (header_size(self.wide()), self.count());
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let found = self.entry(at);
            match &found {
                Ok(short) => {
                    at += entry_size(self.layout, short.entry.name.len(), self.wide());
                }
                Err(_) => left = 0,
            }
            Some(found)
        })
    }

    fn entry(&self, at: usize) -> Result<ShortEntry<'a>, String> {
        let name_len = self.bytes.get(at).map_or(0, |len| usize::from(*len));
        let len = entry_size(self.layout, name_len, self.wide());
        if name_len == 0 || len > self.bytes.len() - at {
            return Err(format!("entry at byte {at} has a name of {name_len} bytes"));
        }
        let name_end = at + 3 + name_len;
        let ftype = if self.layout.ftype { self.bytes[name_end] } else { 0 };
        let Some(ftype) = EntryType::from_raw(ftype) else {
            return Err(format!("entry at byte {at} has file type {ftype}"));
        };
        Ok(ShortEntry {
            offset: be16(self.bytes, at + 1),
            entry: DataEntry {
                inode: self.number(name_end + usize::from(self.layout.ftype)),
                name: &self.bytes[at + 3..name_end],
                ftype,
            },
        })
    }
}

/// A short form directory being written, entry by entry.
#[derive(Debug)]
pub struct ShortWriter {
    bytes: Vec<u8>,
    layout: DirLayout,
    wide: bool,
}

impl ShortWriter {
    /// Begins a directory; `wide` says whether any number, the parent's included, needs eight
    /// bytes, and `size` how many bytes to expect.
    #[must_use]
    pub fn new(layout: DirLayout, parent: InodeNumber, wide: bool, size: usize) -> Self {
        let mut writer = Self { bytes: Vec::with_capacity(size), layout, wide };
        writer.bytes.extend([0, 0]);
        writer.number(parent);
        writer
    }

    fn number(&mut self, inode: InodeNumber) {
        // The callers of `new` looked at all numbers; four bytes hold each of them if not `wide`.
        self.bytes[1] += u8::from(is_wide(inode));
        if self.wide {
            self.bytes.extend(inode.0.to_be_bytes());
        } else {
            self.bytes.extend((inode.0 as u32).to_be_bytes());
        }
    }

    /// Appends an entry.
    pub fn push(&mut self, short: &ShortEntry<'_>) {
        self.bytes[0] += 1;
        self.bytes.push(short.entry.name.len() as u8);
        self.bytes.extend(short.offset.to_be_bytes());
        self.bytes.extend(short.entry.name);
        if self.layout.ftype {
            self.bytes.push(short.entry.ftype as u8);
        }
        self.number(short.entry.inode);
    }

    /// The content of the fork.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Bytes that a short form directory takes in block form, given where its data entries end.
#[must_use]
pub const fn block_form_size(data_end: usize, count: usize) -> usize {
    data_end + (count + 2) * PAIR_SIZE + block::TAIL_SIZE
}

/// Checks the content of a local fork, which is exactly the directory.
///
/// # Errors
/// The field and its defect.
pub fn verify_shortform(
    bytes: &[u8],
    layout: DirLayout,
    geometry: &Geometry,
) -> Result<(), String> {
    let short = ShortForm::new(bytes, layout)?;
    if !geometry.valid_inode(short.parent()) {
        return Err(format!("parent is inode {}", short.parent()));
    }
    let mut wide = usize::from(is_wide(short.parent()));
    let mut end = layout.first_name_offset();
    let mut size = header_size(short.wide());
    for found in short.entries() {
        let ShortEntry { offset, entry } = found?;
        if usize::from(offset) < end || !offset.is_multiple_of(8) {
            return Err(format!("saved offset {offset} is below {end} or not aligned"));
        }
        if !geometry.valid_inode(entry.inode) {
            return Err(format!("entry with saved offset {offset} has inode {}", entry.inode));
        }
        wide += usize::from(is_wide(entry.inode));
        end = usize::from(offset) + layout.entry_size(entry.name.len());
        size += entry_size(layout, entry.name.len(), short.wide());
    }
    if size != bytes.len() {
        return Err(format!("entries take {size} bytes, the directory has {}", bytes.len()));
    }
    if wide != short.wide_count() {
        return Err(format!("wide count is {}, {wide} numbers are", short.wide_count()));
    }
    if block_form_size(end, short.count()) > layout.block_size() {
        return Err("saved offsets do not fit block form".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_bytes_of_the_format() {
        let layout =
            DirLayout { crc: true, ftype: true, fold_case: false, block_log: 12, fs_block_log: 12 };
        let entry =
            |name, inode| DataEntry { inode: InodeNumber(inode), name, ftype: EntryType::Regular };
        let mut writer = ShortWriter::new(layout, InodeNumber(128), false, 0);
        writer.push(&ShortEntry { offset: 96, entry: entry(b"ab", 131) });
        let bytes = writer.finish();
        assert_eq!(bytes, b"\x01\x00\x00\x00\x00\x80\x02\x00\x60ab\x01\x00\x00\x00\x83");
        let short = ShortForm::new(&bytes, layout).unwrap();
        assert_eq!(short.parent(), InodeNumber(128));
        let entries: Vec<_> = short.entries().collect::<Result<_, _>>().unwrap();
        assert_eq!(entries, [ShortEntry { offset: 96, entry: entry(b"ab", 131) }]);

        let mut writer = ShortWriter::new(layout, InodeNumber(128), true, 0);
        writer.push(&ShortEntry { offset: 96, entry: entry(b"a", 1 << 33) });
        assert_eq!(
            writer.finish(),
            b"\x01\x01\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x60a\x01\x00\x00\x00\x02\x00\x00\x00\x00"
        );
    }
}
