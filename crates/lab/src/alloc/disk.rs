//! The disk of an experiment that drops its data: which of the files on their way arrives next.
//!
//! A kernel sets space aside behind the end of a file that grows, takes it with the file's own when
//! the file is written back, and frees the rest when the file is closed. Its writer waits for the
//! disk meanwhile, and files of others are put behind space that will not be used. So the free
//! space that a workload finds depends on how many files are on their way to the disk.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use undercroft_xfs::Volume;
use undercroft_xfs::format::Extent;
use undercroft_xfs::inode::ExtentList;
use undercroft_xfs::internals::bmap;
use undercroft_xfs::units::{FileBlock, FsBlock, InodeNumber};

use super::mounted::WRITE_BYTES;

/// A disk that files in flight share evenly.
#[derive(Debug)]
pub(super) struct Disk {
    in_flight: usize,
    /// Files by the time of their arrival.
    files: BinaryHeap<Reverse<(u64, InodeNumber)>>,
    /// Bytes that a file would have got that was in flight all the time.
    clock: u64,
}

impl Disk {
    /// A disk for so many files at a time, at least one.
    pub(super) fn new(in_flight: usize) -> Self {
        Self { in_flight: in_flight.max(1), files: BinaryHeap::new(), clock: 0 }
    }

    /// Sends a file of `bytes` bytes on its way; the one that arrives meanwhile, if all writers are
    /// waiting now.
    pub(super) fn send(&mut self, file: InodeNumber, bytes: u64) -> Option<InodeNumber> {
        self.files.push(Reverse((self.clock + bytes, file)));
        if self.files.len() < self.in_flight { None } else { self.arrival() }
    }

    /// The next file to arrive, if there is one on its way.
    pub(super) fn arrival(&mut self) -> Option<InodeNumber> {
        let Reverse((time, file)) = self.files.pop()?;
        self.clock = time;
        Some(file)
    }
}

/// Blocks that are set aside for a file by the time that all its `bytes` bytes are written, one
/// call after the other: its own and those ahead.
pub(super) fn set_aside(volume: &Volume, bytes: u64) -> u64 {
    let geometry = volume.geometry();
    let (mut end, mut written) = (FileBlock(0), 0);
    while written < bytes {
        let next = bytes.min(written + WRITE_BYTES as u64);
        let hole = end..FileBlock(geometry.blocks_for(next));
        if hole.start < hole.end {
            // Where it will be is not known yet, but it is one piece.
            let (offset, start) = (FileBlock(0), FsBlock(0));
            // A file of this experiment has fewer blocks than a volume of 2^32.
            let piece = Extent { offset, start, len: end.0 as u32, unwritten: false };
            let pieces = if end.0 == 0 { Vec::new() } else { vec![piece] };
            end = bmap::ahead(volume, &ExtentList::from_sorted(pieces), &hole, written);
        }
        written = next;
    }
    end.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_files_arrive_first_and_long_ones_in_the_end() {
        let mut disk = Disk::new(3);
        let file = InodeNumber;
        assert_eq!((disk.send(file(1), 100), disk.send(file(2), 10)), (None, None));
        // At 10 and at 15; then the rest of them.
        assert_eq!(disk.send(file(3), 15), Some(file(2)));
        assert_eq!(disk.send(file(4), 80), Some(file(3)));
        assert_eq!(
            [disk.arrival(), disk.arrival(), disk.arrival()],
            [Some(file(4)), Some(file(1)), None]
        );
        // The disk is at 100.
        assert_eq!((disk.send(file(5), 7), disk.send(file(6), 9)), (None, None));
        assert_eq!(disk.send(file(7), 8), Some(file(5)));
    }
}
