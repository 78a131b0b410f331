//! Contents of new files.
//!
//! Space for all data of a file is allocated before the first byte arrives, as delayed allocation
//! would; then the bytes go to the device as they come, in the memory they came in. Blocks are
//! written whole: what a block holds besides data is zeros.

use super::DataPlacement;
use crate::alloc;
use crate::bmap;
use crate::error::{Error, ErrorKind};
use crate::file::MAX_FILE_SIZE;
use crate::format::{Extent, FileType};
use crate::geometry::Geometry;
use crate::inode::{ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{
    Batch, Bio, BlockDevice, FileRange, Plug, PlugThreshold, Segment, SegmentList, Waiter,
};

/// A write is sent when it has this many bytes, a multiple of every block size; the plug merges small
/// ones up to the limits of the device. Nothing is held back until the pieces of the source happen
/// to end with a block: those of an archive rarely do.
const SEND_BYTES: u64 = 1 << 20;

/// What a writer stages. Files go to several groups in turn: with less, a request in each is cut
/// off more often (with half of it the requests of a source tree are 5 % smaller).
const STAGED: PlugThreshold = PlugThreshold { bios: 4096, bytes: 8 << 20 };

/// Extents of the data of one file, ascending.
pub type FileMap = SmallVec<[Extent; 1]>;

/// Gives an empty regular file its size and the space for its data; ranges that are not in `data`
/// (byte ranges, ascending, disjoint) are holes. `placement` gives the place of data and follows
/// it.
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
    // An extent size hint makes more of the length than was asked for.
    let has_room = inode.core.extent_size_hint() == 0;
    let room = if has_room { alloc::from_room(trans, first, len)? } else { None };
    if let Some(block) = room {
        // Rooms are short.
        let extent = Extent { offset: start, start: block, len: len as u32, unwritten: false };
        bmap::map(trans, inode, ForkKind::Data, extent)?;
        placement.placed(trans.geometry(), &extent);
        map.push(extent);
        return Ok(());
    }
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
    /// Offset in the file at which it is sent.
    end: u64,
}

impl Pending {
    /// A write that begins with the block of `offset`, which lies in `extent`.
    fn begin(geometry: &Geometry, extent: &Extent, offset: u64) -> Self {
        let block_size = geometry.block_size() as u64;
        let block = offset >> geometry.block_log;
        let start = FsBlock(extent.start.0 + (block - extent.offset.0));
        let mut segments = SegmentList::new();
        // Less than a block: data that starts inside one follows zeros.
        segments.push_zeroes((offset % block_size) as usize);
        let end = extent.end().0 << geometry.block_log;
        Self { start, segments, end: end.min(block * block_size + SEND_BYTES) }
    }
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
            let pending = self
                .pending
                .get_or_insert_with(|| Pending::begin(&self.writer.geometry, &extent, offset));
            // Less than a write.
            let len = range.len().min((pending.end - offset) as usize);
            pending.segments.push(Segment::shared(memory, range.start..range.start + len));
            offset += len as u64;
            range.start += len;
            self.next = offset;
            if offset == pending.end {
                self.send();
            }
        }
        Ok(())
    }

    /// Has `length` bytes at `offset`, both multiples of the block size, share the blocks of a file.
    /// `offset` is not below the end of the bytes before. The answer comes later.
    ///
    /// # Errors
    /// The bytes fall into a hole of the map: they were not announced.
    pub fn clone_range(
        &mut self,
        offset: u64,
        length: u64,
        source: &FileRange,
    ) -> Result<RangeClone, Error> {
        let block_log = self.writer.geometry.block_log;
        debug_assert!((offset | length).trailing_zeros() >= block_log.into(), "whole blocks");
        self.send();
        let mut parts = SmallVec::new();
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let extent = self.extent_at(at)?;
            let piece = (extent.end().0 << block_log).min(end) - at;
            let start = FsBlock(extent.start.0 + ((at >> block_log) - extent.offset.0));
            let range =
                FileRange { file: Arc::clone(&source.file), offset: source.offset + (at - offset) };
            let sector = self.writer.geometry.sector(start);
            let (bio, part) = Bio::clone_range(sector, piece, range).waited();
            self.writer.plug.submit(bio);
            parts.push(part);
            at += piece;
        }
        self.next = end;
        Ok(RangeClone { parts })
    }

    /// Sends the rest, and gives the map back.
    pub fn finish(mut self) -> FileMap {
        self.send();
        std::mem::take(&mut self.map)
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

    /// Sends the collected write, filled up to whole blocks.
    fn send(&mut self) {
        let Some(Pending { start, mut segments, .. }) = self.pending.take() else {
            return;
        };
        segments.pad_to(self.writer.geometry.block_size());
        let segments = segments.aligned_to(self.writer.alignment);
        let sector = self.writer.geometry.sector(start);
        self.writer.plug.submit(Bio::write(sector, segments).in_batch(&self.writer.writes));
    }
}

/// A range on its way to sharing the blocks of a file, in a part for each extent.
#[must_use = "what is ignored may have been refused"]
pub struct RangeClone {
    parts: SmallVec<[Waiter; 1]>,
}

impl RangeClone {
    /// Whether the answer is there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.parts.iter().all(Waiter::is_complete)
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// The device cannot do it (`BlockError::cannot_clone`): the bytes have to be
    /// [put](FileWriter::put), all of them. Or it failed.
    pub fn wait(self) -> Result<(), Error> {
        // All are waited for: what comes after a refusal is to find none under way.
        let answers = self.parts.into_iter().map(|part| part.wait().result);
        Ok(answers.fold(Ok(()), Result::and)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mkfs::{self, MkfsOptions};
    use std::sync::Weak;
    use undercroft_block::{MemoryDevice, read_exact_at};
    use uuid::Uuid;

    #[test]
    fn data_leaves_as_it_comes_wherever_its_pieces_end() {
        const PIECE: usize = 1 << 20;
        const PIECES: usize = 64;
        let options = MkfsOptions::new(300 << 20, Uuid::nil());
        let geometry = mkfs::plan(&options).unwrap().geometry();
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(300 << 20));
        let writer = DataWriter::new(&geometry, &device);
        // A piece more than is written: no piece ends where the extent does.
        let len = ((PIECES + 1) * PIECE / geometry.block_size()) as u32;
        let (offset, start) = (FileBlock(0), FsBlock(16));
        let map = FileMap::from_iter([Extent { offset, start, len, unwritten: false }]);
        let mut file = writer.file(map);
        let mut pieces: Vec<Weak<Vec<u8>>> = Vec::new();
        // As behind a header of tar.
        let mut at = 512;
        file.put(0, &Arc::new(vec![0xff; 512]), 0..512).unwrap();
        for number in 0..PIECES {
            let memory = Arc::new(vec![number as u8 + 1; PIECE]);
            file.put(at, &memory, 0..PIECE).unwrap();
            at += PIECE as u64;
            pieces.push(Arc::downgrade(&memory));
            drop(memory);
            let held = pieces.iter().filter(|piece| piece.strong_count() > 0).count();
            assert!(held < 32, "{held} pieces are held after piece {number}");
        }
        file.finish();
        writer.finish().unwrap();
        let mut bytes = vec![0; at as usize];
        read_exact_at(device.as_ref(), geometry.sector(start), &mut bytes).unwrap();
        let expected = |at: usize| if at < 512 { 0xff } else { ((at - 512) / PIECE) as u8 + 1 };
        assert!((0..bytes.len()).all(|at| bytes[at] == expected(at)));
    }
}
