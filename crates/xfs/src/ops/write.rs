//! Contents of new files.
//!
//! Space for all data of a file is allocated before the first byte arrives, as delayed allocation
//! would; then the bytes go to the device as they come, in the memory they came in. Blocks are
//! written whole: what a block holds besides data is zeros.

use super::DataPlacement;
use crate::bmap;
use crate::error::{Error, ErrorKind};
use crate::format::{Extent, FileType};
use crate::geometry::Geometry;
use crate::inode::{ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{Batch, Bio, BlockDevice, Plug, PlugThreshold, Segment, SegmentList};

/// A write is sent when it has this many bytes; the plug merges small ones up to the limits of the
/// device.
const SEND_BYTES: u64 = 1 << 20;

/// What a writer stages. Files go to several groups in turn: with less, a request in each is cut
/// off more often (with half of it the requests of a source tree are 5 % smaller).
const STAGED: PlugThreshold = PlugThreshold { bios: 4096, bytes: 8 << 20 };

/// Largest file of the format in bytes: 2^63 - 1.
pub(crate) const MAX_FILE_SIZE: u64 = i64::MAX as u64;

/// Extents of the data of one file, ascending.
pub type FileMap = SmallVec<[Extent; 1]>;

/// Gives an empty regular file its size and the space for its data; what is not in `data` (byte
/// ranges, ascending, disjoint) is a hole. `placement` says where data goes and follows it.
///
/// # Errors
/// The size is beyond the format; no space; a damaged structure; the device failed.
pub fn allocate_file(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    size: u64,
    data: impl IntoIterator<Item = Range<u64>>,
    placement: &mut DataPlacement,
) -> Result<FileMap, Error> {
    if inode.file_type() != FileType::Regular || !inode.data.is_empty() {
        let path = format!("inode {}", inode.number);
        return Err(Error::WrongKind {
            path,
            what: "not an empty regular file",
            kind: ErrorKind::Invalid,
        });
    }
    if size > MAX_FILE_SIZE {
        return Err(Error::TooLarge(format!("a file of {size} bytes: the limit is 2^63 - 1")));
    }
    let geometry = trans.geometry();
    let mut map = FileMap::new();
    // Ranges that meet in a block share it; joined runs of blocks are allocated as one.
    let mut run = 0..0;
    for range in data {
        let blocks = range.start >> geometry.block_log..geometry.blocks_for(range.end.min(size));
        if blocks.start <= run.end && !run.is_empty() {
            run.end = run.end.max(blocks.end);
            continue;
        }
        map_run(trans, inode, &run, &mut map, placement)?;
        run = blocks;
    }
    map_run(trans, inode, &run, &mut map, placement)?;
    inode.core.size = size;
    inode.touch();
    Ok(map)
}

fn map_run(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    run: &Range<u64>,
    map: &mut FileMap,
    placement: &mut DataPlacement,
) -> Result<(), Error> {
    if run.is_empty() {
        return Ok(());
    }
    let (start, len) = (FileBlock(run.start), run.end - run.start);
    let first = placement.target(trans.geometry(), inode.number);
    let extents = bmap::allocate(trans, inode, ForkKind::Data, start, len, Some(first))?;
    extents.iter().for_each(|extent| placement.placed(trans.geometry(), extent));
    map.extend(extents);
    Ok(())
}

/// Sends the data of files to the device. One per thread: it owns a plug.
pub struct DataWriter {
    geometry: Arc<Geometry>,
    /// What the device wants memory to be a multiple of, in bytes; 1 = nothing.
    alignment: usize,
    plug: Plug,
    writes: Batch,
}

impl DataWriter {
    /// A writer for the volume of this geometry on `device`.
    pub fn new(geometry: &Geometry, device: &Arc<dyn BlockDevice>) -> Self {
        Self {
            geometry: Arc::new(geometry.clone()),
            alignment: device.limits().memory_alignment,
            plug: Plug::with_threshold(device, STAGED),
            writes: Batch::new(),
        }
    }

    /// Starts a file with this map.
    #[must_use]
    pub fn file(&self, map: FileMap) -> FileWriter<'_> {
        FileWriter { writer: self, map, extent: 0, next: 0, pending: None }
    }

    /// Waits until all data is on the device.
    ///
    /// # Errors
    /// A write failed.
    pub fn finish(&self) -> Result<(), Error> {
        self.plug.flush();
        Ok(self.writes.wait()?)
    }

    /// Looks for a failed write without waiting.
    ///
    /// # Errors
    /// A write failed.
    pub fn check(&self) -> Result<(), Error> {
        Ok(self.writes.check()?)
    }
}

/// Takes the data of one file in ascending order.
pub struct FileWriter<'w> {
    writer: &'w DataWriter,
    map: FileMap,
    /// Extent that the next byte falls in, or one before it.
    extent: usize,
    /// Offset behind the last byte taken.
    next: u64,
    pending: Option<Pending>,
}

/// Bytes of consecutive blocks, collected for one write.
struct Pending {
    start: FsBlock,
    segments: SegmentList,
}

impl FileWriter<'_> {
    /// Takes the bytes at `offset`, which is not below the end of the ones before. `memory` holds
    /// them in `range`.
    ///
    /// # Errors
    /// The bytes fall into a hole of the map: they were not announced.
    pub fn put(
        &mut self,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
    ) -> Result<(), Error> {
        let (mut offset, mut range) = (offset, range);
        self.skip_to(offset);
        while !range.is_empty() {
            let extent = self.extent_at(offset)?;
            let end = extent.end().0 << self.writer.geometry.block_log;
            let len = range.len().min(usize::try_from(end - offset).unwrap_or(usize::MAX));
            self.begin(&extent, offset);
            let piece = range.start..range.start + len;
            offset += len as u64;
            range.start += len;
            self.next = offset;
            let aligned = self.next.is_multiple_of(self.block_size());
            if let Some(pending) = &mut self.pending {
                pending.segments.push(Segment::shared(memory, piece));
                if aligned && (pending.segments.bytes() >= SEND_BYTES || self.next == end) {
                    self.send();
                }
            }
        }
        Ok(())
    }

    /// Sends what is left.
    pub fn finish(mut self) {
        self.send();
    }

    fn block_size(&self) -> u64 {
        self.writer.geometry.block_size() as u64
    }

    /// Closes the gap to `offset`: zeros if it lies in the block at hand, else a new write begins.
    fn skip_to(&mut self, offset: u64) {
        let block_size = self.block_size();
        let Some(pending) = &mut self.pending else {
            return;
        };
        if offset / block_size * block_size > self.next {
            self.send();
        } else if offset > self.next {
            // Less than a block.
            pending.segments.push_zeroes((offset - self.next) as usize);
            self.next = offset;
        }
    }

    /// The extent that holds `offset`.
    fn extent_at(&mut self, offset: u64) -> Result<Extent, Error> {
        let block = FileBlock(offset >> self.writer.geometry.block_log);
        while self.map.get(self.extent).is_some_and(|extent| extent.end() <= block) {
            self.extent += 1;
        }
        match self.map.get(self.extent) {
            Some(extent) if extent.offset <= block => Ok(*extent),
            _ => Err(Error::Invalid(format!(
                "data at byte {offset} of a file, in a hole of its map"
            ))),
        }
    }

    /// Makes sure that a write is being collected that `offset` continues.
    fn begin(&mut self, extent: &Extent, offset: u64) {
        if self.pending.is_some() {
            return;
        }
        let block = offset >> self.writer.geometry.block_log;
        let start = FsBlock(extent.start.0 + (block - extent.offset.0));
        let mut segments = SegmentList::new();
        // Less than a block: data that starts inside one follows zeros.
        segments.push_zeroes((offset % self.block_size()) as usize);
        self.next = offset;
        self.pending = Some(Pending { start, segments });
    }

    /// Sends the collected write, filled up to whole blocks.
    fn send(&mut self) {
        let Some(Pending { start, mut segments }) = self.pending.take() else {
            return;
        };
        segments.pad_to(self.writer.geometry.block_size());
        let segments = segments.aligned_to(self.writer.alignment);
        let sector = self.writer.geometry.sector(start);
        self.writer.plug.submit(Bio::write(sector, segments).in_batch(&self.writer.writes));
    }
}
