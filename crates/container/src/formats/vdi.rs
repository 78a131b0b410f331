//! VDI, of VirtualBox: a header, a map of blocks, and the blocks.
//!
//! Fields: "All about VDIs" in VirtualBox's forum, and the bytes that `qemu-img` and `VBoxManage` write.
//! All numbers are little-endian.

use crate::disk::{Disk, Stored, by_blocks};
use crate::field::{le32, le64};
use crate::obstacle::{Obstacle, damaged, not_supported};
use std::io;

const HEADER: usize = 400;
const SIGNATURE: u32 = 0xbeda_107f;
const SIGNATURE_AT: usize = 64;
const VERSION: u32 = 0x0001_0001;
const DYNAMIC: u32 = 1;
const FIXED: u32 = 2;
/// Blocks from this number on are not there: they read as zeroes.
const NOT_THERE: u32 = 0xffff_fffe;
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=64 << 20;

/// Whether a file begins as such an image.
pub(super) fn is_one(start: &[u8]) -> bool {
    start.get(SIGNATURE_AT..SIGNATURE_AT + 4) == Some(&SIGNATURE.to_le_bytes())
}

struct Vdi {
    stored: Stored,
    bytes: u64,
    map_at: u64,
    data_at: u64,
    block_bytes: u64,
}

pub(super) fn open(stored: Stored) -> Result<Box<dyn Disk>, Obstacle> {
    let header: [u8; HEADER] = stored.array(0)?;
    let field = |at: usize| u64::from(le32(&header, at));
    if le32(&header, 68) != VERSION {
        return not_supported("a version other than 1.1");
    }
    match le32(&header, 76) {
        DYNAMIC | FIXED => {}
        3 | 4 => return not_supported("only the changes to another one"),
        other => return damaged(format!("it is of type {other}")),
    }
    let (map_at, data_at, block_bytes) = (field(340), field(344), field(376));
    let (bytes, blocks) = (le64(&header, 368), field(384));
    if !BLOCK_BYTES.contains(&block_bytes) || !block_bytes.is_power_of_two() {
        return damaged(format!("it has blocks of {block_bytes} bytes"));
    }
    if field(380) != 0 {
        return not_supported("extra bytes before its blocks");
    }
    if bytes.div_ceil(block_bytes) > blocks {
        return damaged(format!("a disk of {bytes} bytes has {blocks} blocks"));
    }
    if map_at + 4 * blocks > stored.length() {
        return damaged("the map of blocks ends behind the file; is it cut?");
    }
    Ok(Box::new(Vdi { stored, bytes, map_at, data_at, block_bytes }))
}

impl Disk for Vdi {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        by_blocks(at, memory, self.block_bytes, |block, offset, piece| {
            let place = u32::from_le_bytes(self.stored.array(self.map_at + 4 * block)?);
            if place >= NOT_THERE {
                piece.fill(0);
                return Ok(());
            }
            // A number of 32 bits of blocks of at most 64 MiB.
            self.stored.fill(self.data_at + u64::from(place) * self.block_bytes + offset, piece)
        })
    }
}
