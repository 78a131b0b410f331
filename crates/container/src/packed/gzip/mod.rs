//! gzip: members, in which there is no place to begin but their start.
//!
//! Fields: RFC 1951 and 1952. So all of it is decompressed once, and the state of the decoder noted every few
//! MiB (`index`): where it was, and the last 32 KiB, to which what follows may refer. The notes are kept in the
//! user's cache (`store`).

mod index;
mod inflater;
mod member;
mod point;
mod store;

use super::spool::Spool;
use super::{Codec, Layout, Part, Segment};
use crate::disk::{Stored, invalid};
use crate::note::note;
use crate::obstacle::Obstacle;
use index::Index;
use inflater::Inflater;
use point::Point;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Compressed bytes that are read at a time.
const READ: usize = 256 << 10;
/// Shortest file whose index is kept: of others it is made as quickly as it is read.
const KEPT: u64 = 8 << 20;

pub(super) fn stream(stored: &Arc<Stored>) -> Box<dyn Read + Send> {
    let part = BufReader::new(Part::new(stored, 0, u64::MAX));
    Box::new(flate2::bufread::MultiGzDecoder::new(part))
}

pub(super) fn layout(stored: &Arc<Stored>, path: &Path) -> Result<Layout, Obstacle> {
    let place = if stored.length() < KEPT { None } else { store::place(stored) };
    let kept = place.as_ref().and_then(|place| store::load(place, stored.length()));
    let (index, whole) = match kept {
        Some(index) => (index, None),
        None => {
            let what = "it has no index: all of it is decompressed once";
            if let Some(place) = &place {
                let place = place.display();
                note(&format!("{}: {what}, and an index is kept at {place}", path.display()));
            }
            let spool = Spool::whole()?;
            let reader = BufReader::with_capacity(READ, Part::new(stored, 0, u64::MAX));
            let index = Index::make(reader, &mut |at, bytes| spool.put(at, bytes))?;
            spool.finish(index.bytes)?;
            if let Some(place) = &place {
                // The next time it is made again.
                let _ = store::keep(place, &index);
            }
            (index, Some(spool))
        }
    };
    let bytes = index.bytes;
    let nexts = index.points.iter().skip(1).map(|next| (next.start, next.at));
    let segment = |(point, (end, packed_end)): (&Point, (u64, u64))| Segment {
        start: point.start,
        bytes: end - point.start,
        at: point.at,
        packed: packed_end.saturating_sub(point.at),
    };
    let ends = nexts.chain([(bytes, stored.length())]);
    let segments = index.points.iter().zip(ends).map(segment).collect();
    let codec = Box::new(Gzip { stored: Arc::clone(stored), index });
    Ok(Layout { segments, bytes, codec, whole })
}

struct Gzip {
    stored: Arc<Stored>,
    index: Index,
}

impl Codec for Gzip {
    fn decoder(&self, number: usize, segment: Segment) -> io::Result<Box<dyn Read + Send>> {
        let point = &self.index.points[number];
        let part = Part::new(&self.stored, segment.at, segment.packed);
        let input = BufReader::with_capacity(READ, part);
        Ok(Box::new(Member { inflater: Inflater::at(point), input, ready: Vec::new(), taken: 0 }))
    }
}

/// The bytes of a member, from a point on.
struct Member {
    inflater: Inflater,
    input: BufReader<Part>,
    /// Bytes that were decompressed, and how many of them were taken.
    ready: Vec<u8>,
    taken: usize,
}

impl Read for Member {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.ready.len() {
            self.ready.clear();
            self.taken = 0;
            let packed = self.input.fill_buf()?;
            let is_end = packed.is_empty();
            let step = self.inflater.step(packed)?;
            self.ready.extend_from_slice(self.inflater.last(step.bytes));
            self.input.consume(step.packed);
            if self.ready.is_empty() && (is_end || step.is_end) {
                return Err(invalid("the compressed data ends before its index says so"));
            }
        }
        let length = buffer.len().min(self.ready.len() - self.taken);
        buffer[..length].copy_from_slice(&self.ready[self.taken..self.taken + length]);
        self.taken += length;
        Ok(length)
    }
}
