//! Requests that do not begin and end with a block of the device. Clients that ask for the block size
//! send none; some do not ask.
//!
//! Reads get what is around theirs, too. Writes are put together with it, one after the other: so two
//! that share a block without sharing a byte both take effect.

use undercroft_block::{
    BlockError, Buffer, SECTOR_SIZE, Sector, flush, read_into, write_all_at, write_zeroes_at,
};

use super::execute::Executor;
use crate::protocol::{Command, CommandFlags, Request};

/// A range in bytes, and the blocks that it lies in.
#[derive(Clone, Copy)]
pub(super) struct Cover {
    pub(super) start: u64,
    pub(super) end: u64,
    offset: u64,
    length: u64,
}

impl Cover {
    /// The cover of a range that ends within the device, whose length is a multiple of `block`.
    pub(super) fn new(offset: u64, length: u64, block: u64) -> Self {
        let start = offset - offset % block;
        let end = (offset + length).next_multiple_of(block);
        Self { start, end, offset, length }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.end - self.start == self.length
    }

    pub(super) fn length(&self) -> u64 {
        self.end - self.start
    }

    pub(super) fn sector(&self) -> Sector {
        Sector(self.start / SECTOR_SIZE)
    }

    /// Bytes in front of the range.
    fn front(&self) -> usize {
        // Less than a block.
        (self.offset - self.start) as usize
    }

    /// The bytes of the range, of those of the cover.
    pub(super) fn cut(&self, mut data: Buffer) -> Buffer {
        if self.is_exact() {
            return data;
        }
        let mut data = data.split_off(self.front().min(data.len()));
        // Only read in memory, so its length is a usize.
        drop(data.split_off((self.length as usize).min(data.len())));
        data
    }

    /// The blocks that are in the range as a whole: first and last byte, and maybe none.
    pub(super) fn inner(&self, block: u64) -> (u64, u64) {
        let end = self.offset + self.length;
        let start = self.offset.next_multiple_of(block).min(end);
        (start, (end - end % block).max(start))
    }
}

impl Executor {
    /// Writes data or zeroes to a range that is not whole blocks, in the thread of the connection.
    pub(super) fn patch(
        &self,
        request: &Request,
        payload: Option<Buffer>,
    ) -> Result<(), BlockError> {
        let Request { offset, length, .. } = *request;
        let is_durable = request.flags.contains(CommandFlags::FUA);
        let is_zeroes = request.command == Command::WriteZeroes;
        let turn = self.export.patching.lock();
        match payload {
            Some(data) => self.put(offset, &data)?,
            None if is_zeroes && request.flags.contains(CommandFlags::NO_HOLE) => {
                // Checked: some MiB at most.
                self.put(offset, &Buffer::zeroed(length as usize))?;
            }
            None => self.put_zeroes(offset, length)?,
        }
        drop(turn);
        if is_durable { flush(&*self.export.device) } else { Ok(()) }
    }

    fn put_zeroes(&self, offset: u64, length: u64) -> Result<(), BlockError> {
        let (start, end) = Cover::new(offset, length, self.minimum).inner(self.minimum);
        // Less than a block each.
        let zeroes = |length: u64| Buffer::zeroed(length as usize);
        if start == end {
            return self.put(offset, &zeroes(length));
        }
        self.put(offset, &zeroes(start - offset))?;
        write_zeroes_at(&*self.export.device, Sector(start / SECTOR_SIZE), end - start)?;
        self.put(end, &zeroes(offset + length - end))
    }

    fn put(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        if data.is_empty() {
            return Ok(());
        }
        let (device, cover) =
            (&*self.export.device, Cover::new(offset, data.len() as u64, self.minimum));
        let mut blocks = read_into(device, cover.sector(), self.buffer(cover.length() as usize))?;
        blocks[cover.front()..][..data.len()].copy_from_slice(data);
        write_all_at(device, cover.sector(), &blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cover_is_whole_blocks() {
        let cover = |offset, length| {
            let cover = Cover::new(offset, length, 512);
            (cover.start, cover.end, cover.inner(512))
        };
        assert_eq!(cover(512, 1024), (512, 1536, (512, 1536)));
        assert_eq!(cover(1, 1), (0, 512, (2, 2)));
        assert_eq!(cover(511, 2), (0, 1024, (512, 512)));
        assert_eq!(cover(100, 2000), (0, 2560, (512, 2048)));
        let bytes: Vec<u8> = (0..=255).cycle().take(1024).collect();
        let cut = Cover::new(1000, 30, 512).cut(Buffer::copy_of(&bytes));
        assert_eq!(cut[..], bytes[1000 - 512..][..30]);
    }
}
