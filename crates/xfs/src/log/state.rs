//! Whether a journal holds something to replay (journal reference, sections 5.1 and 5.2).
//!
//! The head is found by the cycle numbers that every log block carries, the record before it says
//! whether the volume was unmounted. What looks odd counts as dirty: the answer "clean" is certain.

use crate::bytes::be32;
use crate::error::Error;
use crate::format::log_record::{LOG_BLOCK, LogRecordHeader, MAGIC};
use crate::units::Lsn;
use crate::volume::Volume;
use undercroft_block::{BlockDevice, Sector, read_exact_at};
use uuid::Uuid;

/// Log blocks of the longest record: 256 KiB and its header blocks.
const RECORD_MAX: u64 = 520;
/// Flag of an unmount record, and its place in the first data block.
const UNMOUNT_FLAG: u8 = 0x20;
const UNMOUNT_FLAG_OFFSET: usize = 9;

/// What the journal of a volume holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogState {
    /// Nothing: the volume was unmounted, or never mounted.
    Clean,
    /// Changes that were not written back when the volume was last used.
    Dirty,
    /// It is on another device.
    #[default]
    External,
}

/// What the end of a journal says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogEnd {
    pub(crate) state: LogState,
    /// Position of the next record; nothing on the volume may carry a later one.
    pub(crate) next: Option<Lsn>,
    /// Volume that the last record belongs to.
    pub(crate) uuid: Option<Uuid>,
}

/// Looks whether the journal holds something to replay.
///
/// # Errors
/// The device failed.
pub fn state(volume: &Volume) -> Result<LogState, Error> {
    Ok(end(volume)?.state)
}

/// Looks at the end of the journal.
///
/// # Errors
/// The device failed.
pub(crate) fn end(volume: &Volume) -> Result<LogEnd, Error> {
    let geometry = volume.geometry();
    if geometry.log_start.is_null() {
        return Ok(LogEnd::default());
    }
    let log = Log {
        device: volume.cache().device().as_ref(),
        start: geometry.sector(geometry.log_start),
        blocks: u64::from(geometry.log_blocks) << (geometry.block_log - 9),
    };
    log.end()
}

struct Log<'d> {
    device: &'d dyn BlockDevice,
    start: Sector,
    blocks: u64,
}

impl Log<'_> {
    fn end(&self) -> Result<LogEnd, Error> {
        if self.blocks == 0 || self.cycle(0)? == 0 {
            return Ok(LogEnd { state: LogState::Clean, ..LogEnd::default() });
        }
        let (head, cycle) = self.head()?;
        let next = Some(Lsn(u64::from(cycle) << 32 | head));
        let wanted = RECORD_MAX.min(self.blocks);
        let before = self.before(head, wanted)?;
        let header = before.chunks_exact(LOG_BLOCK).enumerate().rev();
        let header = header.filter_map(|(at, block)| Some((at, LogRecordHeader::decode(block)?)));
        let Some((at, header)) = header.take(1).next() else {
            return Ok(LogEnd { state: LogState::Dirty, next, uuid: None });
        };
        let headers = if header.version == 1 { 1 } else { header.header_blocks() as usize };
        let data = at.saturating_add(headers);
        let end = data.saturating_add((header.data_bytes as usize).div_ceil(LOG_BLOCK));
        let flags = before.get(data.saturating_mul(LOG_BLOCK).saturating_add(UNMOUNT_FLAG_OFFSET));
        let clean = end as u64 == wanted
            && header.operations == 1
            && flags.is_some_and(|flags| flags & UNMOUNT_FLAG != 0);
        let state = if clean { LogState::Clean } else { LogState::Dirty };
        Ok(LogEnd { state, next, uuid: Some(header.uuid) })
    }

    /// Cycle in which a block was written last.
    fn cycle(&self, block: u64) -> Result<u32, Error> {
        let mut bytes = [0; LOG_BLOCK];
        read_exact_at(self.device, Sector(self.start.0 + block), &mut bytes)?;
        let first = be32(&bytes, 0);
        Ok(if first == MAGIC { be32(&bytes, 4) } else { first })
    }

    /// The block that is written next: the first one whose cycle is not that of block 0. Holes that
    /// a crash left are not looked for: the log is dirty then, wherever the head is. With it comes
    /// the cycle in which it will be written.
    fn head(&self) -> Result<(u64, u32), Error> {
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
    fn before(&self, head: u64, count: u64) -> Result<Vec<u8>, Error> {
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

    fn is_clean(device: &dyn BlockDevice) -> bool {
        Log { device, start: Sector(0), blocks: BLOCKS }.end().unwrap().state == LogState::Clean
    }

    #[test]
    fn an_unmount_record_before_the_head_is_clean() {
        for stripe in [1, 32 << 10, 256 << 10] {
            let record = clean_log(Uuid::from_u128(1), stripe, 7);
            let blocks = (record.len() / LOG_BLOCK) as u64;
            for head in [blocks, blocks + 1, 1000, BLOCKS - 1, BLOCKS] {
                assert!(is_clean(&log(7, head, &record)), "stripe {stripe}, head {head}");
            }
        }
        assert!(is_clean(&MemoryDevice::new(BLOCKS * 512)));
    }

    #[test]
    fn anything_else_is_dirty() {
        let record = clean_log(Uuid::from_u128(1), 1, 7);
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
        assert!(!is_clean(&log(7, 1000, &[])));
    }
}
