//! Where the structures of a volume are. Its blocks have 4 KiB, its inodes and sectors 512 bytes; it
//! is sound and in the newest format, or else [of version 4](old).

use super::found::{BLOCK, Found, NEW, Piece, SECTOR, Targets, be16, be32};
use super::layout::{self as l, Field};
use super::old;
use undercroft_xfs::format::checksum;

/// Looks for structures in `image`.
pub(crate) fn locate(image: &[u8]) -> Targets {
    if be16(image, 100) & 0xf == 4 {
        return old::locate(image);
    }
    let mut found = Found::new(&NEW);
    for (index, block) in image.chunks_exact(BLOCK).enumerate() {
        let piece = Piece { bytes: block, at: index * BLOCK, crc: None };
        let word = be32(block, 0);
        match (word, &block[8..10]) {
            (0, [0, 0]) => {}
            (0x5846_5342, _) => found.headers(piece),
            (0x4142_3342, _) => {
                found.tree(piece, ["bnobt block", "bnobt record"], l::FREE_SPACE, 8);
            }
            (0x4142_3343, _) => {
                found.tree(piece, ["cntbt block", "cntbt record"], l::FREE_SPACE, 8);
            }
            (0x4941_4233, _) => found.tree(piece, ["inobt block", "inobt record"], l::CHUNK, 16),
            (0x4649_4233, _) => found.tree(piece, ["finobt block", "finobt record"], l::CHUNK, 16),
            (0x524d_4233, _) => found.tree(piece, ["rmapbt block", "rmapbt record"], l::RMAP, 24),
            (0x5233_4643, _) => {
                found.tree(piece, ["refcountbt block", "refcountbt record"], l::REFCOUNT, 12);
            }
            (0x424d_4133, _) => found.mapping_tree(piece),
            (0x5844_4233, _) => found.directory_block("directory block", piece, true),
            (0x5844_4433, _) => found.directory_block("directory data block", piece, false),
            (0x5844_4633, _) => found.free_index(piece),
            (0x5841_524d, _) => found.whole("remote attribute value", piece, 12, l::REMOTE),
            (0x5853_4c4d, _) => found.whole("symlink block", piece, 12, l::REMOTE),
            _ if block.starts_with(b"IN") => found.inodes(piece),
            // Bytes that look like a block of a hash tree have its checksum, too.
            (_, [0x3d | 0x3e | 0x3b, _]) if checksum::verify(block, 12).is_ok() => {
                found.hash_block(Piece { crc: Some(12), ..piece });
            }
            _ => {}
        }
    }
    found.targets
}

impl Found {
    fn whole(
        &mut self,
        name: &'static str,
        piece: Piece<'_>,
        crc: usize,
        fields: &'static [Field],
    ) {
        self.add(name, Piece { crc: Some(crc), ..piece }, 0, fields);
    }

    fn mapping_tree(&mut self, piece: Piece<'_>) {
        let piece = Piece { crc: Some(64), ..piece };
        self.add("bmbt block", piece, 0, l::LONG_TREE);
        if be16(piece.bytes, 4) == 0 {
            for index in 0..be16(piece.bytes, 6) {
                self.add("bmbt record", piece, 72 + index * 16, l::EXTENT);
            }
        }
    }

    fn free_index(&mut self, piece: Piece<'_>) {
        let piece = Piece { crc: Some(4), ..piece };
        self.add("directory free index", piece, 0, l::DIR_FREE);
        for index in 0..be32(piece.bytes, 52) as usize {
            self.add("directory free index", piece, 64 + 2 * index, l::BEST);
        }
    }

    fn hash_block(&mut self, piece: Piece<'_>) {
        let (bytes, count) = (piece.bytes, be16(piece.bytes, 56));
        let (name, entry, fields) = match be16(bytes, 8) {
            0x3ebe => ("hash tree node", "hash tree node entry", l::NODE),
            0x3df1 => ("directory leaf", "directory leaf entry", l::DIR_LEAF),
            0x3dff => ("directory leaf of a tree", "directory leaf entry", l::DIR_LEAF),
            _ => return self.attribute_leaf(piece),
        };
        self.add(name, piece, 0, fields);
        if name == "directory leaf" {
            return self.leaf_entries(piece, 64, count);
        }
        for index in 0..count {
            self.add(entry, piece, 64 + 8 * index, l::HASH_ENTRY);
        }
    }

    fn attribute_leaf(&mut self, piece: Piece<'_>) {
        self.add("attribute leaf", piece, 0, l::ATTR_LEAF);
        for index in 0..be16(piece.bytes, 56) {
            let at = 80 + 8 * index;
            let (name, flags) = (be16(piece.bytes, at + 4), piece.bytes[at + 6]);
            self.add("attribute leaf entry", piece, at, l::ATTR_ENTRY);
            if flags & 1 == 0 {
                self.add("remote attribute", piece, name, l::REMOTE_ATTR);
                continue;
            }
            self.add("local attribute", piece, name, l::LOCAL_ATTR);
            if flags & 8 != 0 {
                let value = name + 3 + usize::from(piece.bytes[name + 2]);
                self.add("parent pointer", piece, value, l::PARENT_VALUE);
            }
        }
    }

    fn inodes(&mut self, piece: Piece<'_>) {
        for (index, bytes) in piece.bytes.chunks_exact(SECTOR).enumerate() {
            let inode = Piece { bytes, at: piece.at + index * SECTOR, crc: Some(100) };
            if be16(bytes, 2) == 0 {
                self.add("free inode", inode, 0, l::INODE);
            } else {
                self.inode(inode);
            }
        }
    }

    fn inode(&mut self, piece: Piece<'_>) {
        let bytes = piece.bytes;
        let (kind, fork) = (bytes[2] >> 4, 8 * usize::from(bytes[82]));
        let name = match kind {
            4 => "inode of a directory",
            8 => "inode of a file",
            _ => "inode of another kind",
        };
        self.add(name, piece, 0, l::INODE);
        match bytes[5] {
            1 if kind == 4 => self.short_directory(piece),
            2 => {
                for index in 0..be32(bytes, 28) as usize {
                    self.add("extent", piece, 176 + 16 * index, l::EXTENT);
                }
            }
            3 => {
                self.add("mapping root", piece, 176, l::FORK_ROOT);
                let pointers = 176 + 4 + (fork - 4) / 16 * 8;
                for index in 0..be16(bytes, 178) {
                    self.add("mapping root", piece, pointers + 8 * index, l::LONG_NUMBER);
                }
            }
            _ => {}
        }
        match bytes[83] {
            1 => self.short_attributes(piece, 176 + fork),
            2 => {
                for index in 0..be32(bytes, 76) as usize {
                    self.add("attribute extent", piece, 176 + fork + 16 * index, l::EXTENT);
                }
            }
            _ => {}
        }
    }

    fn short_directory(&mut self, piece: Piece<'_>) {
        self.add("short directory", piece, 176, l::SHORT_DIR);
        let mut at = 176 + 6;
        for _ in 0..piece.bytes[176] {
            self.add("short directory", piece, at, l::SHORT_DIR_ENTRY);
            at += 3 + usize::from(piece.bytes[at]);
            self.add("short directory", piece, at, l::SHORT_DIR_TARGET);
            at += 5;
        }
    }

    fn short_attributes(&mut self, piece: Piece<'_>, base: usize) {
        self.add("short attributes", piece, base, l::SHORT_ATTRS);
        let mut at = base + 4;
        for _ in 0..piece.bytes[base + 2] {
            let name = at + 3;
            let value = name + usize::from(piece.bytes[at]);
            self.add("short attribute", piece, at, l::SHORT_ATTR);
            if piece.bytes[at + 2] & 8 != 0 {
                self.add("parent pointer", piece, value, l::PARENT_VALUE);
            }
            at = value + usize::from(piece.bytes[at + 1]);
        }
    }
}
