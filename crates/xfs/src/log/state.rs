//! Whether a journal holds something to replay (journal reference, sections 5.1 and 5.2).
//!
//! The head is found by the cycle numbers that every log block carries, the record before it says
//! whether the volume was unmounted. What looks odd counts as dirty: the answer "clean" is certain.

use crate::bytes::be32;
use crate::format::log_record::{LOG_BLOCK, LogRecordHeader, MAGIC};
use crate::units::Lsn;
use crate::volume::Volume;
use thiserror::Error;
use undercroft_block::{BlockDevice, BlockError, Sector, read_exact_at};
use uuid::Uuid;

/// Log blocks of the longest record: 256 KiB and its header blocks.
const RECORD_MAX: u64 = 520;
/// Flag of an unmount record, and its place in the first data block.
const UNMOUNT_FLAG: u8 = 0x20;
const UNMOUNT_FLAG_OFFSET: usize = 9;

/// State of a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogState {
    /// Ends with an unmount record: nothing is to be replayed.
    Clean,
    /// Holds changes that are not in place yet.
    Dirty,
    /// On a device of its own, which was not looked at.
    #[default]
    External,
}

/// Why nothing can be said about a journal.
#[derive(Clone, Debug, Error)]
pub enum LogError {
    /// The device failed.
    #[error("cannot read the journal")]
    Device(#[from] BlockError),
    /// There is no record where the last one should be.
    #[error("holds no record before its head; `xfs_repair -L` makes a new one")]
    NoRecord,
    /// The last record is of another volume.
    #[error("belongs to volume {found}, not to {expected}")]
    Foreign {
        /// Identifier in the record.
        found: Uuid,
        /// Identifier of the volume.
        expected: Uuid,
    },
}

/// The end of a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// Whether something is to be replayed.
    pub state: LogState,
    /// Where the next record goes; `None` for a journal elsewhere.
    pub head: Option<Lsn>,
}

/// Looks at the end of the journal: whether it holds something to replay.
///
/// # Errors
/// The device failed, or the journal is not one of this volume.
pub fn end(volume: &Volume) -> Result<LogEnd, LogError> {
    let geometry = volume.geometry();
    if geometry.log_start.is_null() {
        return Ok(LogEnd::default());
    }
    let log = Log {
        device: volume.cache().device().as_ref(),
        uuid: geometry.uuid,
        start: geometry.sector(geometry.log_start),
        blocks: u64::from(geometry.log_blocks) << (geometry.block_log - 9),
    };
    let (block, cycle) = log.head()?;
    let state = if log.is_clean(block)? { LogState::Clean } else { LogState::Dirty };
    Ok(LogEnd { state, head: Some(Lsn(u64::from(cycle) << 32 | block)) })
}

struct Log<'d> {
    device: &'d dyn BlockDevice,
    uuid: Uuid,
    start: Sector,
    blocks: u64,
}

impl Log<'_> {
    /// Whether the last record is that of an unmount and ends at the head.
    fn is_clean(&self, head: u64) -> Result<bool, LogError> {
        if self.blocks == 0 || self.cycle(0)? == 0 {
            return Ok(true);
        }
        let wanted = RECORD_MAX.min(self.blocks);
        let before = self.before(head, wanted)?;
        let header = before.chunks_exact(LOG_BLOCK).enumerate().rev();
        let header = header.filter_map(|(at, block)| Some((at, LogRecordHeader::decode(block)?)));
        let Some((at, header)) = header.into_iter().next() else {
            return Err(LogError::NoRecord);
        };
        if header.uuid != self.uuid {
            return Err(LogError::Foreign { found: header.uuid, expected: self.uuid });
        }
        let headers = header.header_blocks() as usize;
        let data = at.saturating_add(headers);
        let end = data.saturating_add((header.data_bytes as usize).div_ceil(LOG_BLOCK));
        let flags = before.get(data.saturating_mul(LOG_BLOCK).saturating_add(UNMOUNT_FLAG_OFFSET));
        Ok(end as u64 == wanted
            && header.operations == 1
            && flags.is_some_and(|flags| flags & UNMOUNT_FLAG != 0))
    }

    /// Cycle in which a block was written last.
    fn cycle(&self, block: u64) -> Result<u32, LogError> {
        let mut bytes = [0; LOG_BLOCK];
        read_exact_at(self.device, Sector(self.start.0 + block), &mut bytes)?;
        let first = be32(&bytes, 0);
        Ok(if first == MAGIC { be32(&bytes, 4) } else { first })
    }

    /// The block that is written next, the first one whose cycle is not that of block 0, and the
    /// cycle it will be written in. Holes that a crash left are not looked for: the log is dirty
    /// then, wherever the head is.
    fn head(&self) -> Result<(u64, u32), LogError> {
        if self.blocks == 0 {
            return Ok((0, 1));
        }
        let newest = self.cycle(0)?;
        if self.cycle(self.blocks - 1)? == newest {
            return Ok((0, newest.saturating_add(1)));
        }
        let (mut same, mut other) = (0, self.blocks - 1);
        while other - same > 1 {
            let middle = same + (other - same) / 2;
            if self.cycle(middle)? == newest { same = middle } else { other = middle }
        }
        Ok((other, newest))
    }

    /// The `count` blocks before `head`, around the end of the log if need be.
    fn before(&self, head: u64, count: u64) -> Result<Vec<u8>, LogError> {
        let mut bytes = vec![0; count as usize * LOG_BLOCK];
        let wrapped = count.saturating_sub(head);
        let (tail, front) = bytes.split_at_mut(wrapped as usize * LOG_BLOCK);
        let places = [(self.blocks - wrapped, tail), (head - (count - wrapped), front)];
        for (place, bytes) in places {
            if !bytes.is_empty() {
                read_exact_at(self.device, Sector(self.start.0 + place), bytes)?;
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::log_record::clean_log;
    use undercroft_block::{MemoryDevice, write_all_at};
    use uuid::Uuid;

    const BLOCKS: u64 = 2048;

    /// A log of cycle `cycle - 1` that `written` blocks of `cycle` overwrote, ending at `head`.
    fn log(cycle: u32, head: u64, record: &[u8]) -> MemoryDevice {
        let device = MemoryDevice::new(BLOCKS * 512);
        for block in 0..BLOCKS {
            let mut bytes = [0; LOG_BLOCK];
            let own = if block < head { cycle } else { cycle - 1 };
            bytes[..4].copy_from_slice(&own.to_be_bytes());
            write_all_at(&device, Sector(block), &bytes).unwrap();
        }
        let start = head - (record.len() / LOG_BLOCK) as u64;
        write_all_at(&device, Sector(start), record).unwrap();
        device
    }

    const VOLUME: Uuid = Uuid::from_u128(1);

    fn is_clean(device: &dyn BlockDevice) -> bool {
        let log = Log { device, uuid: VOLUME, start: Sector(0), blocks: BLOCKS };
        log.is_clean(log.head().unwrap().0).unwrap()
    }

    #[test]
    fn an_unmount_record_before_the_head_is_clean() {
        for stripe in [1, 32 << 10, 256 << 10] {
            let record = clean_log(VOLUME, stripe, 7);
            let blocks = (record.len() / LOG_BLOCK) as u64;
            for head in [blocks, blocks + 1, 1000, BLOCKS - 1, BLOCKS] {
                assert!(is_clean(&log(7, head, &record)), "stripe {stripe}, head {head}");
            }
        }
        assert!(is_clean(&MemoryDevice::new(BLOCKS * 512)));
    }

    #[test]
    fn anything_else_is_dirty() {
        let record = clean_log(VOLUME, 1, 7);
        let mut other_flag = record.clone();
        other_flag[LOG_BLOCK + UNMOUNT_FLAG_OFFSET] = 0;
        assert!(!is_clean(&log(7, 1000, &other_flag)));
        let mut two_operations = record.clone();
        two_operations[43] = 2;
        assert!(!is_clean(&log(7, 1000, &two_operations)));
        // Another write after the record.
        let mut longer = record;
        longer.extend([0, 0, 0, 7]);
        longer.resize(3 * LOG_BLOCK, 0);
        assert!(!is_clean(&log(7, 1000, &longer)));
    }

    #[test]
    fn what_is_no_journal_of_this_volume_is_an_error() {
        let state = |device: &MemoryDevice, uuid| {
            let log = Log { device, uuid, start: Sector(0), blocks: BLOCKS };
            log.is_clean(log.head()?.0)
        };
        assert!(matches!(state(&log(7, 1000, &[]), VOLUME), Err(LogError::NoRecord)));
        let record = clean_log(VOLUME, 1, 7);
        let other = state(&log(7, 1000, &record), Uuid::nil());
        assert!(matches!(other, Err(LogError::Foreign { .. })));
    }
}
