//! Reads ahead of several files together.
//!
//! What lies side by side on the device becomes one read, whatever files it is of: many small files
//! cost as few requests, and as little memory, as a large one.

use super::piece::Piece;
use super::pieces::Ahead;
use crate::file::parts::Part;
use crate::volume::Volume;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{Bio, Plug, Sector};

/// Longest read, and longest piece of a file.
const READ_BYTES: usize = 1 << 20;

/// Longest read of pieces of several files: it stays in a processor's cache until they are used.
const SHARED_BYTES: usize = 256 << 10;

/// What lies between two parts of a read is less than this many sectors: the rest of the block in
/// which a file ends, as a rule.
const GAP: u64 = (4 << 10) / 512;

/// Parts of files of one volume that are wanted.
pub(super) struct Batch<'v> {
    volume: &'v Volume,
    parts: Vec<Wanted>,
}

/// A part of a file that one read can bring.
struct Wanted {
    sectors: Range<Sector>,
    ahead: Arc<Ahead>,
    range: Range<u64>,
    /// Bytes of the first sector before it.
    skipped: usize,
    version: u64,
}

impl<'v> Batch<'v> {
    pub(super) fn new(volume: &'v Volume) -> Self {
        Self { volume, parts: Vec::new() }
    }

    pub(super) fn is_of(&self, volume: &Volume) -> bool {
        std::ptr::eq(self.volume, volume)
    }

    /// Adds a part of a file, whose bytes of the file are `range`. They are of this version of its
    /// data.
    pub(super) fn add(
        &mut self,
        ahead: &Arc<Ahead>,
        mut range: Range<u64>,
        part: &Part,
        version: u64,
    ) {
        let unit = self.volume.geometry().sector_size() as u64;
        let (mut sector, mut skipped) = (part.sector, part.skipped);
        while !range.is_empty() {
            let wanted = usize::try_from(range.end - range.start).unwrap_or(READ_BYTES);
            let wanted = wanted.min(READ_BYTES - skipped);
            let next = range.start + wanted as u64;
            let end = (sector.0 * 512 + (skipped + wanted) as u64).next_multiple_of(unit);
            self.parts.push(Wanted {
                sectors: sector..Sector(end / 512),
                ahead: Arc::clone(ahead),
                range: range.start..next,
                skipped,
                version,
            });
            range.start = next;
            sector.0 += ((skipped + wanted) / 512) as u64;
            skipped = 0;
        }
    }

    /// Begins the reads, in the order of the device, as far as there is memory.
    pub(super) fn submit(mut self) {
        self.parts.sort_unstable_by_key(|part| part.sectors.start);
        let memory = self.volume.read_ahead_memory();
        let plug = Plug::new(self.volume.cache().device());
        let mut parts = self.parts.into_iter().peekable();
        while let Some(first) = parts.next() {
            let mut sectors = first.sectors.clone();
            let mut pieces = SmallVec::<[_; 8]>::from_iter([first]);
            while let Some(next) = parts.next_if(|next| joins(&next.sectors, &sectors)) {
                sectors.end = sectors.end.max(next.sectors.end);
                pieces.push(next);
            }
            let length = bytes_between(sectors.start, sectors.end);
            let Some(buffer) = memory.try_get(length) else { return };
            memory.count_begun(length);
            let (bio, waiter) = Bio::read(sectors.start, buffer).waited();
            let arrival = Arc::new(waiter.into_shared());
            for piece in pieces {
                let inside = bytes_between(sectors.start, piece.sectors.start) + piece.skipped;
                let Wanted { range, version, .. } = piece;
                let memory = Arc::clone(&arrival);
                piece.ahead.add(Piece { range, skipped: inside, version, memory });
            }
            plug.submit(bio);
        }
    }
}

/// Whether a part joins the read of those before it.
fn joins(part: &Range<Sector>, read: &Range<Sector>) -> bool {
    let end = part.end.max(read.end);
    part.start.0 < read.end.0 + GAP && bytes_between(read.start, end) <= SHARED_BYTES
}

fn bytes_between(start: Sector, end: Sector) -> usize {
    // At most those of a read.
    (end.0 - start.0) as usize * 512
}
