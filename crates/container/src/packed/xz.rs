//! xz: blocks, and behind them an index of their lengths.
//!
//! Fields: The .xz File Format 1.1.0. A block is decompressed as a stream of its own, with the header of its
//! stream before it and an index of one block behind it; so its checksum is looked at, too.

use super::{Checked, Codec, Layout, MAX_SEGMENTS, Part, Segment};
use crate::disk::Stored;
use crate::obstacle::{Obstacle, damaged};
use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use std::io::{self, Cursor, Read};
use std::sync::Arc;

/// Bytes of the header of a stream, and of its footer.
const HEADER: u64 = 12;
/// Most memory of a decoder. Level 9 takes 65 MiB.
const MEMORY: u64 = 256 << 20;
/// Longest index.
const MAX_INDEX: u64 = 64 << 20;

pub(super) fn stream(stored: &Arc<Stored>) -> io::Result<Box<dyn Read + Send>> {
    decoder(Part::new(stored, 0, u64::MAX), CONCATENATED)
}

fn decoder(reader: impl Read + Send + 'static, flags: u32) -> io::Result<Box<dyn Read + Send>> {
    let decoder = Stream::new_stream_decoder(MEMORY, flags)?;
    Ok(Box::new(XzDecoder::new_stream(io::BufReader::new(reader), decoder)))
}

struct Xz {
    stored: Arc<Stored>,
    /// Of each segment: the flags of its stream, the length of its block without padding and of its bytes.
    blocks: Vec<Block>,
}

#[derive(Clone, Copy)]
struct Block {
    flags: [u8; 2],
    unpadded: u64,
    bytes: u64,
}

pub(super) fn layout(stored: &Arc<Stored>) -> Result<Layout, Obstacle> {
    // From the last stream to the first, each from its last block to its first.
    let mut found: Vec<(u64, Block)> = Vec::new();
    let mut end = stored.length();
    while end > 0 {
        if !end.is_multiple_of(4) {
            return damaged("it ends within a word; is it cut?");
        }
        if end >= 4 && stored.array::<4>(end - 4)? == [0; 4] {
            end -= 4;
            continue;
        }
        end = stream_before(stored, end, &mut found)?;
    }
    let (mut segments, mut blocks) = (Vec::new(), Vec::new());
    let mut start: u64 = 0;
    for (at, block) in found.into_iter().rev() {
        if block.bytes == 0 {
            continue;
        }
        let packed = block.unpadded.next_multiple_of(4);
        segments.push(Segment { start, bytes: block.bytes, at, packed });
        blocks.push(block);
        let Some(next) = start.checked_add(block.bytes).filter(|next| *next < 1 << 62) else {
            return damaged("its index says that it is too long");
        };
        start = next;
    }
    let codec = Box::new(Xz { stored: Arc::clone(stored), blocks });
    Ok(Layout { segments, bytes: start, codec, whole: None })
}

/// Adds the blocks of the stream that ends at a place; returns where it begins.
fn stream_before(
    stored: &Stored,
    end: u64,
    found: &mut Vec<(u64, Block)>,
) -> Result<u64, Obstacle> {
    let cut = || Obstacle::Damaged("its index is not there, or damaged; is it cut?".into());
    let footer_at = end.checked_sub(HEADER).ok_or_else(cut)?;
    let footer: [u8; HEADER as usize] = stored.array(footer_at)?;
    if &footer[10..] != b"YZ" || crc32fast::hash(&footer[4..10]).to_le_bytes() != footer[..4] {
        return Err(cut());
    }
    let length = (u64::from(crate::field::le32(&footer, 4)) + 1) * 4;
    let index_at = footer_at.checked_sub(length).ok_or_else(cut)?;
    if length > MAX_INDEX {
        return damaged(format!("its index has {length} bytes"));
    }
    let mut index = vec![0; length as usize];
    stored.fill(index_at, &mut index)?;
    let (records, sum) = index.split_at(index.len() - 4);
    if records.first() != Some(&0) || crc32fast::hash(records).to_le_bytes() != *sum {
        return Err(cut());
    }
    let mut rest = &records[1..];
    let count = number(&mut rest).ok_or_else(cut)?;
    let flags = [footer[8], footer[9]];
    let first = found.len();
    let mut offset: u64 = 0;
    for _ in 0..count {
        let (unpadded, bytes) = number(&mut rest).zip(number(&mut rest)).ok_or_else(cut)?;
        if found.len() == MAX_SEGMENTS {
            return damaged(format!("it has more than {MAX_SEGMENTS} blocks"));
        }
        found.push((offset, Block { flags, unpadded, bytes }));
        // Numbers have at most 63 bits.
        offset = unpadded
            .checked_next_multiple_of(4)
            .and_then(|padded| offset.checked_add(padded))
            .filter(|offset| *offset <= index_at)
            .ok_or_else(cut)?;
    }
    let header_at = index_at.checked_sub(offset).and_then(|at| at.checked_sub(HEADER));
    let header_at = header_at.ok_or_else(cut)?;
    let header: [u8; HEADER as usize] = stored.array(header_at)?;
    if !header.starts_with(b"\xfd7zXZ\0") || header[6..8] != flags {
        return Err(cut());
    }
    found[first..].iter_mut().for_each(|(at, _)| *at += header_at + HEADER);
    found[first..].reverse();
    Ok(header_at)
}

/// A number of variable length: seven bits in each byte, the lowest first.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

impl Block {
    /// What is before a stream of this block alone, and behind it.
    fn around(self) -> [Vec<u8>; 2] {
        let mut header = b"\xfd7zXZ\0".to_vec();
        header.extend(self.flags);
        header.extend(crc32fast::hash(&self.flags).to_le_bytes());
        let mut end = vec![0, 1];
        put_number(&mut end, self.unpadded);
        put_number(&mut end, self.bytes);
        end.resize(end.len().next_multiple_of(4), 0);
        end.extend(crc32fast::hash(&end).to_le_bytes());
        let mut footer = (end.len() as u32 / 4 - 1).to_le_bytes().to_vec();
        footer.extend(self.flags);
        end.extend(crc32fast::hash(&footer).to_le_bytes());
        end.extend(footer);
        end.extend(b"YZ");
        [header, end]
    }
}

impl Codec for Xz {
    fn decoder(&self, number: usize, segment: Segment) -> io::Result<Box<dyn Read + Send>> {
        let block = self.blocks[number];
        let [before, behind] = block.around().map(Cursor::new);
        let part = Part::new(&self.stored, segment.at, segment.packed);
        let reader = decoder(before.chain(part).chain(behind), 0)?;
        Ok(Box::new(Checked { reader, left: block.bytes }))
    }
}
