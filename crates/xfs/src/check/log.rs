//! Whether the journal ends with an unmount record (journal reference, section 1).
//!
//! The journal is a ring of 512-byte blocks, each stamped with the number of its turn in the first
//! word. The head is where that number falls; the last record before it says whether the volume was
//! unmounted. Anything that is not plainly a clean end counts as dirty.

use super::checker::Checker;
use super::{LogState, Place};
use crate::bytes::be32;
use crate::format::LogRecordHeader;
use crate::format::log_record::{LOG_BLOCK, MAGIC, MAX_BUFFER};
use crate::units::Lsn;
use undercroft_block::Sector;

/// Flag of the operation that ends a clean log.
const UNMOUNT: u8 = 0x20;

/// Longest record in log blocks: a full buffer and its headers.
const MAX_RECORD: u64 = MAX_BUFFER as u64 / LOG_BLOCK as u64 + 8;

struct Log<'a> {
    checker: &'a Checker,
    start: Sector,
    blocks: u64,
}

/// Looks at the end of the journal: its state, and where the next record goes.
pub(super) fn examine(checker: &Checker) -> (LogState, Option<Lsn>) {
    let geometry = checker.geometry();
    if geometry.log_start.is_null() {
        return (LogState::External, None);
    }
    let log = Log {
        checker,
        start: geometry.sector(geometry.log_start),
        blocks: u64::from(geometry.log_blocks) * u64::from(geometry.sectors_per_block()),
    };
    let head = log.head();
    let clean = head.as_ref().map_err(Clone::clone).and_then(|(head, _)| log.is_clean(*head));
    let position = head.ok().map(|(block, cycle)| Lsn(u64::from(cycle) << 32 | block));
    match clean {
        Ok(true) => (LogState::Clean, position),
        Ok(false) => (LogState::Dirty, position),
        Err(what) => {
            checker.error("log", Place::Volume, what);
            (LogState::Dirty, position)
        }
    }
}

/// Nothing on the volume was written later than the journal's last record.
pub(super) fn check_positions(checker: &Checker) {
    let latest = checker.latest_lsn();
    if let Some(head) = checker.head.filter(|head| latest > *head) {
        let text = |lsn: Lsn| format!("cycle {}, block {}", lsn.0 >> 32, lsn.0 & 0xffff_ffff);
        let what = format!(
            "metadata carries the log position {}, but the log ends at {}; `xfs_repair` makes a \
             log that begins behind it",
            text(latest),
            text(head)
        );
        checker.error("log", Place::Volume, what);
    }
}

impl Log<'_> {
    fn read(&self, block: u64, count: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        // In two parts where the ring closes.
        let first = count.min(self.blocks - block);
        for (block, count) in [(block, first), (0, count - first)] {
            if count > 0 {
                let part = (Sector(self.start.0 + block), count as u32);
                bytes.extend_from_slice(&self.checker.read_bytes(&[part])?);
            }
        }
        Ok(bytes)
    }

    fn cycle(&self, block: u64) -> Result<u32, String> {
        let bytes = self.read(block, 1)?;
        Ok(if be32(&bytes, 0) == MAGIC { be32(&bytes, 4) } else { be32(&bytes, 0) })
    }

    /// First block of the turn before, which is the next to be written, and the turn it will be
    /// written in.
    fn head(&self) -> Result<(u64, u32), String> {
        let first = self.cycle(0)?;
        if self.cycle(self.blocks - 1)? == first {
            return Ok((0, first.saturating_add(1)));
        }
        let (mut low, mut high) = (0, self.blocks - 1);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if self.cycle(middle)? == first {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok((high, first))
    }

    /// Whether the record before `head` says that the volume was unmounted.
    fn is_clean(&self, head: u64) -> Result<bool, String> {
        let window = MAX_RECORD.min(self.blocks);
        let start = (head + self.blocks - window) % self.blocks;
        let bytes = self.read(start, window)?;
        let records = bytes.chunks_exact(LOG_BLOCK).enumerate().rev();
        let last = records
            .filter_map(|(index, block)| Some((index, LogRecordHeader::decode(block)?)))
            .next();
        let Some((index, header)) = last else {
            let what = "holds no record before its head; `xfs_repair -L` makes a new one";
            return Err(what.into());
        };
        let uuid = self.checker.geometry().uuid;
        if header.uuid != uuid {
            return Err(format!("belongs to volume {}, not to {uuid}", header.uuid));
        }
        let headers = u64::from(header.header_blocks().min(8));
        let len = headers + u64::from(header.data_bytes).div_ceil(LOG_BLOCK as u64);
        let data = (index + headers as usize) * LOG_BLOCK;
        let Some(flags) = bytes.get(data + 9) else {
            return Ok(false);
        };
        // A single operation: its flags are in the third word, which is not replaced.
        Ok(index as u64 + len == window && header.operations == 1 && flags & UNMOUNT != 0)
    }
}
