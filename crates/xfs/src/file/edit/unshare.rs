//! Blocks of its own for a file that shared them.

use super::FileEdit;
use super::data::Source;
use super::write::BlockState;
use crate::error::Error;
use crate::file::read::read_extent;
use crate::format::Extent;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that are copied at a time.
const PIECE_BYTES: u64 = 1 << 20;

impl FileEdit<'_> {
    /// Copies the blocks of a range of bytes that other files share, in whole blocks.
    ///
    /// # Errors
    /// The range is empty; no space; a damaged structure; the device failed.
    pub(in crate::file) fn unshare(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.check_range(&range)?;
        self.start();
        // Bytes behind the end are not visible, and writing them would move the end.
        let size = self.size();
        let blocks = self.blocks_over(&(range.start..range.end.min(size).max(range.start)));
        let most = (PIECE_BYTES >> self.geometry().block_log).max(1) as u32;
        let mut at = blocks.start;
        while at < blocks.end {
            at = match self.place(at..blocks.end)? {
                BlockState::Hole(end) => end,
                BlockState::Unwritten(extent) | BlockState::Own(extent) => extent.end(),
                BlockState::Shared(extent) => {
                    let piece = Extent { len: extent.len.min(most), ..extent };
                    let bytes = self.byte(piece.offset)..self.byte(piece.end()).min(size);
                    let len = (bytes.end - bytes.start) as usize;
                    let memory = Arc::new(read_extent(self.volume, &piece, bytes.start, len)?);
                    let offset = bytes.start;
                    self.put(bytes, Source::Memory { memory: &memory, first: 0, offset })?;
                    piece.end()
                }
            };
        }
        self.finish(0)
    }
}
