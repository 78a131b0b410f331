//! Reads: from the page cache to the socket without a copy where that goes, else by memory.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use undercroft_block::{Bio, Buffer, Completion, FileRange, Plug};

use super::execute::OWN;
use super::export::Export;
use super::outbox::Outbox;
use super::pipe::{FilledPipe, Pipes};
use super::reply::Asked;
use super::unaligned::Cover;
use super::zeroes;

/// Shorter reads are copied: that takes no longer than the calls for a pipe.
const LEAST_PIPED: u64 = 128 << 10;

/// Longer reads go in parts.
pub(super) const MOST_PIPED: u64 = 256 << 10;

/// A read of a client on its way.
pub(super) struct Read {
    pub(super) export: Arc<Export>,
    pub(super) outbox: Arc<Outbox>,
    /// None: it is copied.
    pub(super) pipes: Option<Arc<Pipes>>,
    pub(super) asked: Asked,
    pub(super) cover: Cover,
    /// Memory to give back when it was answered.
    pub(super) charge: usize,
}

impl Read {
    /// Whether it goes in [parts](super::long_read).
    pub(super) fn is_long(&self) -> bool {
        self.may_pipe() && self.cover.length() > MOST_PIPED
    }

    fn may_pipe(&self) -> bool {
        self.pipes.is_some() && self.cover.is_exact() && self.cover.length() >= LEAST_PIPED
    }

    /// Reads into `buffer`, if bytes have to be in memory.
    pub(super) fn submit(self, plug: &Plug, buffer: Buffer) {
        let bio = Bio::read(self.cover.sector(), buffer);
        let bio = if self.may_pipe() { bio.by_place() } else { bio };
        let bio = if self.cover.length() <= OWN { bio.unwaiting() } else { bio };
        self.outbox.load.begin();
        plug.submit(bio.on_complete(move |completion| self.ended(completion)));
    }

    fn ended(self, mut completion: Completion) {
        let outbox = Arc::clone(&self.outbox);
        let place = completion.place.take();
        match (completion.into_buffer(), place) {
            (Ok(buffer), Some(place)) => match self.piped(&place, buffer.len()) {
                Some(pipe) => outbox.push(|answers| self.asked.piped(answers, pipe, self.charge)),
                None => self.copy(buffer),
            },
            (Ok(data), None) => self.answer(data),
            (Err(error), _) => {
                outbox.push(|answers| self.asked.failed_by(answers, &error, self.charge));
            }
        }
        outbox.load.end(&outbox.wake);
    }

    /// The `length` bytes at `place` in a pipe, if all of them are to be sent.
    pub(super) fn piped(&self, place: &FileRange, length: usize) -> Option<FilledPipe> {
        let may_have_zeroes = self.asked.has_chunks()
            && zeroes::samples(length).any(|at| {
                let mut sample = [0; zeroes::SAMPLE];
                let offset = place.offset + at as u64;
                let read = place.file.read_exact_at(&mut sample, offset);
                read.is_err() || sample == [0; zeroes::SAMPLE]
            });
        if may_have_zeroes { None } else { self.pipes.as_ref()?.fill(place, length) }
    }

    /// Begins again, by memory.
    fn copy(mut self, buffer: Buffer) {
        self.pipes = None;
        let plug = Plug::new(&self.export.device);
        self.submit(&plug, buffer);
        // The thread may have this plug already, which it has flushed for now.
        plug.flush();
    }

    fn answer(self, data: Buffer) {
        let data = self.cover.cut(data);
        let runs = zeroes::runs(&data);
        self.outbox.push(|answers| self.asked.data(answers, data, &runs, self.charge));
    }
}
