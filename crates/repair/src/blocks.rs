//! Blocks of a volume, a bit for each.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use undercroft_xfs::format::Geometry;
use undercroft_xfs::units::FsBlock;

/// Blocks that lie between two ranges and are taken together with them.
const GAP: u64 = 64;

/// A set of blocks; threads may add to it.
pub(crate) struct Blocks {
    words: Vec<AtomicU64>,
    geometry: Geometry,
}

impl Blocks {
    /// No blocks.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let words = (0..geometry.blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { words, geometry: geometry.clone() }
    }

    /// The place of a block on the device.
    fn place(&self, block: FsBlock) -> u64 {
        self.geometry.sector(block).0 / u64::from(self.geometry.sectors_per_block())
    }

    /// The bits of blocks, by words; what is behind the end of the volume is left out.
    fn words(&self, start: FsBlock, len: u32) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let first = self.place(start);
        let end = (first + u64::from(len)).min(self.words.len() as u64 * 64);
        let mut at = first;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let count = (64 - at % 64).min(end - at);
            let mask = (u64::MAX >> (64 - count)) << (at % 64);
            let word = &self.words[(at / 64) as usize];
            at += count;
            Some((word, mask))
        })
    }

    pub(crate) fn add(&self, start: FsBlock, len: u32) {
        for (word, mask) in self.words(start, len) {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    }

    /// Whether any of some blocks is in the set.
    pub(crate) fn has(&self, start: FsBlock, len: u32) -> bool {
        self.words(start, len).any(|(word, mask)| word.load(Ordering::Relaxed) & mask != 0)
    }

    /// The sectors of all other blocks, up to `end`; small gaps between them are taken with them.
    pub(crate) fn others(&self, end: u64) -> Vec<Range<u64>> {
        let per_block = u64::from(self.geometry.sectors_per_block());
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut push = |block: u64, len: u64| {
            let (start, stop) = (block * per_block, ((block + len) * per_block).min(end));
            match ranges.last_mut().filter(|last| start - last.end <= GAP * per_block) {
                Some(last) => last.end = stop.max(last.end),
                None if start < stop => ranges.push(start..stop),
                None => {}
            }
        };
        for (index, word) in (0..).zip(&self.words) {
            let mut left = !word.load(Ordering::Relaxed);
            while left != 0 {
                let first = u64::from(left.trailing_zeros());
                let len = u64::from((left >> first).trailing_ones());
                push(index * 64 + first, len);
                left &= u64::MAX.checked_shl((first + len) as u32).unwrap_or(0);
            }
        }
        let behind = self.geometry.blocks * per_block;
        if behind < end {
            ranges.push(behind.max(ranges.last().map_or(0, |last| last.end))..end);
        }
        ranges
    }
}
