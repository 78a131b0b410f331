//! A file as it is when its log has been replayed.

use crate::disk::{Stored, end_of};
use std::collections::BTreeMap;
use std::io;

/// Bytes that a log brings at once.
pub(super) const UNIT: usize = 4096;

/// The file, and over it what the log has: ranges by their starts, none over another.
pub(super) struct View {
    stored: Stored,
    length: u64,
    patches: BTreeMap<u64, Patch>,
}

struct Patch {
    end: u64,
    /// Zeroes without.
    bytes: Option<Box<[u8; UNIT]>>,
}

impl View {
    pub(super) fn new(stored: Stored) -> Self {
        let length = stored.length();
        Self { stored, length, patches: BTreeMap::new() }
    }

    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Makes it so long, with zeroes.
    pub(super) fn extend(&mut self, length: u64) {
        self.length = self.length.max(length);
    }

    /// Puts bytes over the unit at a place.
    pub(super) fn put(&mut self, at: u64, bytes: Box<[u8; UNIT]>) {
        self.free(at, at + UNIT as u64);
        self.patches.insert(at, Patch { end: at + UNIT as u64, bytes: Some(bytes) });
    }

    /// Puts zeroes over whole units.
    pub(super) fn zero(&mut self, at: u64, end: u64) {
        self.free(at, end);
        self.patches.insert(at, Patch { end, bytes: None });
    }

    /// Makes room for a patch. Only zeroes are ever cut: all starts and ends are those of units.
    fn free(&mut self, at: u64, end: u64) {
        let before = self.patches.range_mut(..at).next_back();
        if let Some((_, patch)) = before.filter(|(_, patch)| patch.end > at) {
            let rest = std::mem::replace(&mut patch.end, at);
            if rest > end {
                self.patches.insert(end, Patch { end: rest, bytes: None });
            }
        }
        while let Some((start, _)) = self.patches.range(at..end).next() {
            let start = *start;
            if let Some(patch) = self.patches.remove(&start).filter(|patch| patch.end > end) {
                self.patches.insert(end, patch);
            }
        }
    }

    pub(super) fn fill(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        let length = memory.len() as u64;
        let end = end_of(at, length, self.length)?;
        let there = self.stored.length().saturating_sub(at).min(length) as usize;
        let (front, behind) = memory.split_at_mut(there);
        if !front.is_empty() {
            self.stored.fill(at, front)?;
        }
        behind.fill(0);
        let first = self.patches.range(..=at).next_back().map_or(at, |(start, _)| *start);
        for (start, patch) in self.patches.range(first..end) {
            let (from, to) = (at.max(*start), end.min(patch.end));
            if from >= to {
                continue;
            }
            let piece = &mut memory[(from - at) as usize..(to - at) as usize];
            match &patch.bytes {
                Some(bytes) => {
                    let skip = (from - start) as usize;
                    piece.copy_from_slice(&bytes[skip..skip + piece.len()]);
                }
                None => piece.fill(0),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_patch_counts() {
        let mut random = fastrand::Rng::with_seed(3);
        let file = tempfile::tempfile().unwrap();
        let units = 64;
        let mut expected = vec![7_u8; 48 * UNIT];
        std::os::unix::fs::FileExt::write_all_at(&file, &expected, 0).unwrap();
        let mut view = View::new(Stored::new(file).unwrap());
        view.extend((units * UNIT) as u64);
        expected.resize(units * UNIT, 0);
        for round in 0..500_usize {
            let first = random.usize(..units);
            let length = if random.bool() { 1 } else { random.usize(1..=units - first) };
            let range = first * UNIT..(first + length) * UNIT;
            let byte = if length == 1 { round as u8 } else { 0 };
            expected[range.clone()].fill(byte);
            match length {
                1 => view.put(range.start as u64, Box::new([byte; UNIT])),
                _ => view.zero(range.start as u64, range.end as u64),
            }
            let at = random.usize(..units * UNIT);
            let mut memory = vec![1; random.usize(..units * UNIT - at)];
            view.fill(at as u64, &mut memory).unwrap();
            assert!(memory == expected[at..at + memory.len()], "round {round}");
        }
    }
}
