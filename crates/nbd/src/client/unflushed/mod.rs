//! Writes that the server has answered and not flushed: kept, so that they can be sent again.
//!
//! A write that was durable when it was answered is not sent again. It leaves a note, since what was
//! kept of its range before must not be sent again either: that would undo it.

pub(crate) mod buffer_cache;
pub(crate) mod copied_bytes;
pub(crate) mod own_flush;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use self::copied_bytes::CopiedBytes;
use crate::protocol::CommandFlags;

/// What an entry without data counts, so that their number is bounded, too.
const ENTRY: u64 = 64;

/// A change that the server may lose.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) content: Content,
}

/// What a change writes.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// The bytes from the number on.
    Bytes(Arc<CopiedBytes>, usize),
    /// With these flags of the command.
    Zeroes(CommandFlags),
    /// What does not matter: it is durable.
    Durable,
}

/// All changes since the last flush, in the order in which they were answered.
#[derive(Debug, Default)]
pub(crate) struct UnflushedWrites {
    entries: VecDeque<Change>,
    /// The number of the first entry.
    first: u64,
    bytes: u64,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pub(crate) changes: usize,
    pub(crate) bytes: u64,
}

impl Change {
    fn bytes(&self) -> u64 {
        ENTRY + if let Content::Bytes(bytes, _) = &self.content { bytes.len() as u64 } else { 0 }
    }

    /// The part from `start` to `end`, which lie inside.
    fn part(&self, start: u64, end: u64) -> Self {
        let content = match &self.content {
            // Less than the length of the bytes.
            Content::Bytes(bytes, from) => {
                Content::Bytes(Arc::clone(bytes), from + (start - self.offset) as usize)
            }
            other => other.clone(),
        };
        Self { offset: start, length: end - start, content }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.offset + other.length && other.offset < self.offset + self.length
    }
}

impl UnflushedWrites {
    pub(crate) fn push(&mut self, change: Change) {
        if self.entries.is_empty() && matches!(change.content, Content::Durable) {
            return;
        }
        self.bytes += change.bytes();
        self.entries.push_back(change);
    }

    /// What a flush that is sent now covers, for [`release`](Self::release).
    pub(crate) fn mark(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Forgets what a flush has covered; returns the memory of it.
    pub(crate) fn release(&mut self, mark: u64) -> impl Iterator<Item = Arc<CopiedBytes>> + use<> {
        let covered = mark.saturating_sub(self.first).min(self.entries.len() as u64);
        self.first += covered;
        let covered: Vec<Change> = self.entries.drain(..covered as usize).collect();
        self.bytes -= covered.iter().map(Change::bytes).sum::<u64>();
        covered.into_iter().filter_map(|change| match change.content {
            Content::Bytes(bytes, _) => Some(bytes),
            Content::Zeroes(_) | Content::Durable => None,
        })
    }

    /// Bytes of memory that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn amount(&self) -> Amount {
        Amount { changes: self.len(), bytes: self.bytes }
    }

    /// What may be lost, to be sent again in this order.
    pub(crate) fn snapshot(&self) -> Vec<Change> {
        let mut durable = Ranges::default();
        let mut changes = Vec::new();
        for change in self.entries.iter().rev() {
            let (start, end) = (change.offset, change.offset + change.length);
            if let Content::Durable = change.content {
                durable.add(start, end);
            } else {
                let parts = durable.missing(start, end);
                changes.extend(parts.into_iter().map(|(start, end)| change.part(start, end)));
            }
        }
        changes.reverse();
        changes
    }

    pub(crate) fn clear(&mut self) {
        drop(self.release(self.mark()));
    }
}

/// Ranges of bytes: ends by starts, none over another.
#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn add(&mut self, mut start: u64, mut end: u64) {
        while let Some((&other, &stop)) = self.0.range(..=end).next_back()
            && stop >= start
        {
            self.0.remove(&other);
            (start, end) = (start.min(other), end.max(stop));
        }
        self.0.insert(start, end);
    }

    /// What of a range is in none of them.
    fn missing(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut missing = Vec::new();
        let mut at = start;
        let before = self.0.range(..=start).next_back();
        for (&other, &stop) in before.into_iter().chain(self.0.range(start + 1..end)) {
            if other > at {
                missing.push((at, other));
            }
            at = at.max(stop);
        }
        if at < end {
            missing.push((at, end));
        }
        missing
    }
}

/// The longest beginning of `changes` that may be under way at the same time: at most `most`, none
/// over another.
pub(crate) fn together(changes: &[Change], most: usize) -> usize {
    let most = most.min(changes.len());
    let fits = |&count: &usize| {
        let (before, next) = (&changes[..count], &changes[count]);
        !before.iter().any(|change| change.overlaps(next))
    };
    (1..most).take_while(fits).last().map_or(most.min(1), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(offset: u64, length: usize) -> Change {
        let bytes: Vec<u8> = (0..length).map(|place| place as u8).collect();
        let content = Content::Bytes(Arc::new(bytes.into()), 0);
        Change { offset, length: length as u64, content }
    }

    #[test]
    fn a_flush_releases_what_was_there_when_it_was_sent() {
        let mut kept = UnflushedWrites::default();
        kept.push(bytes(0, 512));
        kept.push(bytes(512, 512));
        let mark = kept.mark();
        kept.push(bytes(1024, 512));
        drop(kept.release(mark));
        assert_eq!((kept.len(), kept.bytes(), kept.snapshot()[0].offset), (1, 512 + ENTRY, 1024));
        drop(kept.release(mark));
        assert_eq!(kept.len(), 1, "a flush releases nothing twice");
        kept.clear();
        assert_eq!((kept.len(), kept.bytes()), (0, 0));
    }

    #[test]
    fn what_is_durable_is_not_undone() {
        let mut kept = UnflushedWrites::default();
        let durable = |offset, length| Change { offset, length, content: Content::Durable };
        kept.push(durable(0, 4096));
        assert_eq!(kept.len(), 0, "nothing before it");
        kept.push(bytes(0, 4096));
        kept.push(durable(512, 512));
        kept.push(durable(2048, 512));
        kept.push(durable(1024, 512));
        kept.push(bytes(512, 256));
        let parts: Vec<_> = kept
            .snapshot()
            .into_iter()
            .map(|change| match change.content {
                Content::Bytes(_, from) => (change.offset, change.length, from),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [(0, 512, 0), (1536, 512, 1536), (2560, 1536, 2560), (512, 256, 0)];
        // Parts of one change come in any order.
        let mut sorted = parts.clone();
        sorted[..3].sort_unstable();
        assert_eq!(sorted, expected);
        assert_eq!(parts[3], expected[3], "the newest comes last");
    }

    #[test]
    fn changes_of_the_same_place_are_sent_one_after_the_other() {
        let changes = [bytes(0, 512), bytes(512, 512), bytes(512, 512), bytes(0, 1024)];
        assert_eq!(together(&changes, 16), 2);
        assert_eq!(together(&changes[2..], 16), 1);
        assert_eq!(together(&changes[3..], 16), 1);
        assert_eq!(together(&changes[..2], 1), 1);
        assert_eq!(together(&[], 16), 0);
    }
}
