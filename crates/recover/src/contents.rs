//! The bytes of a removed file.

use undercroft_block::read_buffer;
use undercroft_xfs_format::Extent;

use crate::disk::Disk;
use crate::error::RecoverError;
use crate::removed::{Content, RemovedFile};

/// Bytes read at a time.
const PIECE: u64 = 1 << 20;

/// The data of a removed file, read from where it lies.
#[derive(Clone, Copy)]
pub struct Contents<'d> {
    disk: &'d Disk,
    file: &'d RemovedFile,
}

impl<'d> Contents<'d> {
    /// The data of `file`, found on `disk`.
    #[must_use]
    pub fn new(disk: &'d Disk, file: &'d RemovedFile) -> Self {
        Self { disk, file }
    }

    /// Where data is, as bytes of the file, in ascending order; what lies between is a hole.
    #[must_use]
    pub fn ranges(&self) -> Vec<std::ops::Range<u64>> {
        let log = self.disk.geometry.block_log;
        let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
        for extent in self.written() {
            let start = extent.offset.0 << log;
            let end = (extent.end().0 << log).min(self.file.size);
            if start >= end {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }

    fn written(&self) -> impl Iterator<Item = &'d Extent> {
        let extents: &[Extent] = match &self.file.content {
            Content::Map(map) => &map.extents,
            _ => &[],
        };
        extents.iter().filter(|extent| !extent.unwritten)
    }

    /// Hands over all data in ascending order, in pieces, each with its place in the file.
    ///
    /// # Errors
    /// The device failed, or the error of `take`.
    pub fn read<E: From<RecoverError>>(
        &self,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let geometry = &self.disk.geometry;
        for extent in self.written() {
            let first = geometry.sector(extent.start).0;
            let start = extent.offset.0 << geometry.block_log;
            let end = (extent.end().0 << geometry.block_log).min(self.file.size);
            let mut at = start;
            while at < end {
                let len = (end - at).min(PIECE);
                let sector = undercroft_block::Sector(first + (at - start) / 512);
                // Whole blocks: the file may end inside of one.
                let whole = (len as usize).next_multiple_of(geometry.block_size());
                let read = read_buffer(self.disk.present.as_ref(), sector, whole);
                let bytes = read.map_err(|error| E::from(error.into()))?;
                take(at, &bytes[..len as usize])?;
                at += len;
            }
        }
        Ok(())
    }
}
