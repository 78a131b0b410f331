//! Where the structures of a volume of version 4 are, which have no checksums. Its blocks have 4 KiB,
//! its inodes 256 bytes and its sectors 512.

use super::layout::{self as l, Field};
use super::locate::{BLOCK, SECTOR, Target, Targets, be16, be32};
use std::error::Error;
use std::path::PathBuf;
use tempfile::TempDir;
use undercroft_judges::Xfsprogs;

/// Makes a volume of version 4, which few kernels still mount; its image is in the directory.
pub(crate) fn old_volume() -> Result<(TempDir, PathBuf), Box<dyn Error + Send + Sync>> {
    let directory = tempfile::tempdir()?;
    let (image, data) = (directory.path().join("old.img"), directory.path().join("data"));
    std::fs::write(&data, vec![7; 3 * BLOCK])?;
    let data = data.display();
    let file = |number: u32| format!("file-{number} ---644 0 0 {data}\n");
    let files = |count: u32| (0..count).map(file).collect::<String>();
    let (target, few, many) = ("t".repeat(600), files(20), files(300));
    let text = format!(
        "/\n0 0\nd--755 0 0\nfile ---644 0 0 {data}\nlink l--777 0 0 {target}\nshort l--777 0 0 to\n\
         device b--644 0 0 8 1\npipe p--644 0 0\nnone d--755 0 0\n$\nfew d--755 0 0\n{few}$\n\
         many d--755 0 0\n{many}$\n$\n"
    );
    let prototype = directory.path().join("prototype");
    std::fs::write(&prototype, text)?;
    let prototype = prototype.display().to_string();
    let options = ["-m", "crc=0", "-i", "size=256", "-d", "agcount=4", "-p", &prototype];
    Xfsprogs::distribution()?.mkfs(&image, 64 << 20, &options)?;
    Ok((directory, image))
}

/// Bytes of an inode, and of its core.
const INODE: usize = 256;
const CORE: usize = 100;

/// Looks for structures in `image`.
pub(crate) fn locate(image: &[u8]) -> Targets {
    let mut found = Found::default();
    for (index, block) in image.chunks_exact(BLOCK).enumerate() {
        let piece = Piece { bytes: block, at: index * BLOCK };
        match (&block[..4], be16(block, 8)) {
            (b"XFSB", _) => found.headers(piece),
            (b"ABTB", _) => found.tree(piece, ["bnobt block", "bnobt record"], l::FREE_SPACE, 8),
            (b"ABTC", _) => found.tree(piece, ["cntbt block", "cntbt record"], l::FREE_SPACE, 8),
            (b"IABT", _) => found.tree(piece, ["inobt block", "inobt record"], l::CHUNK, 16),
            (b"XD2B" | b"XD2D", _) => found.directory_block(piece),
            ([b'I', b'N', ..], _) => found.inodes(piece),
            (_, 0xd2f1) if be16(block, 12) > 0 => found.leaf(piece),
            _ => {}
        }
    }
    found.0
}

/// A block or a sector.
#[derive(Clone, Copy)]
struct Piece<'a> {
    bytes: &'a [u8],
    at: usize,
}

#[derive(Default)]
struct Found(Targets);

impl Found {
    fn add(&mut self, name: &'static str, piece: Piece<'_>, base: usize, fields: &'static [Field]) {
        let target = Target { at: piece.at, len: piece.bytes.len(), crc: None, base, fields };
        self.0.entry(name).or_default().push(target);
    }

    fn headers(&mut self, piece: Piece<'_>) {
        let sector = |index: usize| Piece {
            bytes: &piece.bytes[index * SECTOR..][..SECTOR],
            at: piece.at + index * SECTOR,
        };
        let name = if piece.at == 0 { "superblock" } else { "secondary superblock" };
        self.add(name, sector(0), 0, l::SUPERBLOCK);
        let agf = sector(1);
        self.add("AGF", agf, 0, l::OLD_AGF);
        self.add("AGI", sector(2), 0, l::OLD_AGI);
        let (first, count) = (be32(agf.bytes, 40) as usize, be32(agf.bytes, 48) as usize);
        for index in first..first + count {
            self.add("AGFL", sector(3), 4 * (index % 128), l::BLOCK_NUMBER);
        }
    }

    fn tree(
        &mut self,
        piece: Piece<'_>,
        [block, record]: [&'static str; 2],
        fields: &'static [Field],
        len: usize,
    ) {
        self.add(block, piece, 0, l::OLD_SHORT_TREE);
        for index in 0..be16(piece.bytes, 6) {
            self.add(record, piece, 16 + index * len, fields);
        }
    }

    fn directory_block(&mut self, piece: Piece<'_>) {
        let bytes = piece.bytes;
        let (mut end, mut at) = (BLOCK, 16);
        if bytes.starts_with(b"XD2B") {
            let count = be32(bytes, BLOCK - 8) as usize;
            end = BLOCK - 8 - 8 * count;
            self.add("directory block tail", piece, BLOCK - 8, l::BLOCK_TAIL);
            for index in 0..count {
                self.add("directory block leaf entry", piece, end + 8 * index, l::HASH_ENTRY);
            }
        }
        self.add("directory block", piece, 0, l::OLD_DIR_BLOCK);
        while at + 16 <= end {
            let len = if bytes[at..].starts_with(&[0xff, 0xff]) {
                self.add("directory free entry", piece, at, l::FREE_ENTRY);
                be16(bytes, at + 2)
            } else {
                let name_len = usize::from(bytes[at + 8]);
                self.add("directory entry", piece, at, l::DIR_ENTRY);
                // With the type of the file behind the name.
                (12 + name_len).next_multiple_of(8)
            };
            if len < 8 || at + len > end {
                break;
            }
            self.add("directory entry", piece, at + len - 2, l::TAG);
            at += len;
        }
    }

    fn leaf(&mut self, piece: Piece<'_>) {
        self.add("directory leaf", piece, 0, l::OLD_DIR_LEAF);
        for index in 0..be16(piece.bytes, 12) {
            self.add("directory leaf entry", piece, 16 + 8 * index, l::HASH_ENTRY);
        }
        self.add("directory leaf", piece, BLOCK - 4, l::BEST_COUNT);
        for index in 0..be32(piece.bytes, BLOCK - 4) as usize {
            self.add("directory leaf", piece, BLOCK - 6 - 2 * index, l::BEST);
        }
    }

    fn inodes(&mut self, piece: Piece<'_>) {
        for (index, bytes) in piece.bytes.chunks_exact(INODE).enumerate() {
            let inode = Piece { bytes, at: piece.at + index * INODE };
            if be16(bytes, 2) == 0 {
                continue;
            }
            let name = match bytes[2] >> 4 {
                4 => "inode of a directory",
                8 => "inode of a file",
                _ => "inode of another kind",
            };
            // What is written is whole sectors.
            let sector = inode.at / SECTOR * SECTOR;
            let (base, within) = (inode.at - sector, sector - piece.at);
            let whole = Piece { bytes: &piece.bytes[within..within + SECTOR], at: sector };
            self.add(name, whole, base, l::OLD_INODE);
            if bytes[5] == 2 {
                for index in 0..be32(bytes, 76) as usize {
                    self.add("extent", whole, base + CORE + 16 * index, l::EXTENT);
                }
            }
        }
    }
}
