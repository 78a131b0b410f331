//! Writes that the server has answered and not flushed: kept, so that they can be sent again.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::protocol::CommandFlags;

/// What an entry without data counts, so that their number is bounded, too.
const ENTRY: u64 = 64;

/// A change that the server may lose.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) content: Content,
}

/// What a change writes.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Bytes(Arc<[u8]>),
    /// With these flags of the command.
    Zeroes(CommandFlags),
}

/// All changes since the last flush, in the order in which they were answered.
#[derive(Debug, Default)]
pub(super) struct Kept {
    entries: VecDeque<Change>,
    /// The number of the first entry.
    first: u64,
    bytes: u64,
}

impl Change {
    fn bytes(&self) -> u64 {
        ENTRY + if let Content::Bytes(bytes) = &self.content { bytes.len() as u64 } else { 0 }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.offset < other.offset + other.length && other.offset < self.offset + self.length
    }
}

impl Kept {
    pub(super) fn push(&mut self, change: Change) {
        self.bytes += change.bytes();
        self.entries.push_back(change);
    }

    /// What a flush that is sent now covers, for [`release`](Self::release).
    pub(super) fn mark(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Forgets what a flush has covered.
    pub(super) fn release(&mut self, mark: u64) {
        while self.first < mark
            && let Some(change) = self.entries.pop_front()
        {
            self.bytes -= change.bytes();
            self.first += 1;
        }
    }

    /// Bytes of memory that are kept.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All of it, to be sent again in this order.
    pub(super) fn snapshot(&self) -> Vec<Change> {
        self.entries.iter().cloned().collect()
    }

    pub(super) fn clear(&mut self) {
        self.release(self.mark());
    }
}

/// The longest beginning of `changes` that may be under way at the same time: at most `most`, none
/// over another.
pub(super) fn together(changes: &[Change], most: usize) -> usize {
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
        let content = Content::Bytes(vec![7; length].into());
        Change { offset, length: length as u64, content }
    }

    #[test]
    fn a_flush_releases_what_was_there_when_it_was_sent() {
        let mut kept = Kept::default();
        kept.push(bytes(0, 512));
        kept.push(bytes(512, 512));
        let mark = kept.mark();
        kept.push(bytes(1024, 512));
        kept.release(mark);
        assert_eq!((kept.len(), kept.bytes(), kept.snapshot()[0].offset), (1, 512 + ENTRY, 1024));
        kept.release(mark);
        assert_eq!(kept.len(), 1, "a flush releases nothing twice");
        kept.clear();
        assert_eq!((kept.len(), kept.bytes()), (0, 0));
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
