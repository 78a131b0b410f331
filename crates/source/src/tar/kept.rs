//! What a scan saw, for the pass behind it, which reads data alone: no header is decoded twice.
//!
//! Only so much is kept as takes little memory. Of a larger archive nothing is, nor of one that
//! changed since, and it is decoded anew.

use super::bytes::Bytes;
use super::error::{TarError, io_problem};
use super::input::Stream;
use super::reader::FileData;
use crate::ahead::{Filling, Stop};
use crate::entry::KEPT_BYTES;
use crate::region::{Region, Stamp};
use crate::{Entry, Kind, Warnings};
use std::sync::Arc;

/// Most entries that are kept.
pub(super) const MOST_ENTRIES: usize = KEPT_BYTES / size_of::<Entry>();

/// Entries that are kept together: a list of all would be copied as it grows.
const PIECE: usize = 1024;

/// The entries of a scan under way.
pub(super) struct Keeping {
    stamp: Stamp,
    pieces: Vec<Vec<Entry>>,
    count: usize,
    bytes: usize,
}

impl Keeping {
    /// `None` if the file does not tell whether it changed.
    pub(super) fn begin(region: &Region) -> Option<Self> {
        Some(Self { stamp: region.stamp().ok()?, pieces: Vec::new(), count: 0, bytes: 0 })
    }

    /// Adds an entry; `None` if that is too much.
    pub(super) fn with(mut self, entry: Entry) -> Option<Self> {
        self.bytes += entry.weight();
        if self.count.is_multiple_of(PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        self.pieces.last_mut()?.push(entry);
        self.count += 1;
        (self.bytes <= KEPT_BYTES && self.count <= MOST_ENTRIES).then_some(self)
    }

    /// All of them. `places` are the offsets of their data.
    pub(super) fn finish(self, places: Vec<u64>, warnings: &Warnings) -> Option<Arc<Kept>> {
        let Self { stamp, pieces, count, .. } = self;
        let whole = count == places.len();
        whole.then(|| Arc::new(Kept { stamp, pieces, places, warnings: warnings.clone() }))
    }
}

/// All entries of an archive.
pub(super) struct Kept {
    stamp: Stamp,
    pieces: Vec<Vec<Entry>>,
    places: Vec<u64>,
    warnings: Warnings,
}

impl Kept {
    /// Whether the archive is as it was.
    pub(super) fn is_of(&self, region: &Region) -> bool {
        region.stamp().is_ok_and(|stamp| stamp == self.stamp)
    }

    /// Delivers the entries, with their data out of `region`. `archive` names it in errors.
    pub(super) fn deliver(
        &self,
        archive: &str,
        region: &Region,
        filling: &mut Filling<Box<TarError>>,
    ) -> Result<Warnings, Stop<Box<TarError>>> {
        let mut bytes = Bytes::new(Box::new(Stream::new(region.stream(), Arc::default())));
        for (entry, place) in self.pieces.iter().flatten().zip(&self.places) {
            filling.entry(entry.clone())?;
            let Kind::Regular { data, .. } = &entry.kind else { continue };
            let fault = |offset, problem| {
                let entry = Some(entry.path.as_bytes().to_vec());
                Box::new(TarError { archive: archive.to_owned(), offset, entry, problem })
            };
            let mut file = FileData::of(data);
            let between = if data.is_empty() { 0 } else { place - bytes.position() };
            bytes.skip(between).map_err(|error| fault(bytes.position(), io_problem(error)))?;
            loop {
                match file.next(&mut bytes) {
                    Ok(Some(data)) => filling.data(data)?,
                    Ok(None) => break,
                    Err(problem) => return Err(fault(bytes.position(), problem).into()),
                }
            }
        }
        Ok(self.warnings.clone())
    }
}
