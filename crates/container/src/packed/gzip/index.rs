//! The index of a gzip file: points at which its decoder can begin.

use super::super::MAX_SEGMENTS;
use super::inflater::Inflater;
use super::member::Counted;
use super::point::Point;
use crate::disk::invalid;
use std::io::{self, BufRead};

/// Points in members that are kept: 32 MiB of what is referred to.
const MAX_WINDOWS: usize = 1024;
/// Bytes between points, doubled when there are too many.
const SPACING: u64 = 4 << 20;

/// Points in the order of their places.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) points: Vec<Point>,
    /// The length of what is compressed.
    pub(super) bytes: u64,
}

/// Takes bytes of the disk, with their place.
pub(super) type Sink<'s> = &'s mut dyn FnMut(u64, &[u8]) -> io::Result<()>;

impl Index {
    /// Of a whole file, all of whose bytes are handed out.
    pub(super) fn make(reader: impl BufRead, sink: Sink<'_>) -> io::Result<Self> {
        let mut reader = Counted { reader, position: 0 };
        let mut maker = Maker { index: Self::default(), spacing: SPACING, windows: 0 };
        while reader.header()? {
            maker.member(&mut reader, sink)?;
        }
        Ok(maker.index)
    }
}

struct Maker {
    index: Index,
    spacing: u64,
    windows: usize,
}

impl Maker {
    fn member(&mut self, reader: &mut Counted<impl BufRead>, sink: Sink<'_>) -> io::Result<()> {
        let first = self.index.bytes;
        let (at, start) = (reader.position, first);
        self.add(Point { start, at, bits: 0, bit_buffer: 0, window: None })?;
        let (mut inflater, mut sum) = (Inflater::new(), crc32fast::Hasher::new());
        loop {
            let step = inflater.step(reader.reader.fill_buf()?)?;
            reader.consume(step.packed);
            let bytes = inflater.last(step.bytes);
            sum.update(bytes);
            sink(self.index.bytes, bytes)?;
            self.index.bytes += step.bytes as u64;
            if step.is_end {
                break;
            }
            let start = self.index.bytes;
            let last = self.index.points.last().map_or(0, |point| point.start);
            if step.is_boundary
                && start - last >= self.spacing
                && let Some((bits, bit_buffer)) = inflater.bits()
            {
                let window = Some(inflater.window());
                self.add(Point { start, at: reader.position, bits, bit_buffer, window })?;
            }
        }
        let (expected, length) =
            (u32::from_le_bytes(reader.array()?), u32::from_le_bytes(reader.array()?));
        if expected != sum.finalize() || length != (self.index.bytes - first) as u32 {
            return Err(invalid("the checksum of a member is wrong"));
        }
        if self.index.bytes == first {
            self.index.points.pop();
        }
        Ok(())
    }

    fn add(&mut self, point: Point) -> io::Result<()> {
        if self.index.points.len() == MAX_SEGMENTS {
            return Err(invalid(format!("it has more than {MAX_SEGMENTS} members")));
        }
        self.windows += usize::from(point.window.is_some());
        self.index.points.push(point);
        if self.windows > MAX_WINDOWS {
            self.thin();
        }
        Ok(())
    }

    /// Keeps the points in members that are far enough from those before them.
    fn thin(&mut self) {
        self.spacing *= 2;
        let (mut last, mut windows) = (0, 0);
        self.index.points.retain(|point| {
            let is_kept = point.window.is_none() || point.start - last >= self.spacing;
            if is_kept {
                last = point.start;
                windows += usize::from(point.window.is_some());
            }
            is_kept
        });
        self.windows = windows;
    }
}
