//! Where the structures of a volume of version 4 are, which have no checksums. Its blocks have 4 KiB,
//! its inodes 256 bytes and its sectors 512.

use super::found::{BLOCK, Found, OLD, Piece, SECTOR, Targets, be16, be32};
use super::layout as l;
use std::error::Error;
use std::path::PathBuf;
use tempfile::TempDir;
use undercroft_judges::Xfsprogs;

/// Makes a volume of version 4, which few kernels still mount; its image is in the directory.
pub fn old_volume() -> Result<(TempDir, PathBuf), Box<dyn Error + Send + Sync>> {
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
    let mut found = Found::new(&OLD);
    for (index, block) in image.chunks_exact(BLOCK).enumerate() {
        let piece = Piece { bytes: block, at: index * BLOCK, crc: None };
        match (&block[..4], be16(block, 8)) {
            (b"XFSB", _) => found.headers(piece),
            (b"ABTB", _) => found.tree(piece, ["bnobt block", "bnobt record"], l::FREE_SPACE, 8),
            (b"ABTC", _) => found.tree(piece, ["cntbt block", "cntbt record"], l::FREE_SPACE, 8),
            (b"IABT", _) => found.tree(piece, ["inobt block", "inobt record"], l::CHUNK, 16),
            (b"XD2B", _) => found.directory_block("directory block", piece, true),
            (b"XD2D", _) => found.directory_block("directory block", piece, false),
            ([b'I', b'N', ..], _) => found.old_inodes(piece),
            (_, 0xd2f1) if be16(block, 12) > 0 => found.leaf(piece),
            _ => {}
        }
    }
    found.targets
}

impl Found {
    fn leaf(&mut self, piece: Piece<'_>) {
        self.add("directory leaf", piece, 0, l::OLD_DIR_LEAF);
        self.leaf_entries(piece, 16, be16(piece.bytes, 12));
    }

    fn old_inodes(&mut self, piece: Piece<'_>) {
        for (index, bytes) in piece.bytes.chunks_exact(INODE).enumerate() {
            let inode = Piece { bytes, at: piece.at + index * INODE, crc: None };
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
            let whole =
                Piece { bytes: &piece.bytes[within..within + SECTOR], at: sector, crc: None };
            self.add(name, whole, base, l::OLD_INODE);
            if bytes[5] == 2 {
                for index in 0..be32(bytes, 76) as usize {
                    self.add("extent", whole, base + CORE + 16 * index, l::EXTENT);
                }
            }
        }
    }
}
