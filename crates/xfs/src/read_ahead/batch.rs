//! Reads ahead of several files together.
//!
//! What lies side by side on the device becomes one read, whatever files it is of: many small files
//! cost as few requests, and as little memory, as a large one.

use super::ReadAhead;
use super::piece::Piece;
use super::pieces::Pieces;
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
pub(crate) struct Batch<'v> {
    ahead: &'v ReadAhead,
    /// Bytes of a sector.
    unit: u64,
    parts: Vec<Wanted>,
}

/// A part of a file that one read can bring.
struct Wanted {
    sectors: Range<Sector>,
    file: Arc<Pieces>,
    range: Range<u64>,
    /// Bytes of the first sector before it.
    skipped: usize,
    version: u64,
}

impl<'v> Batch<'v> {
    /// Of a volume whose sectors have `unit` bytes.
    pub(crate) fn new(ahead: &'v ReadAhead, unit: usize) -> Self {
        Self { ahead, unit: unit as u64, parts: Vec::new() }
    }

    pub(crate) fn is_of(&self, ahead: &ReadAhead) -> bool {
        std::ptr::eq(self.ahead, ahead)
    }

    /// Adds a part of a file, whose bytes of the file are `range`, and which begins so many bytes behind
    /// the start of a sector. They are of this version of its data.
    pub(crate) fn add(
        &mut self,
        file: &Arc<Pieces>,
        mut range: Range<u64>,
        (mut sector, mut skipped): (Sector, usize),
        version: u64,
    ) {
        let unit = self.unit;
        while !range.is_empty() {
            let wanted = usize::try_from(range.end - range.start).unwrap_or(READ_BYTES);
            let wanted = wanted.min(READ_BYTES - skipped);
            let next = range.start + wanted as u64;
            let end = (sector.0 * 512 + (skipped + wanted) as u64).next_multiple_of(unit);
            self.parts.push(Wanted {
                sectors: sector..Sector(end / 512),
                file: Arc::clone(file),
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
    pub(crate) fn submit(mut self) {
        self.parts.sort_unstable_by_key(|part| part.sectors.start);
        let memory = self.ahead.files();
        let plug = Plug::new(self.ahead.device());
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
                piece.file.add(Piece { range, skipped: inside, version, memory });
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
