//! Metadata with wrong contents but right checksums: what no disk error makes, but an attacker or a
//! defect in software does.

use std::error::Error;
use std::sync::Arc;
use undercroft_block::{BlockDevice, Sector, read_exact_at, write_all_at};
use undercroft_xfs::check::{CheckOptions, Report, check};
use undercroft_xfs::format::{BufferKind, Header, stamp_inode_crc};
use undercroft_xfs::units::Lsn;

/// Unit in which metadata is looked for, and block size of the volumes.
pub const BLOCK: usize = 4096;
const SECTOR: usize = 512;
const INODE: usize = 512;

/// A block or a group header that holds metadata.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Block(BufferKind, usize),
    Inodes(usize),
}

/// Checks a volume; returns the report and the findings as text.
pub fn check_device(
    device: &Arc<dyn BlockDevice>,
) -> Result<(Report, Vec<String>), undercroft_xfs::Error> {
    let mut findings = Vec::new();
    let report = check(Arc::clone(device), &CheckOptions::default(), &mut |finding| {
        findings.push(finding.to_string());
    })?;
    Ok((report, findings))
}

/// A volume in memory and where its metadata is.
pub struct Subject {
    device: Arc<dyn BlockDevice>,
    pieces: Vec<(u64, Piece)>,
    /// Names of the pieces that are damaged at present.
    damage: Vec<String>,
    random: u64,
}

#[allow(dead_code, reason = "not every test uses all of it")]
impl Subject {
    /// Copies a volume with blocks of 4 KiB, inodes and sectors of 512 bytes to `device`, which
    /// holds zeroes.
    pub fn new(
        device: Arc<dyn BlockDevice>,
        image: &[u8],
        seed: u64,
    ) -> Result<Self, Box<dyn Error>> {
        let mut pieces = Vec::new();
        for (index, block) in image.chunks_exact(BLOCK).enumerate() {
            if block.iter().all(|byte| *byte == 0) {
                continue;
            }
            let sector = (index * BLOCK / SECTOR) as u64;
            write_all_at(device.as_ref(), Sector(sector), block)?;
            if block.starts_with(b"XFSB") {
                let kinds =
                    [BufferKind::Superblock, BufferKind::Agf, BufferKind::Agi, BufferKind::Agfl];
                for (offset, kind) in (0..).zip(kinds) {
                    pieces.push((sector + offset, Piece::Block(kind, SECTOR)));
                }
            } else if let Some(kind) = kind_of(block) {
                pieces.push((sector, Piece::Block(kind, BLOCK)));
            } else if block.starts_with(b"IN") {
                pieces.push((sector, Piece::Inodes(BLOCK)));
            }
        }
        Ok(Self { device, pieces, damage: Vec::new(), random: seed })
    }

    /// Pieces of metadata found.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The pieces that are damaged at present.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    fn next(&mut self, below: usize) -> usize {
        // xorshift64*.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        ((self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % below
    }

    /// The volume.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// Checks the volume; returns the report and the findings as text.
    pub fn check(&self) -> Result<(Report, Vec<String>), undercroft_xfs::Error> {
        check_device(&self.device)
    }

    /// Changes up to `most` pieces, has `judge` look at the volume, puts the pieces back.
    pub fn round<T>(
        &mut self,
        most: usize,
        judge: impl FnOnce(&Self) -> T,
    ) -> Result<T, Box<dyn Error>> {
        let count = 1 + self.next(most);
        let mut saved = Vec::new();
        self.damage.clear();
        for _ in 0..count {
            let chosen = self.next(self.pieces.len());
            let (sector, piece) = self.pieces[chosen];
            let (Piece::Block(_, len) | Piece::Inodes(len)) = piece;
            let mut bytes = vec![0; len];
            read_exact_at(self.device.as_ref(), Sector(sector), &mut bytes)?;
            saved.push((sector, bytes.clone()));
            self.damage.push(format!("{piece:?} at sector {sector}"));
            for _ in 0..=self.next(6) {
                self.change(&mut bytes);
            }
            match piece {
                Piece::Block(kind, _) => {
                    if let Some(header) = Header::of(kind) {
                        header.stamp(&mut bytes, Lsn(0), BLOCK);
                    }
                }
                Piece::Inodes(_) => bytes.chunks_exact_mut(INODE).for_each(stamp_inode_crc),
            }
            write_all_at(self.device.as_ref(), Sector(sector), &bytes)?;
        }
        let verdict = judge(self);
        for (sector, bytes) in saved.iter().rev() {
            write_all_at(self.device.as_ref(), Sector(*sector), bytes)?;
        }
        Ok(verdict)
    }

    /// One changed field; fields near the front are hit most.
    fn change(&mut self, bytes: &mut [u8]) {
        let range = if self.next(2) == 0 { bytes.len().min(256) } else { bytes.len() };
        let at = self.next(range);
        match self.next(5) {
            0 => bytes[at] ^= 1 << self.next(8),
            1 => bytes[at] = self.next(256) as u8,
            2 => {
                let end = (at + 1 + self.next(8)).min(bytes.len());
                bytes[at..end].fill(if self.next(2) == 0 { 0xff } else { 0 });
            }
            3 => bytes[at] = bytes[at].wrapping_add(1),
            _ => {
                // What belongs elsewhere in the block.
                let (from, len) = (self.next(bytes.len() - 8), 8.min(bytes.len() - at));
                bytes.copy_within(from..from + len, at);
            }
        }
    }
}

/// Kind of a block, by its magic and its checksum.
fn kind_of(block: &[u8]) -> Option<BufferKind> {
    let kind = BufferKind::of_block(block)?;
    Header::of(kind)?.checksum_matches(block, BLOCK).then_some(kind)
}
