//! Requests that do not begin and end with a block of the device. Clients that ask for the block size
//! send none; some do not ask.
//!
//! Reads get what is around theirs, too. Writes are put together with it, one after the other: so two
//! that share a block without sharing a byte both take effect.

use undercroft_block::{
    BlockError, Buffer, SECTOR_SIZE, Sector, flush, read_into, write_all_at, write_zeroes_at,
};

use super::aligned_range::AlignedRange;
use super::execute::Executor;
use crate::protocol::{Command, CommandFlags, Request};

impl Executor {
    /// Writes data or zeroes to a range that is not whole blocks, in the thread of the connection.
    pub(crate) fn patch(
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
        let (start, end) = AlignedRange::new(offset, length, self.minimum).inner(self.minimum);
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
        let (device, range) =
            (&*self.export.device, AlignedRange::new(offset, data.len() as u64, self.minimum));
        let mut blocks = read_into(device, range.sector(), self.buffer(range.length() as usize))?;
        blocks[range.front()..][..data.len()].copy_from_slice(data);
        write_all_at(device, range.sector(), &blocks)
    }
}
