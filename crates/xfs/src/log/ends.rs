//! The two ends of the journal: where recovery starts, and where the next record goes
//! (docs/format/journal/ends.md#tail).

use super::area::LogArea;
use super::head::{FLIGHT, Head};
use super::record::{Defect, Placed, Records, Strictness};
use crate::bytes::put_be32;
use crate::error::Error;
use crate::format::log_record::{LOG_BLOCK, next_cycle};
use crate::format::log_record_seal::cycle_of;
use crate::format::{LogRecordHeader, OperationFlags, Superblock};
use crate::geometry::Geometry;
use crate::units::Lsn;
use uuid::Uuid;

/// Records that can be under way at once.
const RECORDS_IN_FLIGHT: usize = 8;
/// Place of the flags of an operation in its header.
const FLAGS_OFFSET: usize = 9;

/// The state of the journal of a volume.
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

/// Both ends of a journal.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogEnds {
    pub(crate) state: LogState,
    /// Position of the next record; nothing on the volume may carry a later one. `None` if nothing
    /// was ever written, or the journal is elsewhere.
    pub(crate) head: Option<Lsn>,
    /// Position of the first record to replay; the head if there is none.
    pub(crate) tail: Lsn,
    /// Volume that the last record belongs to.
    pub(crate) uuid: Option<Uuid>,
    /// Block of the last record, and the size of the buffer in which it was assembled.
    pub(crate) last: Option<(u32, u32)>,
    /// The record, and those behind it, that were not written completely and do not count.
    pub(crate) torn: Option<Torn>,
    /// Of a journal that says that the volume was unmounted: why kernels do not believe it.
    pub(crate) contradiction: Option<String>,
}

impl LogEnds {
    /// Position of the next record: a journal that was never written begins with its first cycle.
    pub(crate) fn next(&self) -> Lsn {
        self.head.unwrap_or(Lsn::new(1, 0))
    }

    /// Refuses to continue a journal that contradicts itself, or that ends before what the
    /// superblock says: kernels would not mount the volume afterwards, nor do they now.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub(crate) fn check_believable(&self, superblock: &Superblock) -> Result<(), Error> {
        let (lsn, own) = (self.next(), superblock.lsn);
        if let Some(what) = &self.contradiction {
            return Err(Error::Journal { lsn, what: what.clone() });
        }
        if superblock.features.crc && own > lsn && !own.is_null() {
            let (cycle, block) = (own.cycle(), own.block());
            let what = format!(
                "it ends there, but the superblock was written later, at cycle {cycle}, block \
                 {block}"
            );
            return Err(Error::Journal { lsn, what });
        }
        Ok(())
    }
}

/// The end of the journal that a crash cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Position of the first record that does not count.
    pub lsn: Lsn,
    /// The defect.
    pub what: String,
}

impl LogArea<'_> {
    /// Finds both ends. A tail that was about to move is as it was published.
    pub(crate) fn ends(&self, geometry: &Geometry) -> Result<LogEnds, Error> {
        let Some(head) = self.find_head()? else {
            return Ok(LogEnds { state: LogState::Clean, ..LogEnds::default() });
        };
        let Head { block: head, contradiction } = head;
        let mut ends = self.ends_before(head)?;
        if ends.state == LogState::Clean {
            // Only of a crash, the writes under way may have come in any order.
            ends.contradiction = contradiction.or(ends.contradiction);
            return Ok(ends);
        }
        match self.first_torn(geometry, head, &ends)? {
            None => Ok(ends),
            Some(Defect { block, lsn, what }) => {
                Ok(LogEnds { torn: Some(Torn { lsn, what }), ..self.ends_before(block)? })
            }
        }
    }

    /// The ends of a journal whose last record ends at `head`.
    fn ends_before(&self, head: u64) -> Result<LogEnds, Error> {
        let Some(last) = self.header_before(head)? else {
            let lsn = Lsn::new(self.cycle(head)?, head as u32);
            let what = "no record ends there, nor anywhere before".into();
            return Err(Error::Journal { lsn, what });
        };
        let header = &last.header;
        // A record that wraps, or ends with the log, belongs to the round before.
        let wraps = last.block >= head;
        let cycle = if wraps { next_cycle(header.cycle) } else { header.cycle };
        let next = Lsn::new(cycle, head as u32);
        let clean = self.is_unmount(&last, head)?;
        let order = if clean { self.check_order(header.tail, next) } else { Ok(()) };
        Ok(LogEnds {
            state: if clean { LogState::Clean } else { LogState::Dirty },
            head: Some(next),
            tail: if clean { next } else { header.tail },
            uuid: Some(header.uuid),
            last: Some((last.block as u32, header.buffer_bytes)),
            torn: None,
            contradiction: order.err(),
        })
    }

    /// Whether a record, the last before `head`, says that the volume was unmounted.
    fn is_unmount(&self, last: &Placed, head: u64) -> Result<bool, Error> {
        if last.header.operations != 1 || last.blocks() != self.distance(last.block, head) {
            return Ok(false);
        }
        let data = self.after(last.block, u64::from(last.header.header_blocks()));
        let flags = OperationFlags::from_bits_retain(self.read(data, 1)?[FLAGS_OFFSET]);
        Ok(flags.contains(OperationFlags::UNMOUNT))
    }

    /// Of the records that can have been under way at the crash, the first that was not written
    /// completely.
    fn first_torn(
        &self,
        geometry: &Geometry,
        head: u64,
        ends: &LogEnds,
    ) -> Result<Option<Defect>, Error> {
        let tail = u64::from(ends.tail.block());
        let (mut from, mut searched) = (head, 0);
        for _ in 0..RECORDS_IN_FLIGHT {
            let Some(record) = self.header_before(from)? else { break };
            searched += self.distance(record.block, from);
            if searched > self.blocks {
                break;
            }
            from = record.block;
            if from == tail {
                break;
            }
        }
        let mut records = Records::new(self, geometry, from, head, Strictness::Probe);
        loop {
            match records.next()? {
                None => return Ok(None),
                Some(Err(defect)) => return Ok(Some(defect)),
                Some(Ok(_)) => {}
            }
        }
    }

    /// Where replay starts: behind the records that were being overwritten by the write that would
    /// have published a later tail. Reads, and so checks, everything that will be replayed.
    pub(crate) fn checked_tail(&self, geometry: &Geometry, ends: &LogEnds) -> Result<Lsn, Error> {
        let Some(head) = ends.head else { return Ok(ends.tail) };
        let end = u64::from(head.block());
        let (mut tail, buffer) = (ends.tail, ends.last.map_or(0, |(_, buffer)| buffer));
        let near = RECORDS_IN_FLIGHT as u64 * u64::from(buffer) / LOG_BLOCK as u64;
        loop {
            self.check_order(tail, head).map_err(|what| Error::Journal { lsn: head, what })?;
            let mut at = u64::from(tail.block());
            let mut records = Records::new(self, geometry, at, end, Strictness::Probe);
            let defect = loop {
                match records.next()? {
                    None => return Ok(tail),
                    Some(Ok(record)) => at = self.after(record.at.block, record.at.blocks()),
                    Some(Err(defect)) => break defect,
                }
            };
            if self.distance(end, defect.block) > near {
                return Err(defect.into_error());
            }
            let next = self.after(at, 1);
            let Some(block) = self.header_from(next, end)? else {
                return Err(defect.into_error());
            };
            tail = Lsn::new(self.cycle(block)?, block as u32);
        }
    }

    /// The head is at most one round ahead of the tail.
    fn check_order(&self, tail: Lsn, head: Lsn) -> Result<(), String> {
        let same = head.cycle() == tail.cycle() && head.block() >= tail.block();
        let next = head.cycle() == next_cycle(tail.cycle()) && head.block() < tail.block();
        if (same || next) && u64::from(tail.block()) < self.blocks {
            return Ok(());
        }
        Err(format!(
            "h_tail_lsn is cycle {}, block {}, which is not in the round before",
            tail.cycle(),
            tail.block()
        ))
    }

    /// Overwrites what may look like a record of the next rounds: blocks that a crash left behind
    /// the head, as far as writes that were under way can have reached
    /// (docs/format/journal/ends.md#stale-blocks). A clean journal can have such blocks too:
    /// `xfs_db` leaves holes when it changes the UUID.
    pub(crate) fn clear_stale(&self, head: Lsn, tail: Lsn, uuid: Uuid) -> Result<(), Error> {
        let start = u64::from(head.block());
        let free = self.distance(start, u64::from(tail.block()));
        let free = if free == 0 { self.blocks } else { free };
        let count = free.min(FLIGHT);
        let cycle_at = |at| if at < start { head.cycle() } else { head.cycle().wrapping_sub(1) };
        let mut bytes = self.read(start, count)?;
        let mut blocks = bytes.chunks_exact(LOG_BLOCK).zip(0..);
        if blocks.all(|(block, index)| cycle_of(block) == cycle_at(self.after(start, index))) {
            return Ok(());
        }
        bytes.fill(0);
        for (index, block) in bytes.chunks_exact_mut(LOG_BLOCK).enumerate() {
            let at = self.after(start, index as u64);
            let cycle = cycle_at(at);
            let lsn = Lsn::new(cycle, at as u32);
            let stub =
                LogRecordHeader { buffer_bytes: 0, ..LogRecordHeader::new(uuid, lsn, tail, 0) };
            stub.encode(block);
            // The predecessor is not known.
            put_be32(block, 36, 0);
        }
        debug_assert!(bytes.is_empty() || cycle_of(&bytes) != head.cycle());
        self.write(start, &bytes)
    }
}
