//! What is known of the units of a file whose pages are mapped.

use std::ops::Range;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// Bytes whose pages are mapped together. The kernel maps as many in one fault if the page cache has them.
pub(super) const UNIT: usize = 64 << 10;
/// Parts of a unit: its pages, on most machines.
const PARTS: usize = 16;
const PART: usize = UNIT / PARTS;

/// A bit for each part of each unit of a file.
pub(super) struct WrittenParts(Box<[AtomicU16]>);

/// A bit for each unit of a file.
pub(super) struct Units(Box<[AtomicU64]>);

impl WrittenParts {
    /// None of a file of `length` bytes.
    pub(super) fn of(length: usize) -> Self {
        Self((0..length.div_ceil(UNIT)).map(|_| AtomicU16::new(0)).collect())
    }

    /// Sets those that `bytes` has, which is not empty, and says whether all parts of their units were set
    /// before.
    pub(super) fn set(&self, bytes: Range<usize>) -> bool {
        let mut were_set = true;
        for unit in bytes.start / UNIT..bytes.end.div_ceil(UNIT) {
            let start = bytes.start.max(unit * UNIT) / PART % PARTS;
            let end = bytes.end.min((unit + 1) * UNIT).div_ceil(PART) - unit * PARTS;
            let parts = (u16::MAX >> (PARTS - (end - start))) << start;
            let Some(word) = self.0.get(unit) else { return false };
            let before = word.load(Ordering::Relaxed);
            if before != u16::MAX {
                were_set = false;
                word.fetch_or(parts, Ordering::Relaxed);
            }
        }
        were_set
    }

    pub(super) fn clear(&self, units: Range<usize>) {
        units.filter_map(|unit| self.0.get(unit)).for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

impl Units {
    /// None of a file of `length` bytes.
    pub(super) fn of(length: usize) -> Self {
        let words = length.div_ceil(UNIT).div_ceil(64);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn has(&self, unit: usize) -> bool {
        self.bit(unit).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Sets `units`; returns how many were not.
    pub(super) fn set(&self, units: Range<usize>) -> usize {
        let bits = units.filter_map(|unit| self.bit(unit));
        bits.filter(|(word, bit)| word.fetch_or(*bit, Ordering::Relaxed) & bit == 0).count()
    }

    /// Clears `units`; returns how many were set.
    pub(super) fn clear(&self, units: Range<usize>) -> usize {
        let bits = units.filter_map(|unit| self.bit(unit));
        bits.filter(|(word, bit)| word.fetch_and(!bit, Ordering::Relaxed) & bit != 0).count()
    }

    fn bit(&self, unit: usize) -> Option<(&AtomicU64, u64)> {
        self.0.get(unit / 64).map(|word| (word, 1 << (unit % 64)))
    }
}
