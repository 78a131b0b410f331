//! The dirty data of one file, in whole blocks.

use super::budget::Budget;
use crate::space::Reservation;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{Segment, SegmentList};

/// A piece that grows by small writes is continued by a new one at this size.
const GROWING_MAX: usize = 1 << 20;

/// Data that is newer in memory than on the device.
///
/// Pieces are whole blocks; what the last block of one lacks is zeros, and lies behind the end of
/// the file. So nothing of the device is needed to write one.
#[derive(Debug)]
pub(crate) struct DirtyData {
    block_log: u8,
    /// Where the permits for its bytes go back to.
    budget: Arc<Budget>,
    /// By first block; they do not overlap.
    pieces: BTreeMap<u64, Piece>,
    /// Blocks of all pieces.
    blocks: u64,
    /// Size that the inode has in its cluster: it grows when the data is there.
    pub(crate) stored_size: u64,
    /// Blocks of the volume reserved for dirty data; given back with it.
    pub(crate) reserved: Reservation,
    /// The times of the inode have not been committed since.
    pub(crate) unstamped: bool,
}

/// Bytes of consecutive blocks.
#[derive(Clone, Debug)]
struct Piece {
    memory: Arc<Vec<u8>>,
    range: Range<usize>,
    /// Number of the write-back that has sent it to the device, 0 before.
    sent: u64,
    /// Size of the file before the write of the first block, if that began behind the end.
    jumped_from: Option<u64>,
}

/// Consecutive dirty blocks, as they are written back.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    block_log: u8,
    /// Block numbers.
    pub(crate) blocks: Range<u64>,
    parts: SmallVec<[(u64, Piece); 1]>,
}

impl Piece {
    fn blocks(&self, block_log: u8) -> u64 {
        (self.range.len() as u64).div_ceil(1 << block_log)
    }

    /// The part in the blocks from `from` up to `to`, counted in the piece.
    fn part(&self, from: u64, to: u64, block_log: u8) -> Self {
        let at =
            |block: u64| (self.range.start + ((block as usize) << block_log)).min(self.range.end);
        let jumped_from = self.jumped_from.filter(|_| from == 0);
        Self { memory: Arc::clone(&self.memory), range: at(from)..at(to), jumped_from, ..*self }
    }
}

impl DirtyData {
    pub(crate) fn new(block_log: u8, budget: &Arc<Budget>, stored_size: u64) -> Self {
        Self {
            block_log,
            budget: Arc::clone(budget),
            pieces: BTreeMap::new(),
            blocks: 0,
            stored_size,
            reserved: Reservation::default(),
            unstamped: false,
        }
    }

    /// Bytes that count against the budget.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks << self.block_log
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Sets the content of the blocks from `block` on. A caller that makes more bytes dirty has a
    /// permit for them.
    pub(crate) fn put(&mut self, block: u64, memory: &Arc<Vec<u8>>, range: Range<usize>) {
        let jumped_from = self.pieces.get(&block).and_then(|piece| piece.jumped_from);
        let piece = Piece { memory: Arc::clone(memory), range, sent: 0, jumped_from };
        let len = piece.blocks(self.block_log);
        self.cut(block..block + len);
        self.blocks += len;
        self.pieces.insert(block, piece);
    }

    /// Records that the write which has put `block` began behind the end of the file, at `size`.
    pub(crate) fn set_jump(&mut self, block: u64, size: u64) {
        if let Some(piece) = self.pieces.get_mut(&block) {
            piece.jumped_from = Some(size);
        }
    }

    /// Appends to the piece that ends at the byte `offset`, if it can grow.
    pub(crate) fn append(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let block_log = self.block_log;
        let Some((first, piece)) = self.pieces.range_mut(..=offset >> block_log).next_back() else {
            return false;
        };
        let before = piece.blocks(block_log);
        let ends_here = (*first << block_log) + piece.range.len() as u64 == offset;
        let behind = first + before;
        if !ends_here || piece.sent != 0 || piece.range.len() + bytes.len() > GROWING_MAX {
            return false;
        }
        let Some(memory) = Arc::get_mut(&mut piece.memory) else { return false };
        if memory.len() != piece.range.end {
            return false;
        }
        memory.extend_from_slice(bytes);
        piece.range.end += bytes.len();
        let more = piece.blocks(block_log) - before;
        if more > 0 {
            // The blocks that it grew over belong to it alone.
            let (first, piece) = (*first, piece.clone());
            self.pieces.remove(&first);
            self.cut(behind..behind + more);
            self.pieces.insert(first, piece);
            self.blocks += more;
        }
        true
    }

    /// Removes the content of these blocks.
    fn cut(&mut self, blocks: Range<u64>) {
        let log = self.block_log;
        let overlapping: SmallVec<[u64; 4]> = self
            .pieces
            .range(..blocks.end)
            .rev()
            .take_while(|(first, piece)| **first + piece.blocks(log) > blocks.start)
            .map(|(first, _)| *first)
            .collect();
        for first in overlapping {
            let Some(piece) = self.pieces.remove(&first) else { continue };
            let len = piece.blocks(log);
            self.blocks -= len;
            if first < blocks.start {
                self.blocks += blocks.start - first;
                self.pieces.insert(first, piece.part(0, blocks.start - first, log));
            }
            if first + len > blocks.end {
                self.blocks += first + len - blocks.end;
                self.pieces.insert(blocks.end, piece.part(blocks.end - first, len, log));
            }
        }
    }

    /// The pieces that meet these blocks, with their first blocks.
    fn over(&self, blocks: Range<u64>) -> impl Iterator<Item = (u64, &Piece)> {
        let log = self.block_log;
        let before = self.pieces.range(..blocks.start).next_back();
        let before = before.filter(|(first, piece)| **first + piece.blocks(log) > blocks.start);
        before.into_iter().chain(self.pieces.range(blocks)).map(|(first, piece)| (*first, piece))
    }

    /// The dirty blocks among these, as ranges.
    pub(crate) fn ranges(&self, blocks: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        self.over(blocks).map(|(first, piece)| first..first + piece.blocks(self.block_log))
    }

    /// Copies the dirty ones of the bytes from `offset` on over `bytes`; tells `copied` of each
    /// range of bytes of the file that it is.
    pub(crate) fn overlay(
        &self,
        offset: u64,
        bytes: &mut [u8],
        mut copied: impl FnMut(Range<u64>),
    ) {
        let end = offset + bytes.len() as u64;
        let blocks = offset >> self.block_log..end.div_ceil(1 << self.block_log);
        for (first, piece) in self.over(blocks) {
            let start = first << self.block_log;
            let behind = start + (piece.blocks(self.block_log) << self.block_log);
            let (from, to) = (offset.max(start), end.min(behind));
            let target = &mut bytes[(from - offset) as usize..(to - offset) as usize];
            let source = piece.range.start + (from - start) as usize;
            let source = &piece.memory[source.min(piece.range.end)..piece.range.end];
            let known = source.len().min(target.len());
            target[..known].copy_from_slice(&source[..known]);
            target[known..].fill(0);
            copied(from..to);
        }
    }

    /// Runs of blocks that were not sent yet.
    pub(crate) fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (first, piece) in self.pieces.iter().filter(|(_, piece)| piece.sent == 0) {
            let end = first + piece.blocks(self.block_log);
            let part = (*first, piece.clone());
            match runs.last_mut().filter(|run| run.blocks.end == *first) {
                Some(run) => {
                    run.blocks.end = end;
                    run.parts.push(part);
                }
                None => runs.push(Run {
                    block_log: self.block_log,
                    blocks: *first..end,
                    parts: SmallVec::from_buf([part]),
                }),
            }
        }
        runs
    }

    /// Records that a run was sent by the write-back `number`.
    pub(crate) fn set_sent(&mut self, run: &Run, number: u64) {
        for (first, _) in &run.parts {
            if let Some(piece) = self.pieces.get_mut(first) {
                piece.sent = number;
            }
        }
    }

    /// Drops data that the write-back `number` has sent: it can be read from the device now.
    pub(crate) fn drop_sent(&mut self, number: u64) {
        let before = self.bytes();
        let (log, blocks) = (self.block_log, &mut self.blocks);
        self.pieces.retain(|_, piece| {
            let keep = piece.sent != number;
            if !keep {
                *blocks -= piece.blocks(log);
            }
            keep
        });
        self.budget.give_back(before - self.bytes());
    }
}

impl Drop for DirtyData {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes());
    }
}

impl Run {
    /// Size that the file had when its writes reached `block`; 0 if that is not known from the run.
    pub(crate) fn size_before(&self, block: u64) -> u64 {
        let part = self.parts.partition_point(|(first, _)| *first < block);
        let part = self.parts.get(part).filter(|(first, _)| *first == block);
        match part.and_then(|(_, piece)| piece.jumped_from) {
            Some(size) => size,
            None if self.blocks.start < block => block << self.block_log,
            None => 0,
        }
    }

    /// Appends the bytes of the file in `bytes`, which lie in the run.
    pub(crate) fn append(&self, segments: &mut SegmentList, bytes: &Range<u64>) {
        for (first, piece) in &self.parts {
            let start = first << self.block_log;
            let end = start + (piece.blocks(self.block_log) << self.block_log);
            let (from, to) = (bytes.start.max(start), bytes.end.min(end));
            if from >= to {
                continue;
            }
            let at = |byte: u64| (piece.range.start + (byte - start) as usize).min(piece.range.end);
            let known = at(from)..at(to);
            let zeros = (to - from) as usize - known.len();
            if !known.is_empty() {
                segments.push(Segment::shared(&piece.memory, known));
            }
            segments.push_zeroes(zeros);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(dirty: &DirtyData, blocks: usize) -> Vec<u8> {
        let mut bytes = vec![b'.'; blocks * 4];
        dirty.overlay(0, &mut bytes, drop);
        bytes
    }

    /// Blocks of four bytes.
    fn dirty() -> DirtyData {
        let budget = Arc::new(Budget::new(1000));
        budget.try_take(1000).unwrap();
        DirtyData::new(2, &budget, 0)
    }

    fn put(dirty: &mut DirtyData, block: u64, text: &str) {
        dirty.put(block, &Arc::new(text.as_bytes().to_vec()), 0..text.len());
    }

    #[test]
    fn later_pieces_cover_earlier_ones() {
        let mut dirty = dirty();
        put(&mut dirty, 1, "aaaabbbbcccc");
        put(&mut dirty, 2, "XXXX");
        assert_eq!(contents(&dirty, 5), b"....aaaaXXXXcccc....");
        assert_eq!((dirty.bytes(), dirty.pieces.len()), (12, 3));
        put(&mut dirty, 0, "yyyyzzzzyyyy");
        assert_eq!(contents(&dirty, 4), b"yyyyzzzzyyyycccc");
        assert_eq!(dirty.bytes(), 16);
        assert!(dirty.ranges(3..9).eq(std::iter::once(3..4)));
    }

    #[test]
    fn runs_are_joined_and_padded_and_end_when_sent() {
        let mut dirty = dirty();
        put(&mut dirty, 0, "aaaa");
        put(&mut dirty, 1, "bb");
        put(&mut dirty, 9, "c");
        let runs = dirty.runs();
        assert_eq!(runs.iter().map(|run| run.blocks.clone()).collect::<Vec<_>>(), [0..2, 9..10]);
        let mut segments = SegmentList::new();
        runs[0].append(&mut segments, &(0..8));
        assert_eq!(segments.bytes(), 8);
        dirty.set_sent(&runs[0], 7);
        assert_eq!(dirty.runs().len(), 1);
        // Written again meanwhile.
        put(&mut dirty, 1, "BB");
        dirty.drop_sent(7);
        assert_eq!(contents(&dirty, 2), b"....BB\0\0");
        assert_eq!((dirty.bytes(), dirty.budget.taken()), (8, 996));
    }

    #[test]
    fn a_piece_grows_by_small_writes() {
        let mut dirty = dirty();
        put(&mut dirty, 2, "ab");
        put(&mut dirty, 3, "later");
        assert!(dirty.append(10, b"cdefg"));
        assert_eq!(contents(&dirty, 5), b"........abcdefg\0r\0\0\0");
        assert_eq!(dirty.bytes(), 12);
        assert!(!dirty.append(10, b"x") && !dirty.append(0, b"x"));
        dirty.set_sent(&dirty.runs()[0].clone(), 1);
        assert!(!dirty.append(15, b"x"));
    }

    #[test]
    fn a_run_knows_how_large_the_file_was() {
        let mut dirty = dirty();
        put(&mut dirty, 1, "aaaabbbb");
        put(&mut dirty, 3, "c");
        dirty.set_jump(3, 11);
        put(&mut dirty, 3, "cccc");
        put(&mut dirty, 4, "dddd");
        let runs = dirty.runs();
        assert_eq!([1, 2, 3, 4].map(|block| runs[0].size_before(block)), [0, 8, 11, 16]);
    }
}
