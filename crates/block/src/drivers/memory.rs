//! A device in memory, for tests and small work: sparse, runs to completion in `submit`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::RwLock;
use rustix::io::Errno;

use crate::bio::Operation;
use crate::driver::{Driver, OpenError, QueueContext, Synchronous};
use crate::queue::{Drive, Leaf, QueueOptions};
use crate::request::{Failure, Request};
use crate::units::{SECTOR_SIZE, Sector};

/// Bytes that are allocated together, on the first write to one of them, unless told otherwise.
const CHUNK: u64 = 64 << 10;

/// A device whose contents live in memory; sectors never written read as zeroes and take none.
pub type MemoryDevice = Leaf<MemoryDriver>;

/// The contents of a [`MemoryDevice`].
pub struct MemoryDriver {
    capacity: Sector,
    /// Bytes of a chunk.
    chunk: u64,
    /// Contents by chunk number.
    chunks: RwLock<BTreeMap<u64, Box<[u8]>>>,
}

impl Leaf<MemoryDriver> {
    /// A device of `bytes` bytes, rounded down to whole sectors, that does each request in the
    /// thread that submits it.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self::in_pieces(bytes, CHUNK)
    }

    /// As [`new`](Self::new), with memory taken in pieces of `piece` bytes, which is not 0: small
    /// ones suit contents that are scattered.
    #[must_use]
    pub fn in_pieces(bytes: u64, piece: u64) -> Self {
        let options = QueueOptions { drive: Drive::Inline, ..QueueOptions::default() };
        let driver = MemoryDriver { chunk: piece, ..MemoryDriver::new(bytes) };
        Self::start(driver, options)
            .expect("neither a thread nor anything of the operating system is needed")
    }

    /// Memory that holds contents, in bytes.
    #[cfg(test)]
    fn allocated_bytes(&self) -> u64 {
        self.driver().chunks.read().len() as u64 * self.driver().chunk
    }
}

impl MemoryDriver {
    /// Contents of `bytes` bytes, rounded down to whole sectors.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let chunks = RwLock::default();
        Self { capacity: Sector(bytes / SECTOR_SIZE), chunk: CHUNK, chunks }
    }

    fn read<'a>(&self, mut offset: u64, pieces: impl Iterator<Item = &'a mut [u8]>) {
        let chunks = self.chunks.read();
        for piece in pieces {
            let mut rest = piece;
            for (number, range) in split(self.chunk, offset, rest.len() as u64) {
                let (here, after) = rest.split_at_mut(range.len());
                match chunks.get(&number) {
                    Some(chunk) => here.copy_from_slice(&chunk[range.clone()]),
                    None => here.fill(0),
                }
                offset += range.len() as u64;
                rest = after;
            }
        }
    }

    fn write<'a>(&self, mut offset: u64, pieces: impl Iterator<Item = &'a [u8]>) {
        let mut chunks = self.chunks.write();
        for piece in pieces {
            let mut rest = piece;
            for (number, range) in split(self.chunk, offset, rest.len() as u64) {
                let (here, after) = rest.split_at(range.len());
                let chunk = chunks.entry(number);
                let chunk = chunk.or_insert_with(|| vec![0; self.chunk as usize].into());
                chunk[range.clone()].copy_from_slice(here);
                offset += range.len() as u64;
                rest = after;
            }
        }
    }

    fn zero(&self, offset: u64, length: u64) {
        let mut chunks = self.chunks.write();
        let end = offset + length;
        // Only chunks that exist are visited: the range may be as large as the device.
        chunks.retain(|&number, chunk| {
            let start = number * self.chunk;
            let (from, to) = (offset.max(start), end.min(start + self.chunk));
            if from < to {
                chunk[(from - start) as usize..(to - start) as usize].fill(0);
            }
            to.saturating_sub(from) < self.chunk
        });
    }
}

/// The chunks of `chunk` bytes that `length` bytes from `offset` on touch: number, and range of
/// bytes inside.
fn split(chunk: u64, offset: u64, length: u64) -> impl Iterator<Item = (u64, Range<usize>)> {
    let end = offset + length;
    (offset / chunk..end.div_ceil(chunk)).map(move |number| {
        let start = number * chunk;
        let (from, to) = (offset.max(start), end.min(start + chunk));
        // Both are at most a chunk.
        (number, (from - start) as usize..(to - start) as usize)
    })
}

impl Driver for MemoryDriver {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        "memory"
    }

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        let start = request.sector().0 * SECTOR_SIZE;
        match request.operation() {
            Operation::Read => self.read(start, request.scatter()),
            Operation::Write => self.write(start, request.gather()),
            Operation::Discard | Operation::WriteZeroes => self.zero(start, request.length()),
            Operation::CloneRange => return Some(Err(Errno::OPNOTSUPP.into())),
            Operation::Flush => {}
        }
        Some(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Bio, BlockDevice, Plug, write_all_at};

    #[test]
    fn memory_is_taken_on_the_first_write_and_given_back_with_whole_chunks() {
        let disk: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(1 << 40));
        let memory = MemoryDevice::new(1 << 40);
        write_all_at(&memory, Sector(0), &[1; 512]).unwrap();
        write_all_at(&memory, Sector(1 << 30), &[1; 512]).unwrap();
        assert_eq!(memory.allocated_bytes(), 2 * CHUNK);
        memory.driver().zero(0, CHUNK);
        assert_eq!(memory.allocated_bytes(), CHUNK);

        let batch = Batch::new();
        Plug::new(&disk).submit(Bio::write_zeroes(Sector(0), 1 << 40).in_batch(&batch));
        assert!(batch.wait().is_ok());
    }

    #[test]
    fn splitting_covers_the_range_once() {
        let pieces: Vec<_> = split(CHUNK, CHUNK - 1, CHUNK + 2).collect();
        let full = CHUNK as usize;
        assert_eq!(pieces, [(0, full - 1..full), (1, 0..full), (2, 0..1)]);
        assert_eq!(split(CHUNK, CHUNK, 0).count(), 0);
        assert_eq!(split(CHUNK, 5, 0).map(|(_, range)| range.len()).sum::<usize>(), 0);
    }
}
