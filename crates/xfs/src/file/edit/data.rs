//! Bytes of a file on their way to its blocks.

use super::{FileEdit, Step};
use crate::error::Error;
use crate::file::read::read_extent;
use crate::format::Extent;
use crate::inode::Run;
use crate::units::FsBlock;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{Bio, Sector, Segment, SegmentList};

/// Where bytes come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'m> {
    /// Memory, whose byte `first` belongs at `offset` of the file.
    Memory { memory: &'m Arc<Vec<u8>>, first: usize, offset: u64 },
    /// Dirty data, in whole blocks.
    Run(&'m Run),
    /// Zeros, for stored bytes; others read as zeros already.
    Zeroes,
}

impl Source<'_> {
    fn append(self, segments: &mut SegmentList, bytes: &Range<u64>) {
        let len = (bytes.end - bytes.start) as usize;
        match self {
            Self::Memory { memory, first, offset } => {
                let start = first + (bytes.start - offset) as usize;
                segments.push(Segment::shared(memory, start..start + len));
            }
            Self::Run(run) => run.append(segments, bytes),
            Self::Zeroes => segments.push_zeroes(len),
        }
    }
}

/// The old content of the blocks of a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old<'e> {
    /// Where that is.
    pub(super) extent: &'e Extent,
    /// The end of the file: bytes stored behind it are no part of it.
    pub(super) size: u64,
}

impl FileEdit<'_> {
    /// Writes the bytes `bytes` of the file to `place`, with those around them in `whole`: these
    /// are as in `old`, or zeros.
    pub(super) fn send(
        &self,
        place: &Extent,
        bytes: Range<u64>,
        whole: Range<u64>,
        source: Source<'_>,
        old: Option<Old<'_>>,
    ) -> Result<(), Error> {
        let sector = self.sector(place, whole.start);
        let mut segments = SegmentList::new();
        self.append_old(&mut segments, whole.start..bytes.start, old)?;
        source.append(&mut segments, &bytes);
        self.append_old(&mut segments, bytes.end..whole.end, old)?;
        let segments = self.volume.cache().in_fitting_memory(segments);
        self.plug.submit(Bio::write(sector, segments).in_batch(&self.writes));
        Ok(())
    }

    /// Makes sure that data sent is on the device before the step is part of the volume: the
    /// journal waits for it, or this does.
    pub(super) fn before(&self, step: &mut Step<'_>) -> Result<(), Error> {
        if !self.plugged {
            self.plug.flush();
        }
        if self.volume.is_live() {
            step.trans.add_data(&self.writes);
            return Ok(());
        }
        Ok(self.writes.wait()?)
    }

    /// As [`before`](Self::before), for all changes that become durable from now on.
    pub(super) fn before_next_checkpoint(&self) -> Result<(), Error> {
        if !self.plugged {
            self.plug.flush();
        }
        if self.volume.is_live() {
            self.volume.add_data(&self.writes);
            return Ok(self.writes.check()?);
        }
        Ok(self.writes.wait()?)
    }

    /// Sector of a byte of the file that lies in `extent`.
    fn sector(&self, extent: &Extent, byte: u64) -> Sector {
        let geometry = self.geometry();
        let block = (byte >> geometry.block_log) - extent.offset.0;
        let inside = byte & (geometry.block_size() as u64 - 1);
        Sector(geometry.sector(FsBlock(extent.start.0 + block)).0 + inside / 512)
    }

    /// Appends the bytes of the file around a write. Behind its end these are zeros, whatever the
    /// blocks hold.
    fn append_old(
        &self,
        segments: &mut SegmentList,
        bytes: Range<u64>,
        old: Option<Old<'_>>,
    ) -> Result<(), Error> {
        let len = (bytes.end - bytes.start) as usize;
        let known = |old: &Old<'_>| bytes.end.min(old.size).saturating_sub(bytes.start) as usize;
        if let Some((old, known)) =
            old.map(|old| (old, known(&old))).filter(|(_, known)| *known > 0)
        {
            let content = read_extent(self.volume, old.extent, bytes.start, known)?;
            segments.push(Segment::shared(&Arc::new(content), 0..known));
            segments.push_zeroes(len - known);
        } else {
            segments.push_zeroes(len);
        }
        Ok(())
    }
}
