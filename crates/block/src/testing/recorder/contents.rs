//! The sectors of a disk in memory, cheap to copy.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::bio::BlockError;
use crate::device::BlockDevice;
use crate::plug::read_exact_at;
use crate::units::{SECTOR_SIZE, Sector};

/// Bytes of a chunk, the unit that copies share.
const CHUNK: usize = 4096;

/// Sectors of a chunk.
const CHUNK_SECTORS: u64 = CHUNK as u64 / SECTOR_SIZE;

type Chunk = [u8; CHUNK];

/// What the sectors of a disk hold; those never written hold zeroes and take no memory. A clone
/// shares the chunks until one of the two is written.
#[derive(Clone, Default)]
pub(super) struct Contents {
    chunks: BTreeMap<u64, Arc<Chunk>>,
}

impl Contents {
    /// What `device` holds.
    pub(super) fn of(device: &dyn BlockDevice) -> Result<Self, BlockError> {
        let mut contents = Self::default();
        let mut bytes = vec![0; 1 << 20];
        let mut at = Sector::ZERO;
        while at < device.capacity() {
            let left = (device.capacity().0 - at.0).saturating_mul(SECTOR_SIZE);
            let bytes = &mut bytes[..usize::try_from(left).unwrap_or(usize::MAX).min(1 << 20)];
            read_exact_at(device, at, bytes)?;
            for (number, sector) in (at.0..).zip(bytes.chunks(SECTOR_SIZE as usize)) {
                if sector.iter().any(|byte| *byte != 0) {
                    contents.write(number * SECTOR_SIZE, sector);
                }
            }
            at = Sector(at.0 + bytes.len() as u64 / SECTOR_SIZE);
        }
        Ok(contents)
    }

    /// Copies out the bytes from `offset` on.
    pub(super) fn read(&self, offset: u64, mut bytes: &mut [u8]) {
        for (number, range) in pieces(offset, bytes.len()) {
            let (here, rest) = std::mem::take(&mut bytes).split_at_mut(range.len());
            match self.chunks.get(&number) {
                Some(chunk) => here.copy_from_slice(&chunk[range]),
                None => here.fill(0),
            }
            bytes = rest;
        }
    }

    /// Stores `bytes` from `offset` on.
    pub(super) fn write(&mut self, offset: u64, mut bytes: &[u8]) {
        for (number, range) in pieces(offset, bytes.len()) {
            let (here, rest) = bytes.split_at(range.len());
            let chunk = self.chunks.entry(number).or_insert_with(|| Arc::new([0; CHUNK]));
            Arc::make_mut(chunk)[range].copy_from_slice(here);
            bytes = rest;
        }
    }

    /// Makes `sectors` hold zeroes.
    pub(super) fn zero(&mut self, sectors: Range<Sector>) {
        let (start, end) = (sectors.start.0, sectors.end.0);
        if start >= end {
            return;
        }
        // Only chunks that exist are visited: the range may be as large as the disk.
        let touched = start / CHUNK_SECTORS..end.div_ceil(CHUNK_SECTORS);
        let touched: Vec<u64> = self.chunks.range(touched).map(|(number, _)| *number).collect();
        for number in touched {
            let first = number * CHUNK_SECTORS;
            let from = start.max(first) - first;
            let to = end.min(first + CHUNK_SECTORS) - first;
            if to - from == CHUNK_SECTORS {
                self.chunks.remove(&number);
            } else if let Some(chunk) = self.chunks.get_mut(&number) {
                // Both are at most CHUNK_SECTORS.
                let range = (from * SECTOR_SIZE) as usize..(to * SECTOR_SIZE) as usize;
                Arc::make_mut(chunk)[range].fill(0);
            }
        }
    }
}

/// The chunks that `length` bytes from `offset` on touch: number, and range of bytes inside.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut number = offset / CHUNK as u64;
    // Below CHUNK.
    let mut start = (offset % CHUNK as u64) as usize;
    let mut left = length;
    std::iter::from_fn(move || {
        let here = (CHUNK - start).min(left);
        let piece = (number, start..start + here);
        left -= here;
        number += 1;
        start = 0;
        (here > 0).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_zeroes_and_copies() {
        let mut contents = Contents::default();
        contents.write(6 * 512, &[1; 4 * 512]);
        let copy = contents.clone();
        contents.zero(Sector(7)..Sector(9));
        let mut bytes = [9; 6 * 512];
        contents.read(5 * 512, &mut bytes);
        let firsts: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
        assert_eq!(firsts, [0, 1, 0, 0, 1, 0]);
        copy.read(5 * 512, &mut bytes);
        let firsts: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
        assert_eq!(firsts, [0, 1, 1, 1, 1, 0]);
        contents.zero(Sector(0)..Sector(1 << 40));
        assert_eq!((contents.chunks.len(), copy.chunks.len()), (0, 2));
    }
}
