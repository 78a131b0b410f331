//! A queue of answers as they go to a socket: heads one behind the other in memory that is used
//! again, and data that is not copied.

use std::collections::VecDeque;
use std::io::IoSlice;

use smallvec::SmallVec;
use undercroft_block::Buffer;

use crate::server::pipe::FilledPipe;

/// Answers in one call, each of up to two pieces.
const BATCH: usize = 64;
/// Heads that were sent are moved out of the way when there are so many bytes of them.
const MOST_SENT: usize = 64 << 10;

/// Pieces for one call.
pub(crate) type Pieces<'a> = SmallVec<[IoSlice<'a>; 2 * BATCH]>;

/// The next bytes to be sent.
#[derive(Clone, Copy)]
pub(crate) enum Outgoing<'a> {
    Memory {
        pieces: &'a [IoSlice<'a>],
        /// Whether bytes of a pipe follow.
        more: bool,
    },
    Pipe(&'a FilledPipe),
}

/// The data of an answer.
pub(crate) enum Data {
    Memory(Buffer),
    Pipe(FilledPipe),
}

impl Data {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(buffer) => buffer.len(),
            Self::Pipe(pipe) => pipe.len(),
        }
    }
}

/// Answers in the order in which they are sent.
#[derive(Default)]
pub(crate) struct Answers {
    heads: Vec<u8>,
    /// Where in `heads` the first answer begins.
    start: usize,
    /// Bytes of the first answer that were sent.
    sent: usize,
    entries: VecDeque<Entry>,
}

/// One answer.
struct Entry {
    /// The length of its head.
    head: usize,
    data: Option<Data>,
    /// Memory to give back when it was sent.
    charge: usize,
}

impl Answers {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of data that are not sent, and those of the first answer that are.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.data.as_ref().map_or(0, Data::len)).sum()
    }

    /// Adds an answer whose head is what `encode` appends.
    pub(crate) fn push(
        &mut self,
        data: Option<Data>,
        charge: usize,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        let before = self.heads.len();
        encode(&mut self.heads);
        self.entries.push_back(Entry { head: self.heads.len() - before, data, charge });
    }

    /// Takes over all of `others`, of which nothing was sent.
    pub(crate) fn append(&mut self, others: &mut Self) {
        if self.is_empty() {
            return std::mem::swap(self, others);
        }
        self.heads.append(&mut others.heads);
        self.entries.append(&mut others.entries);
    }

    /// The pipe whose bytes are to be sent next, if they are in one.
    pub(crate) fn pipe(&self) -> Option<&FilledPipe> {
        match self.entries.front() {
            Some(Entry { head, data: Some(Data::Pipe(pipe)), .. }) if self.sent >= *head => {
                Some(pipe)
            }
            _ => None,
        }
    }

    /// What is to be sent next of memory, and whether bytes of a pipe follow. Heads without data between
    /// them are one piece.
    pub(crate) fn pieces(&self) -> (Pieces<'_>, bool) {
        let (mut pieces, mut more) = (Pieces::new(), false);
        let mut skip = self.sent;
        let (mut from, mut end) = (self.start, self.start);
        for entry in self.entries.iter().take(BATCH) {
            end += entry.head;
            let gone = skip.min(entry.head);
            from += gone;
            skip -= gone;
            match &entry.data {
                None => {}
                Some(Data::Memory(data)) => {
                    if from < end {
                        pieces.push(IoSlice::new(&self.heads[from..end]));
                    }
                    from = end;
                    pieces.push(IoSlice::new(&data[skip.min(data.len())..]));
                    skip = 0;
                }
                Some(Data::Pipe(_)) => {
                    more = true;
                    break;
                }
            }
        }
        if from < end {
            pieces.push(IoSlice::new(&self.heads[from..end]));
        }
        (pieces, more)
    }

    /// Takes away `count` bytes that were sent; returns the memory of answers that are out.
    pub(crate) fn consume(&mut self, count: usize) -> usize {
        self.sent += count;
        let mut given = 0;
        while let Some(first) = self.entries.front() {
            let length = first.head + first.data.as_ref().map_or(0, Data::len);
            if self.sent < length {
                break;
            }
            self.sent -= length;
            self.start += first.head;
            given += first.charge;
            self.entries.pop_front();
        }
        if self.is_empty() {
            self.heads.clear();
            self.start = 0;
        } else if self.start > MOST_SENT {
            self.heads.drain(..self.start);
            self.start = 0;
        }
        given
    }

    /// Drops all; returns their memory.
    pub(crate) fn clear(&mut self) -> usize {
        self.heads.clear();
        (self.start, self.sent) = (0, 0);
        self.entries.drain(..).map(|entry| entry.charge).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers without data, with some, without, and what they are on the wire.
    fn sample() -> (Answers, Vec<u8>) {
        let mut answers = Answers::default();
        let mut wire = Vec::new();
        for number in 0..3 * BATCH as u32 {
            let head = number.to_be_bytes();
            let data = (number % 3 == 1).then(|| Buffer::copy_of(&[number as u8; 100]));
            wire.extend_from_slice(&head);
            wire.extend_from_slice(data.as_deref().unwrap_or_default());
            answers.push(data.map(Data::Memory), 1, |heads| heads.extend_from_slice(&head));
        }
        (answers, wire)
    }

    fn joined(answers: &Answers) -> Vec<u8> {
        answers.pieces().0.iter().flat_map(|piece| piece.iter().copied()).collect()
    }

    #[test]
    fn cuts_anywhere_lose_and_repeat_nothing() {
        for cut in [1, 3, 4, 7, 104, 1000, 1 << 20] {
            let (mut answers, wire) = sample();
            let (mut found, mut given) = (Vec::new(), 0);
            while !answers.is_empty() {
                let bytes = joined(&answers);
                let sent = bytes.len().min(cut);
                found.extend_from_slice(&bytes[..sent]);
                given += answers.consume(sent);
            }
            assert!(found == wire, "cut at {cut}");
            assert_eq!(given, 3 * BATCH, "cut at {cut}");
        }
    }

    #[test]
    fn heads_without_data_are_one_piece() {
        let mut answers = Answers::default();
        for _ in 0..10 {
            answers.push(None, 0, |heads| heads.extend_from_slice(&[7; 16]));
        }
        assert_eq!(answers.pieces().0.len(), 1);
    }

    #[test]
    fn what_is_appended_comes_behind_what_was_sent_in_part() {
        let (mut answers, mut wire) = sample();
        answers.consume(57);
        let (mut others, more) = sample();
        answers.append(&mut others);
        assert!(others.is_empty());
        wire.extend_from_slice(&more);
        let mut found = Vec::new();
        while !answers.is_empty() {
            let bytes = joined(&answers);
            found.extend_from_slice(&bytes);
            answers.consume(bytes.len());
        }
        assert!(found == wire[57..]);
    }

    #[test]
    fn a_queue_that_is_never_empty_keeps_its_memory_small() {
        let mut answers = Answers::default();
        answers.push(None, 0, |heads| heads.extend_from_slice(&[1; 16]));
        for _ in 0..100_000 {
            answers.push(None, 0, |heads| heads.extend_from_slice(&[1; 16]));
            answers.consume(16);
        }
        assert!(answers.heads.len() < 2 * MOST_SENT);
    }
}
