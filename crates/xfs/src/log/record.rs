//! Records one after the other, checked and unpacked.

use super::area::LogArea;
use crate::error::Error;
use crate::format::LogRecordHeader;
use crate::format::log_record::LOG_BLOCK;
use crate::format::log_record_seal::{restore_words, verify_record};
use crate::geometry::Geometry;
use crate::units::Lsn;
use uuid::Uuid;

/// Log blocks that are read at once: at the start of a walk, which may end soon, and at most. Each
/// read is longer than the one before.
const FIRST_WINDOW: u64 = 64;
const WINDOW: u64 = 1 << 15;
const GROWTH: u64 = 8;

/// The header of a record, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) block: u64,
    pub(crate) header: LogRecordHeader,
}

impl Placed {
    /// Log blocks of the record, headers and data.
    pub(crate) fn blocks(&self) -> u64 {
        self.header.blocks()
    }
}

/// Why a record is not one.
#[derive(Clone, Debug)]
pub(crate) struct Defect {
    /// Block at which the record should start.
    pub(crate) block: u64,
    /// Its own position, as far as it can be told.
    pub(crate) lsn: Lsn,
    pub(crate) what: String,
}

impl Defect {
    pub(crate) fn into_error(self) -> Error {
        Error::Journal { lsn: self.lsn, what: self.what }
    }
}

/// Whether a record is good for replay, or only whether it looks written completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Records without a checksum are not.
    Replay,
    /// They are.
    Probe,
}

/// A walk over the records between two blocks of the journal.
pub(crate) struct Records<'a> {
    area: &'a LogArea<'a>,
    uuid: Uuid,
    strictness: Strictness,
    block: u64,
    left: u64,
    /// Log blocks from `window_at` on.
    window: Vec<u8>,
    window_at: u64,
    record: Vec<u8>,
}

/// A record: its header and its data, with the first words back at their places.
pub(crate) struct Record<'r> {
    pub(crate) at: Placed,
    pub(crate) data: &'r [u8],
}

impl<'a> Records<'a> {
    /// The records from the one at block `from` on to block `to`.
    pub(crate) fn new(
        area: &'a LogArea<'a>,
        geometry: &Geometry,
        from: u64,
        to: u64,
        strictness: Strictness,
    ) -> Self {
        let left = area.distance(from, to);
        let (window, record) = (Vec::new(), Vec::new());
        let uuid = geometry.uuid;
        Self { area, uuid, strictness, block: from, left, window, window_at: 0, record }
    }

    /// `count` blocks from the current one on.
    fn view(&mut self, count: u64) -> Result<&[u8], Error> {
        let held = (self.window.len() / LOG_BLOCK) as u64;
        let mut skip = self.area.distance(self.window_at, self.block);
        if skip.saturating_add(count) > held {
            let ahead = (held * GROWTH).clamp(FIRST_WINDOW, WINDOW);
            let wanted = count.max(ahead).min(self.left.max(count)).min(self.area.blocks);
            self.window = self.area.read(self.block, wanted)?;
            self.window_at = self.block;
            skip = 0;
        }
        let start = skip as usize * LOG_BLOCK;
        Ok(&self.window[start..start + count as usize * LOG_BLOCK])
    }

    /// The header of the next record, if it can be one.
    fn header(&mut self) -> Result<Result<Placed, Defect>, Error> {
        let (block, left, uuid) = (self.block, self.left, self.uuid);
        let bytes = self.view(1)?;
        let guess = Lsn::new(crate::format::log_record_seal::cycle_of(bytes), block as u32);
        let defect = |what: String| Ok(Err(Defect { block, lsn: guess, what }));
        let Some(header) = LogRecordHeader::decode(bytes) else {
            return defect("there is no record header".into());
        };
        if let Err(what) = header.check(uuid) {
            return defect(what);
        }
        let placed = Placed { block, header };
        if placed.blocks() > left {
            let what = format!("its {} blocks end behind the last record", placed.blocks());
            return defect(what);
        }
        Ok(Ok(placed))
    }

    /// The next record; `None` at the end. After a defect there are no more.
    pub(crate) fn next(&mut self) -> Result<Option<Result<Record<'_>, Defect>>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        let at = match self.header()? {
            Ok(at) => at,
            Err(defect) => {
                self.left = 0;
                return Ok(Some(Err(defect)));
            }
        };
        let (blocks, headers) = (at.blocks(), at.header.header_blocks() as usize);
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        record.extend_from_slice(self.view(blocks)?);
        self.record = record;
        self.left -= blocks;
        self.block = self.area.after(self.block, blocks);
        let probed = at.header.crc == 0 && self.strictness == Strictness::Probe;
        if !probed && let Err(error) = verify_record(&self.record, headers) {
            self.left = 0;
            let (lsn, block) = (at.header.lsn, at.block);
            return Ok(Some(Err(Defect { block, lsn, what: error.to_string() })));
        }
        restore_words(&mut self.record, headers);
        let data = &self.record[headers * LOG_BLOCK..];
        Ok(Some(Ok(Record { at, data })))
    }
}
