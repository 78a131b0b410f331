//! zstd: frames, perhaps with a table of them at the end.
//!
//! Fields: RFC 8878, and the Zstandard Seekable Format 0.1.0. Without a table, headers of frames and blocks are
//! read to find where frames are; of a frame that does not say its length, all is decompressed.

use super::spool::Spool;
use super::{Checked, Codec, Layout, MAX_SEGMENTS, Part, Segment};
use crate::disk::{Stored, invalid};
use crate::field::{le32, le64};
use crate::obstacle::{Obstacle, damaged, not_supported};
use std::io::{self, BufReader, Read};
use std::sync::Arc;

const FRAME: u32 = 0xfd2f_b528;
/// Frames to be skipped: sixteen marks.
const SKIPPED: u32 = 0x184d_2a50;
const TABLE: u32 = 0x184d_2a5e;
const TABLE_END: u32 = 0x8f92_eab1;
const FOOTER: u64 = 9;
/// Largest window of a decoder: 128 MiB, as the program has it without options.
const WINDOW_LOG: u32 = 27;
/// Bytes that are decompressed at a time.
const PIECE: usize = 256 << 10;

pub(super) fn stream(stored: &Arc<Stored>) -> io::Result<Box<dyn Read + Send>> {
    let mut decoder = zstd::Decoder::new(Part::new(stored, 0, u64::MAX))?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(Box::new(decoder))
}

struct Zstd {
    stored: Arc<Stored>,
}

impl Codec for Zstd {
    fn decoder(&self, _number: usize, segment: Segment) -> io::Result<Box<dyn Read + Send>> {
        let part = BufReader::new(Part::new(&self.stored, segment.at, segment.packed));
        let mut decoder = zstd::Decoder::with_buffer(part)?.single_frame();
        decoder.window_log_max(WINDOW_LOG)?;
        Ok(Box::new(Checked { reader: decoder, left: segment.bytes }))
    }
}

pub(super) fn layout(stored: &Arc<Stored>) -> Result<Layout, Obstacle> {
    let codec = Box::new(Zstd { stored: Arc::clone(stored) });
    if let Some((segments, bytes)) = table(stored)? {
        return Ok(Layout { segments, bytes, codec, whole: None });
    }
    let mut segments = Vec::new();
    let (mut at, mut start) = (0, Some(0_u64));
    while at < stored.length() {
        let Frame { packed, bytes } = frame(stored, at)?;
        // One that is skipped has no bytes.
        if bytes != Some(0) {
            if segments.len() == MAX_SEGMENTS {
                return damaged(format!("it has more than {MAX_SEGMENTS} frames"));
            }
            segments.push(Segment {
                start: start.unwrap_or_default(),
                bytes: bytes.unwrap_or_default(),
                at,
                packed,
            });
            let end = start.zip(bytes).map(|(start, bytes)| start.checked_add(bytes));
            start = match end {
                Some(None) => return damaged("its frames say that it is too long"),
                Some(end) => end,
                None => None,
            };
        }
        at += packed;
    }
    match start {
        Some(bytes) if bytes < 1 << 62 => Ok(Layout { segments, bytes, codec, whole: None }),
        Some(bytes) => damaged(format!("its frames say {bytes} bytes")),
        None => whole(stored, codec),
    }
}

/// All of it, decompressed.
fn whole(stored: &Arc<Stored>, codec: Box<Zstd>) -> Result<Layout, Obstacle> {
    let spool = Spool::whole()?;
    let mut reader = stream(stored)?;
    let mut piece = vec![0; PIECE];
    let mut bytes: u64 = 0;
    loop {
        let count = reader.read(&mut piece)?;
        if count == 0 {
            break;
        }
        spool.put(bytes, &piece[..count])?;
        bytes += count as u64;
    }
    spool.finish(bytes)?;
    let segments = vec![Segment { start: 0, bytes, at: 0, packed: stored.length() }];
    Ok(Layout { segments, bytes, codec, whole: Some(spool) })
}

/// The frames that a table at the end names, if there is one.
fn table(stored: &Stored) -> Result<Option<(Vec<Segment>, u64)>, Obstacle> {
    let Some(end) = stored.length().checked_sub(FOOTER) else { return Ok(None) };
    let footer: [u8; FOOTER as usize] = stored.array(end)?;
    if le32(&footer, 5) != TABLE_END {
        return Ok(None);
    }
    let (count, has_sums) = (le32(&footer, 0) as usize, footer[4] & 0x80 != 0);
    let entry = if has_sums { 12 } else { 8 };
    if count > MAX_SEGMENTS {
        return damaged(format!("it has {count} frames, more than {MAX_SEGMENTS}"));
    }
    let length = (count * entry) as u64;
    let Some(table_at) = end.checked_sub(length + 8) else {
        return damaged("its table of frames begins before it");
    };
    let header: [u8; 8] = stored.array(table_at)?;
    if le32(&header, 0) != TABLE || u64::from(le32(&header, 4)) != length + FOOTER {
        return damaged("its table of frames does not begin where it should");
    }
    let mut entries = vec![0; length as usize];
    stored.fill(table_at + 8, &mut entries)?;
    let (mut segments, mut at, mut start) = (Vec::new(), 0, 0);
    for entry in entries.chunks_exact(entry) {
        let (packed, bytes) = (u64::from(le32(entry, 0)), u64::from(le32(entry, 4)));
        if bytes != 0 {
            segments.push(Segment { start, bytes, at, packed });
        }
        at += packed;
        start += bytes;
    }
    if at != table_at {
        return damaged("its table of frames is not that of what is before it; is it cut?");
    }
    Ok(Some((segments, start)))
}

struct Frame {
    packed: u64,
    /// The bytes in it, if it says so.
    bytes: Option<u64>,
}

/// The lengths of the frame at a place.
fn frame(stored: &Arc<Stored>, at: u64) -> Result<Frame, Obstacle> {
    let mut reader = Counted { reader: BufReader::new(Part::new(stored, at, u64::MAX)), count: 0 };
    let mark = le32(&reader.array::<4>()?, 0);
    if mark & !0xf == SKIPPED {
        let length = u64::from(le32(&reader.array::<4>()?, 0));
        return Ok(Frame { packed: 8 + length, bytes: Some(0) });
    }
    if mark != FRAME {
        return damaged(format!("at byte {at} is no frame"));
    }
    let [flags] = reader.array()?;
    let is_single = flags & 0x20 != 0;
    if !is_single {
        reader.array::<1>()?;
    }
    if flags & 3 != 0 {
        return not_supported("a dictionary");
    }
    let field = match (flags >> 6, is_single) {
        (0, false) => 0,
        (0, true) => 1,
        (1, _) => 2,
        (2, _) => 4,
        _ => 8,
    };
    let mut word = [0; 8];
    reader.read_exact(&mut word[..field])?;
    let bytes = match field {
        0 => None,
        2 => Some(le64(&word, 0) + 256),
        _ => Some(le64(&word, 0)),
    };
    loop {
        let [low, middle, high] = reader.array()?;
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let length = match header >> 1 & 3 {
            1 => 1,
            0 | 2 => u64::from(header >> 3),
            _ => return damaged(format!("the frame at byte {at} has a block of no known kind")),
        };
        reader.skip(length)?;
        if header & 1 != 0 {
            break;
        }
    }
    let sum = if flags & 4 != 0 { 4 } else { 0 };
    Ok(Frame { packed: reader.count + sum, bytes })
}

/// A reader that knows how far it is.
struct Counted {
    reader: BufReader<Part>,
    count: u64,
}

impl Counted {
    fn array<const LENGTH: usize>(&mut self) -> io::Result<[u8; LENGTH]> {
        let mut bytes = [0; LENGTH];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.count += bytes.len() as u64;
        self.reader.read_exact(bytes).map_err(|_| invalid("it ends within a frame; is it cut?"))
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        self.count += length;
        let buffered = (self.reader.buffer().len() as u64).min(length);
        io::BufRead::consume(&mut self.reader, buffered as usize);
        // Behind the end the next read fails.
        self.reader.get_mut().at += length - buffered;
        Ok(())
    }
}
