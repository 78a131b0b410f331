//! Where the journal ends: the block that is written next (docs/format/journal/ends.md#head).
//!
//! Every block carries the cycle in which it was written, so the end is where the cycles change.
//! Up to eight writes are under way at once and complete in any order; a crash therefore leaves
//! holes before the end. The end is the first of them.

use super::area::LogArea;
use super::record::Placed;
use crate::error::Error;
use crate::format::LogRecordHeader;
use crate::format::log_record::{LOG_BLOCK, next_cycle};

/// Log blocks of all records that can be under way at once: eight of 256 KiB.
pub(crate) const FLIGHT: u64 = 4096;

/// Log blocks that are searched at once for a header.
const STRIDE: u64 = 1024;

/// Blocks that are looked at together to find the end.
const PROBES: u64 = 64;

/// Up to [`PROBES`] blocks between two, which divide what is between them evenly.
fn probes(from: u64, to: u64) -> Vec<u64> {
    let step = (to - from).div_ceil(PROBES + 1).max(1);
    (1..=PROBES).map(|number| from + number * step).take_while(|block| *block < to).collect()
}

/// Where the journal ends.
pub(crate) struct Head {
    /// The block that is written next.
    pub(crate) block: u64,
    /// Why the cycles cannot be those of a journal that was written round after round.
    pub(crate) contradiction: Option<String>,
}

/// Compares the cycles of the first and the last block of a log whose end is settled: the round that
/// the first is of has not come to the last yet, unless it ended there.
fn contradiction(first: u32, last: u32) -> Option<String> {
    let begun = if last == 0 { 1 } else { next_cycle(last) };
    let what = || format!("its first block is of cycle {first}, its last of cycle {last}");
    (first != last && first != begun).then(what)
}

impl LogArea<'_> {
    /// The block behind the last one that was written, as far as cycles tell; the length of the log
    /// if that is its last block. `probes` have these `cycles`, and the `first` and the `last` block
    /// theirs.
    fn end_of_cycle(
        &self,
        (first, last): (u32, u32),
        mut probes: Vec<u64>,
        mut cycles: Vec<u32>,
    ) -> Result<u64, Error> {
        // The last block of the current round, and one of the round before: where probes find them.
        let (mut new, mut old) = (0, self.blocks - 1);
        let is_new = |cycle| if last == 0 { cycle != 0 } else { cycle == first };
        let flight = FLIGHT.min(self.blocks);
        if first == last {
            let hole = self.first_of_cycle(self.blocks - flight..self.blocks, last.wrapping_sub(1));
            return Ok(hole?.unwrap_or(self.blocks));
        }
        loop {
            let end = cycles.iter().position(|cycle| !is_new(*cycle)).unwrap_or(probes.len());
            old = probes.get(end).copied().unwrap_or(old);
            new = end.checked_sub(1).map_or(new, |before| probes[before]);
            if old - new <= STRIDE {
                break;
            }
            probes = self::probes(new, old);
            cycles = self.cycles(&probes)?;
        }
        // All that is looked at from here on, in one read.
        self.keep(new.saturating_sub(flight)..old + 1)?;
        let mut between = new + 1..old;
        let head = loop {
            match between.next() {
                None => break old,
                Some(block) if !is_new(self.cycle(block)?) => break block,
                Some(_) => {}
            }
        };
        if head >= flight || last == 0 {
            let hole = self.first_of_cycle(head.saturating_sub(flight)..head, last)?;
            return Ok(hole.unwrap_or(head));
        }
        // Some of the records under way are before the end of the log.
        let before = self.blocks - (flight - head);
        if let Some(hole) = self.first_of_cycle(before..self.blocks, last.wrapping_sub(1))? {
            return Ok(hole);
        }
        Ok(self.first_of_cycle(0..head, last)?.unwrap_or(head))
    }

    /// The nearest record header before `head`, backwards around the ring.
    pub(crate) fn header_before(&self, head: u64) -> Result<Option<Placed>, Error> {
        let mut searched = 0;
        while searched < self.blocks {
            // Not around the end: what lies before it is seldom looked for, and elsewhere.
            let behind = self.before(head, searched);
            let room = if behind == 0 { self.blocks } else { behind };
            let count = STRIDE.min(self.blocks - searched).min(room);
            let first = self.before(behind, count);
            let bytes = self.read(first, count)?;
            for (index, block) in bytes.chunks_exact(LOG_BLOCK).enumerate().rev() {
                if let Some(header) = LogRecordHeader::decode(block) {
                    return Ok(Some(Placed { block: self.after(first, index as u64), header }));
                }
            }
            searched += count;
        }
        Ok(None)
    }

    /// The nearest record header at or behind `block`, before `head`.
    pub(crate) fn header_from(&self, block: u64, head: u64) -> Result<Option<u64>, Error> {
        let mut left = self.distance(block, head);
        let mut at = block;
        while left > 0 {
            let count = STRIDE.min(left);
            let bytes = self.read(at, count)?;
            let mut blocks = bytes.chunks_exact(LOG_BLOCK);
            if let Some(index) = blocks.position(|bytes| LogRecordHeader::decode(bytes).is_some()) {
                return Ok(Some(self.after(at, index as u64)));
            }
            at = self.after(at, count);
            left -= count;
        }
        Ok(None)
    }

    /// Where the log ends; `None` if nothing was ever written. A record that is not there to its end
    /// does not count.
    pub(crate) fn find_head(&self) -> Result<Option<Head>, Error> {
        let (first, last) = (0, self.blocks - 1);
        // A journal that was hardly used, as that of a new volume, ends near its first block: it is not
        // looked at everywhere then, which a device that is far or counts its requests is asked for.
        let near = STRIDE.min(last);
        let ends = self.cycles(&[first, last, near])?;
        let is_short = ends[1] == 0 && ends[2] == 0;
        let (probes, cycles) = if is_short {
            (vec![near], vec![0])
        } else {
            let probes = probes(first, last);
            let cycles = self.cycles(&probes)?;
            (probes, cycles)
        };
        let (first, last) = (ends[0], ends[1]);
        if first == 0 {
            return Ok(None);
        }
        let head = self.end_of_cycle((first, last), probes, cycles)? % self.blocks;
        let torn = self
            .header_before(head)?
            .filter(|record| record.blocks() != self.distance(record.block, head));
        let block = torn.map_or(head, |record| record.block);
        Ok(Some(Head { block, contradiction: contradiction(first, last) }))
    }
}
