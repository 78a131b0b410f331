//! Compressed raw images, which are only read.
//!
//! A disk is in segments, each of which is decompressed from its start. What was decompressed is kept in a
//! file without a name, with holes (`spool`), so that nothing is decompressed twice and memory does not grow.
//! Where segments begin is said by the format: an index at the end (`xz`), a table or the headers of frames
//! (`zstd`), or nothing (`gzip`, whose index is made and kept).

mod cache;
mod gzip;
mod spool;
#[cfg(feature = "xz")]
mod xz;
#[cfg(feature = "zstd")]
mod zstd;

use crate::disk::{Disk, Stored};
use crate::note::note;
use crate::obstacle::{Obstacle, damaged};
use parking_lot::Mutex;
use spool::Spool;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use undercroft_source::{FOREIGN_HEAD, ForeignKind, recognise};

/// Segments that an image may have.
const MAX_SEGMENTS: usize = 1 << 20;
/// Longest segment that is nothing to speak of.
const LONG: u64 = 64 << 20;

/// How an image is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Xz,
    Zstd,
}

/// A part of a disk that is decompressed from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Where it begins in the disk, and its bytes.
    start: u64,
    bytes: u64,
    /// Where its compressed bytes are in the file.
    at: u64,
    packed: u64,
}

/// Decompresses segments.
trait Codec: Send + Sync {
    /// The bytes of a segment, and perhaps more behind them.
    fn decoder(&self, number: usize, segment: Segment) -> io::Result<Box<dyn Read + Send>>;
}

/// What a format says of the disk.
struct Layout {
    segments: Vec<Segment>,
    /// The length of the disk.
    bytes: u64,
    codec: Box<dyn Codec>,
    /// With what was decompressed already, if that was all.
    whole: Option<Spool>,
}

impl Packing {
    /// The packing of a file that begins with `start`, if it is one that can be read here.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] if cfg!(feature = "xz") => Some(Self::Xz),
            // A frame, or one to be skipped, which some writers put first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
                if cfg!(feature = "zstd") =>
            {
                Some(Self::Zstd)
            }
            _ => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }

    /// All bytes, from the first one on.
    fn stream(self, stored: &Arc<Stored>) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::Gzip => Ok(gzip::stream(stored)),
            #[cfg(feature = "xz")]
            Self::Xz => xz::stream(stored),
            #[cfg(feature = "zstd")]
            Self::Zstd => zstd::stream(stored),
            #[cfg(not(all(feature = "xz", feature = "zstd")))]
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn layout(self, stored: &Arc<Stored>, path: &Path) -> Result<Layout, Obstacle> {
        match self {
            Self::Gzip => gzip::layout(stored, path),
            #[cfg(feature = "xz")]
            Self::Xz => xz::layout(stored),
            #[cfg(feature = "zstd")]
            Self::Zstd => zstd::layout(stored),
            #[cfg(not(all(feature = "xz", feature = "zstd")))]
            _ => damaged("it is of a kind that this program was built without"),
        }
    }

    /// The disk in a file.
    pub(crate) fn open(self, stored: Stored, path: &Path) -> Result<Box<dyn Disk>, Obstacle> {
        let stored = Arc::new(stored);
        let mut head = Vec::new();
        // An error is one of what is behind it: it comes again when that is read.
        let _ = self.stream(&stored)?.take(FOREIGN_HEAD as u64).read_to_end(&mut head);
        if let Some(found) = recognise(&head) {
            let is_disk = !matches!(
                found.kind,
                ForeignKind::Container
                    | ForeignKind::Archive
                    | ForeignKind::Tar
                    | ForeignKind::Compressed
                    | ForeignKind::Dump
            );
            if !is_disk {
                return Err(Obstacle::Holds(found.name));
            }
        }
        let layout = self.layout(&stored, path)?;
        if layout.segments.is_empty() {
            return damaged("there is nothing in it");
        }
        let packed = Packed::new(layout)?;
        if let Some(longest) = packed.longest().filter(|_| self != Self::Gzip) {
            let how = match self {
                Self::Xz => "`xz --block-size=4MiB` makes one that is read anywhere",
                _ => "`zeekstd` or `t2sz` makes one that is read anywhere",
            };
            note(&format!(
                "{}: it is decompressed from the front, up to {longest} MiB to reach a place; {how}",
                path.display()
            ));
        }
        Ok(Box::new(packed))
    }
}

/// A compressed disk.
struct Packed {
    segments: Vec<Segment>,
    bytes: u64,
    codec: Box<dyn Codec>,
    state: Mutex<Spool>,
}

impl Packed {
    fn new(layout: Layout) -> io::Result<Self> {
        let Layout { segments, bytes, codec, whole } = layout;
        let spool = match whole {
            Some(spool) => spool,
            None => Spool::new(bytes, segments.len())?,
        };
        Ok(Self { segments, bytes, codec, state: Mutex::new(spool) })
    }

    /// MiB of the longest segment, if that is long.
    fn longest(&self) -> Option<u64> {
        let lengths = self.segments.iter().map(|segment| segment.bytes);
        lengths.max().filter(|length| *length > LONG).map(|length| length >> 20)
    }
}

impl Disk for Packed {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        let end = at + memory.len() as u64;
        let first = self.segments.partition_point(|segment| segment.start <= at) - 1;
        let mut spool = self.state.lock();
        for (number, segment) in self.segments.iter().enumerate().skip(first) {
            if segment.start >= end {
                break;
            }
            let wanted = (end - segment.start).min(segment.bytes);
            spool.fill(number, *segment, wanted, &*self.codec)?;
        }
        spool.read(at, memory)
    }
}

/// A part of a file, read from front to end.
struct Part {
    stored: Arc<Stored>,
    at: u64,
    end: u64,
}

impl Part {
    fn new(stored: &Arc<Stored>, at: u64, bytes: u64) -> Self {
        let end = at.saturating_add(bytes).min(stored.length());
        Self { stored: Arc::clone(stored), at, end }
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.end.saturating_sub(self.at).min(buffer.len() as u64) as usize;
        self.stored.fill(self.at, &mut buffer[..length])?;
        self.at += length as u64;
        Ok(length)
    }
}

/// A segment to whose end is read when its last byte is, so that its checksum counts.
#[cfg(any(feature = "xz", feature = "zstd"))]
struct Checked<R> {
    reader: R,
    left: u64,
}

#[cfg(any(feature = "xz", feature = "zstd"))]
impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = (buffer.len() as u64).min(self.left) as usize;
        if length == 0 {
            return Ok(0);
        }
        let count = self.reader.read(&mut buffer[..length])?;
        self.left -= count as u64;
        if self.left == 0 && self.reader.read(&mut [0])? != 0 {
            return Err(crate::disk::invalid("it has more bytes than its index says"));
        }
        Ok(count)
    }
}
