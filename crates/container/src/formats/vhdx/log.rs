//! The log of an image that was not closed, replayed in memory.
//!
//! The log is a ring of entries. The last ones, each numbered one more than that before it, are the sequence
//! that counts; the newest says where it begins. [MS-VHDX] 2.3.

use super::checksum;
use super::view::{UNIT, View};
use crate::disk::Stored;
use crate::field::{le32, le64};
use crate::obstacle::{Obstacle, damaged, not_supported};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Longest log that is replayed.
const MAX_LOG: u64 = 64 << 20;
/// Bytes whose checksums are looked at, in lengths of the log: entries that are over each other are lies.
const MAX_SUMS: usize = 16;
/// Newest entries of which one has to end the sequence that counts.
const MAX_HEADS: usize = 64;
const ENTRY_HEADER: usize = 64;
const DESCRIPTOR: usize = 32;

/// The ring.
struct Log {
    bytes: Vec<u8>,
}

/// A sound entry.
#[derive(Clone, Copy)]
struct Entry {
    at: usize,
    length: usize,
    number: u64,
    tail: usize,
}

/// The file as it is with the log of its header.
pub(super) fn replay(stored: Stored, header: &[u8]) -> Result<View, Obstacle> {
    let (length, at) = (u64::from(le32(header, 68)), le64(header, 72));
    if u16::from_le_bytes([header[64], header[65]]) != 0 || length > MAX_LOG {
        return not_supported(format!("a log of {length} bytes or of a newer version"));
    }
    if length == 0 || !length.is_multiple_of(UNIT as u64) {
        return damaged(format!("it was not closed, and has a log of {length} bytes"));
    }
    let mut log = Log { bytes: vec![0; length as usize] };
    stored.fill(at, &mut log.bytes)?;
    let mut entries = log.entries(&header[48..64])?;
    entries.sort_unstable_by_key(|entry| Reverse(entry.number));
    let by_place: HashMap<_, _> = entries.iter().map(|entry| (entry.at, *entry)).collect();
    let mut heads = entries.iter().take(MAX_HEADS);
    let sequence = heads.find_map(|head| log.sequence(&by_place, *head));
    let Some(sequence) = sequence else {
        return damaged("it was not closed, and its log has no sound entries");
    };
    let mut view = View::new(stored);
    if let Some(head) = sequence.last() {
        let (flushed, last) = (log.word(head.at + 48), log.word(head.at + 56));
        if flushed > view.length() {
            return damaged(format!("it had {flushed} bytes once; is it cut?"));
        }
        view.extend(last);
    }
    for entry in sequence {
        log.apply(entry, &mut view)?;
    }
    Ok(view)
}

impl Log {
    /// A number at a place in the ring, which has whole units.
    fn word(&self, at: usize) -> u64 {
        le64(&self.bytes, at % self.bytes.len())
    }

    /// All sound entries of this log.
    fn entries(&self, name: &[u8]) -> Result<Vec<Entry>, Obstacle> {
        let mut entries = Vec::new();
        let mut summed = 0;
        for at in (0..self.bytes.len()).step_by(UNIT) {
            let header = &self.bytes[at..at + ENTRY_HEADER];
            let (length, tail) = (le32(header, 8) as usize, le32(header, 12) as usize);
            let number = le64(header, 16);
            let can_be = header.starts_with(b"loge")
                && header[32..48] == *name
                && length.is_multiple_of(UNIT)
                && (UNIT..=self.bytes.len()).contains(&length)
                && tail.is_multiple_of(UNIT)
                && tail < self.bytes.len()
                && number != 0;
            if !can_be {
                continue;
            }
            summed += length;
            if summed > MAX_SUMS * self.bytes.len() {
                return damaged("its log has entries over each other");
            }
            let entry = Entry { at, length, number, tail };
            if self.sum(entry) == le32(header, 4) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    /// The checksum of an entry.
    fn sum(&self, entry: Entry) -> u32 {
        let sum = checksum(&self.bytes[entry.at..entry.at + UNIT]);
        (UNIT..entry.length).step_by(UNIT).fold(sum, |sum, offset| {
            let at = (entry.at + offset) % self.bytes.len();
            crc32c::crc32c_append(sum, &self.bytes[at..at + UNIT])
        })
    }

    /// The entries from the first one that `head` names to `head`, if all are there.
    fn sequence(&self, entries: &HashMap<usize, Entry>, head: Entry) -> Option<Vec<Entry>> {
        let mut sequence: Vec<Entry> = Vec::new();
        let (mut at, mut taken) = (head.tail, 0);
        loop {
            let entry = *entries.get(&at)?;
            let is_next =
                sequence.last().is_none_or(|last| entry.number.checked_sub(1) == Some(last.number));
            taken += entry.length;
            if !is_next || taken > self.bytes.len() {
                return None;
            }
            sequence.push(entry);
            if entry.at == head.at {
                return Some(sequence);
            }
            at = (entry.at + entry.length) % self.bytes.len();
        }
    }

    /// Brings the changes of an entry.
    fn apply(&self, entry: Entry, view: &mut View) -> Result<(), Obstacle> {
        let count = le32(&self.bytes, entry.at + 24) as usize;
        let room = (ENTRY_HEADER + count.saturating_mul(DESCRIPTOR)).next_multiple_of(UNIT);
        if count > entry.length / DESCRIPTOR || room > entry.length {
            return damaged("an entry of its log has no room for its changes");
        }
        let mut data = entry.at + room;
        for index in 0..count {
            // In whole units, so that none is over the end of the ring.
            let at = (entry.at + ENTRY_HEADER + index * DESCRIPTOR) % self.bytes.len();
            let descriptor = &self.bytes[at..at + DESCRIPTOR];
            let to = le64(descriptor, 16);
            let bytes = match &descriptor[..4] {
                b"zero" => le64(descriptor, 8),
                b"desc" => UNIT as u64,
                _ => return damaged("an entry of its log has a change that is not known"),
            };
            let end = to.checked_add(bytes).filter(|end| *end <= view.length());
            let is_whole = to.is_multiple_of(UNIT as u64) && bytes.is_multiple_of(UNIT as u64);
            let Some(end) = end.filter(|_| is_whole) else {
                return damaged("an entry of its log changes what is behind the end of the file");
            };
            if descriptor.starts_with(b"zero") {
                if bytes > 0 {
                    view.zero(to, end);
                }
                continue;
            }
            if data + UNIT > entry.at + entry.length {
                return damaged("an entry of its log lacks its data");
            }
            let sector = data % self.bytes.len();
            let sector = &self.bytes[sector..sector + UNIT];
            if !sector.starts_with(b"data") {
                return damaged("an entry of its log has no data where it should be");
            }
            // The first and the last bytes make room for the mark and the number.
            let mut unit = Box::new([0; UNIT]);
            unit[..8].copy_from_slice(&descriptor[8..16]);
            unit[8..UNIT - 4].copy_from_slice(&sector[8..UNIT - 4]);
            unit[UNIT - 4..].copy_from_slice(&descriptor[4..8]);
            view.put(to, unit);
            data += UNIT;
        }
        Ok(())
    }
}
