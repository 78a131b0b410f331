//! The state that all parts of a check share: the volume, blocks that were read, findings.

use super::finding::{Finding, Location};
use super::findings::Findings;
use super::options::CheckOptions;
use super::visited::Visited;
use crate::cache::{BufferAddress, verify_buffer};
use crate::format::da_block::resolve_magic;
use crate::format::{BufferKind, Header};
use crate::geometry::Geometry;
use crate::log::LogState;
use crate::units::{AgNumber, Lsn};
use crate::volume::Volume;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use undercroft_block::{Buffer, Sector, read_buffer};

/// Threads that read from a slow device.
const SLOW_READERS: usize = 64;

/// A verified block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: BufferKind,
    pub(super) bytes: Buffer,
}

/// The defect of a block.
#[derive(Debug)]
pub(super) enum Defect {
    /// It cannot be read, or is another block: nothing in it can be believed.
    Foreign(String),
    /// Header and checksum are right, the content is not.
    Content(String, Block),
}

/// Everything the parts of a check share.
#[derive(Debug)]
pub(super) struct Checker {
    pub(super) volume: Volume,
    pub(super) log: LogState,
    pub(super) threads: usize,
    pub(super) findings: Findings,
    visited: Visited,
    incomplete: AtomicBool,
    bytes: AtomicU64,
    /// Latest log position found in metadata.
    latest: AtomicU64,
}

impl Checker {
    pub(super) fn new(volume: Volume, log: LogState, options: &CheckOptions) -> Self {
        Self {
            volume,
            log,
            latest: AtomicU64::new(0),
            threads: options.threads,
            findings: Findings::new(options.findings_max),
            visited: Visited::default(),
            incomplete: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn geometry(&self) -> &Geometry {
        self.volume.geometry()
    }

    /// Whether changes may be waiting in the journal.
    pub(super) fn dirty(&self) -> bool {
        self.log == LogState::Dirty
    }

    pub(super) fn add(&self, finding: Finding) {
        self.findings.add(finding);
    }

    pub(super) fn error(
        &self,
        structure: &'static str,
        location: Location,
        what: impl Into<String>,
    ) {
        self.add(Finding::error(structure, location, what));
    }

    /// Reports a number that differs from the expected one.
    pub(super) fn expect<T: PartialEq + std::fmt::Display>(
        &self,
        structure: &'static str,
        location: Location,
        field: &'static str,
        found: T,
        expected: T,
    ) {
        if found != expected {
            self.add(Finding::differs(structure, location, field, found, expected));
        }
    }

    /// Records that something could not be seen, so that nothing is concluded from its absence.
    pub(super) fn set_incomplete(&self) {
        self.incomplete.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.incomplete.load(Ordering::Relaxed)
    }

    /// Records the log position that a piece of metadata carries.
    pub(super) fn note_lsn(&self, lsn: Lsn) {
        if !lsn.is_null() && lsn.0 > self.latest.load(Ordering::Relaxed) {
            self.latest.fetch_max(lsn.0, Ordering::Relaxed);
        }
    }

    /// Records the log position in the header of a v5 block.
    pub(super) fn note_header_lsn(&self, kind: BufferKind, bytes: &[u8]) {
        if self.geometry().features.crc
            && let Some(lsn) = Header::of(kind).and_then(|header| header.lsn(bytes))
        {
            self.note_lsn(lsn);
        }
    }

    /// Latest log position found so far.
    pub(super) fn latest_lsn(&self) -> Lsn {
        Lsn(self.latest.load(Ordering::Relaxed))
    }

    /// Bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether a block of the volume is read as metadata for the first time.
    pub(super) fn first_visit(&self, sector: Sector) -> bool {
        self.visited.first(sector.0 >> (self.geometry().block_log - 9))
    }

    /// Threads for work that is mostly reading: more than processors where reads are slow, as
    /// each thread waits for its own.
    pub(super) fn readers(&self) -> usize {
        if self.volume.cache().ahead().is_slow() {
            self.threads.max(SLOW_READERS)
        } else {
            self.threads
        }
    }

    /// Begins to read blocks that are asked for soon, where reads are slow.
    pub(super) fn read_ahead(&self, addresses: impl IntoIterator<Item = BufferAddress>) {
        self.volume.cache().prefetch(addresses);
    }

    /// Header sector `index` of a group.
    pub(super) fn header_address(&self, ag: AgNumber, index: u32) -> BufferAddress {
        BufferAddress::contiguous(self.geometry().header_sector(ag, index), self.sectors())
    }

    /// Bytes from the device.
    pub(super) fn read_bytes(&self, parts: &[(Sector, u32)]) -> Result<Buffer, String> {
        if let Some(bytes) = self.volume.cache().take_prefetched(&BufferAddress::scattered(parts)) {
            self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            return Ok(Buffer::copy_of(&bytes));
        }
        let device = self.volume.cache().device().as_ref();
        let read = |sector: Sector, sectors: u32| {
            self.bytes.fetch_add(u64::from(sectors) * 512, Ordering::Relaxed);
            self.volume
                .cache()
                .ahead()
                .speed()
                .measure(|| read_buffer(device, sector, sectors as usize * 512))
                .map_err(|error| format!("cannot be read: {error}"))
        };
        if let [(sector, sectors)] = parts {
            return read(*sector, *sectors);
        }
        let sectors: usize = parts.iter().map(|(_, sectors)| *sectors as usize).sum();
        let (mut whole, mut filled) = (Buffer::zeroed(sectors * 512), 0);
        for (sector, sectors) in parts {
            let part = read(*sector, *sectors)?;
            whole[filled..filled + part.len()].copy_from_slice(&part);
            filled += part.len();
        }
        Ok(whole)
    }

    /// A block of `kind` that belongs to `owner`, verified.
    pub(super) fn read_block(
        &self,
        kind: BufferKind,
        parts: &[(Sector, u32)],
        owner: u64,
    ) -> Result<Block, Defect> {
        let bytes = self.read_bytes(parts).map_err(Defect::Foreign)?;
        let geometry = self.geometry();
        let sector = parts.first().map_or(Sector(0), |part| part.0);
        if geometry.features.crc
            && let Some(header) = Header::of(kind)
        {
            header
                .verify(&bytes, sector, &geometry.meta_uuid, geometry.block_size())
                .map_err(Defect::Foreign)?;
            if let Some(found) = header.owner(&bytes)
                && found != owner
            {
                return Err(Defect::Foreign(format!("owner is {found}, not {owner}")));
            }
            if let Some(lsn) = header.lsn(&bytes) {
                self.note_lsn(lsn);
            }
        }
        let kind = resolve_magic(&bytes, kind, geometry.features.crc).map_err(Defect::Foreign)?;
        let verdict = verify_buffer(kind, &bytes, geometry);
        let block = Block { kind, bytes };
        match verdict {
            Ok(()) => Ok(block),
            Err(what) => Err(Defect::Content(what, block)),
        }
    }

    /// Reports a damaged block; gives it back if its entries may be right.
    pub(super) fn report_defect(
        &self,
        structure: &'static str,
        location: Location,
        defect: Defect,
    ) -> Option<Block> {
        match defect {
            Defect::Foreign(what) => {
                self.error(structure, location, what);
                None
            }
            Defect::Content(what, block) => {
                self.error(structure, location, what);
                Some(block)
            }
        }
    }

    /// Units of 512 bytes of a header sector of a group.
    pub(super) fn sectors(&self) -> u32 {
        (self.geometry().sector_size() / 512) as u32
    }
}
