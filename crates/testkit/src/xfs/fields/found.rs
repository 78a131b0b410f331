//! Structures that were found, and those that volumes with checksums and volumes of version 4 have
//! in common.

use super::layout::{self as l, Field};
use std::collections::BTreeMap;

pub(super) const BLOCK: usize = 4096;
pub(super) const SECTOR: usize = 512;

/// A structure: fields at `base` of what lies under one checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Offset in the image of what the checksum covers.
    pub(crate) at: usize,
    pub(crate) len: usize,
    /// Offset of the checksum in it, if it has one.
    pub(crate) crc: Option<usize>,
    pub(crate) base: usize,
    pub(crate) fields: &'static [Field],
}

/// All structures of one name, by name.
pub(crate) type Targets = BTreeMap<&'static str, Vec<Target>>;

/// What lies under one checksum, or a block or sector without one.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) crc: Option<usize>,
}

/// What differs between the two kinds of volumes: lengths of headers, and fields.
pub(super) struct Form {
    has_checksums: bool,
    agf: &'static [Field],
    agi: &'static [Field],
    list: usize,
    tree: (usize, &'static [Field]),
    directory: (usize, &'static [Field]),
}

pub(super) static NEW: Form = Form {
    has_checksums: true,
    agf: l::AGF,
    agi: l::AGI,
    list: 36,
    tree: (56, l::SHORT_TREE),
    directory: (64, l::DIR_BLOCK),
};

pub(super) static OLD: Form = Form {
    has_checksums: false,
    agf: l::OLD_AGF,
    agi: l::OLD_AGI,
    list: 0,
    tree: (16, l::OLD_SHORT_TREE),
    directory: (16, l::OLD_DIR_BLOCK),
};

pub(super) fn be16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) struct Found {
    form: &'static Form,
    pub(super) targets: Targets,
}

impl Found {
    pub(super) const fn new(form: &'static Form) -> Self {
        Self { form, targets: Targets::new() }
    }

    pub(super) fn add(
        &mut self,
        name: &'static str,
        piece: Piece<'_>,
        base: usize,
        fields: &'static [Field],
    ) {
        let Piece { at, crc, bytes } = piece;
        let target = Target { at, len: bytes.len(), crc, base, fields };
        self.targets.entry(name).or_default().push(target);
    }

    /// Where the checksum is, if there are any.
    fn crc(&self, at: usize) -> Option<usize> {
        self.form.has_checksums.then_some(at)
    }

    pub(super) fn headers(&mut self, piece: Piece<'_>) {
        let sector = |index: usize, crc| Piece {
            bytes: &piece.bytes[index * SECTOR..][..SECTOR],
            at: piece.at + index * SECTOR,
            crc,
        };
        let name = if piece.at == 0 { "superblock" } else { "secondary superblock" };
        self.add(name, sector(0, self.crc(224)), 0, l::SUPERBLOCK);
        let (agf, list) = (sector(1, self.crc(216)), sector(3, self.crc(32)));
        self.add("AGF", agf, 0, self.form.agf);
        self.add("AGI", sector(2, self.crc(312)), 0, self.form.agi);
        if self.form.has_checksums {
            self.add("AGFL", list, 0, l::AGFL);
        }
        let (first, count) = (be32(agf.bytes, 40) as usize, be32(agf.bytes, 48) as usize);
        let places = (SECTOR - self.form.list) / 4;
        for index in first..first + count {
            self.add("AGFL", list, self.form.list + 4 * (index % places), l::BLOCK_NUMBER);
        }
    }

    /// A tree block whose records have `len` bytes.
    pub(super) fn tree(
        &mut self,
        piece: Piece<'_>,
        [block, record]: [&'static str; 2],
        fields: &'static [Field],
        len: usize,
    ) {
        let piece = Piece { crc: self.crc(52), ..piece };
        let (header, of_block) = self.form.tree;
        self.add(block, piece, 0, of_block);
        for index in 0..be16(piece.bytes, 6) {
            if be16(piece.bytes, 4) == 0 {
                self.add(record, piece, header + index * len, fields);
            } else if block == "rmapbt block" {
                self.add("rmapbt keys", piece, header + index * 40, l::RMAP_KEYS);
                self.add("rmapbt pointer", piece, header + 91 * 40 + index * 4, l::BLOCK_NUMBER);
            }
        }
    }

    /// A directory block, which has leaf entries at its end if it `is_single`.
    pub(super) fn directory_block(
        &mut self,
        name: &'static str,
        piece: Piece<'_>,
        is_single: bool,
    ) {
        let (piece, bytes) = (Piece { crc: self.crc(4), ..piece }, piece.bytes);
        let (header, of_block) = self.form.directory;
        let (mut end, mut at) = (BLOCK, header);
        if is_single {
            let count = be32(bytes, BLOCK - 8) as usize;
            end = BLOCK - 8 - 8 * count;
            self.add("directory block tail", piece, BLOCK - 8, l::BLOCK_TAIL);
            for index in 0..count {
                self.add("directory block leaf entry", piece, end + 8 * index, l::HASH_ENTRY);
            }
        }
        self.add(name, piece, 0, of_block);
        while at + 16 <= end {
            let len = if bytes[at..].starts_with(&[0xff, 0xff]) {
                self.add("directory free entry", piece, at, l::FREE_ENTRY);
                be16(bytes, at + 2)
            } else {
                let name_len = usize::from(bytes[at + 8]);
                self.add("directory entry", piece, at, l::DIR_ENTRY);
                // Both have the type of the file behind the name; of the old, none is changed.
                if self.form.has_checksums {
                    self.add("directory entry", piece, at + 9 + name_len, l::TYPE);
                }
                (12 + name_len).next_multiple_of(8)
            };
            if len < 8 || at + len > end {
                break;
            }
            self.add("directory entry", piece, at + len - 2, l::TAG);
            at += len;
        }
    }

    /// The entries of a leaf of a directory, and the table of free space at its end.
    pub(super) fn leaf_entries(&mut self, piece: Piece<'_>, header: usize, count: usize) {
        for index in 0..count {
            self.add("directory leaf entry", piece, header + 8 * index, l::HASH_ENTRY);
        }
        self.add("directory leaf", piece, BLOCK - 4, l::BEST_COUNT);
        for index in 0..be32(piece.bytes, BLOCK - 4) as usize {
            self.add("directory leaf", piece, BLOCK - 6 - 2 * index, l::BEST);
        }
    }
}
