//! The blocks of a range of bytes.

use undercroft_block::{Buffer, SECTOR_SIZE, Sector};

/// Up to so many bytes are moved by the thread of the connection, where that takes no more than a
/// copy: short against the time in which a client notices that other answers are late.
pub(crate) const OWN: u64 = 256 << 10;

/// A range in bytes, and the blocks that it lies in.
#[derive(Clone, Copy)]
pub(crate) struct AlignedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    offset: u64,
    length: u64,
}

impl AlignedRange {
    /// The blocks around a range that ends within the device, whose length is a multiple of `block`.
    pub(crate) fn new(offset: u64, length: u64, block: u64) -> Self {
        let start = offset - offset % block;
        let end = (offset + length).next_multiple_of(block);
        Self { start, end, offset, length }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.end - self.start == self.length
    }

    pub(crate) fn length(&self) -> u64 {
        self.end - self.start
    }

    /// Whether the thread of the connection may move so many bytes itself.
    pub(crate) fn is_short(&self) -> bool {
        self.length() <= OWN
    }

    pub(crate) fn sector(&self) -> Sector {
        Sector(self.start / SECTOR_SIZE)
    }

    /// Bytes in front of the range.
    pub(crate) fn front(&self) -> usize {
        // Less than a block.
        (self.offset - self.start) as usize
    }

    /// The bytes of the range, of those of all blocks.
    pub(crate) fn cut(&self, mut data: Buffer) -> Buffer {
        if self.is_exact() {
            return data;
        }
        let mut data = data.split_off(self.front().min(data.len()));
        // Only read in memory, so its length is a usize.
        drop(data.split_off((self.length as usize).min(data.len())));
        data
    }

    /// The blocks that are in the range as a whole: first and last byte, and maybe none.
    pub(crate) fn inner(&self, block: u64) -> (u64, u64) {
        let end = self.offset + self.length;
        let start = self.offset.next_multiple_of(block).min(end);
        (start, (end - end % block).max(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_around_a_range_are_whole() {
        let blocks = |offset, length| {
            let range = AlignedRange::new(offset, length, 512);
            (range.start, range.end, range.inner(512))
        };
        assert_eq!(blocks(512, 1024), (512, 1536, (512, 1536)));
        assert_eq!(blocks(1, 1), (0, 512, (2, 2)));
        assert_eq!(blocks(511, 2), (0, 1024, (512, 512)));
        assert_eq!(blocks(100, 2000), (0, 2560, (512, 2048)));
        let bytes: Vec<u8> = (0..=255).cycle().take(1024).collect();
        let cut = AlignedRange::new(1000, 30, 512).cut(Buffer::copy_of(&bytes));
        assert_eq!(cut[..], bytes[1000 - 512..][..30]);
    }
}
