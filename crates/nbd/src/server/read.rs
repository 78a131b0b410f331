//! Reads: from the page cache to the socket without a copy where that goes, else by memory.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use undercroft_block::{Bio, BlockError, Buffer, Completion, FileRange, Plug};

use super::cover::Cover;
use super::export::Export;
use super::outbox::Outbox;
use super::part::{Part, Parts};
use super::pipe::{FilledPipe, Pipes};
use super::reply::Asked;
use super::zeroes;

/// Longer reads by pipes go in parts.
pub(super) const MOST_PIPED: u64 = 256 << 10;

/// A read of a client on its way.
pub(super) struct Read {
    pub(super) export: Arc<Export>,
    pub(super) outbox: Arc<Outbox>,
    /// None: it goes by memory.
    pub(super) pipes: Option<Arc<Pipes>>,
    pub(super) asked: Asked,
    pub(super) cover: Cover,
    /// Memory to give back when it was answered.
    pub(super) charge: usize,
}

/// The outcome of a bio of a read.
pub(super) enum Arrived {
    Part(Part),
    /// Its bytes have to be read into this memory.
    Again(Buffer),
}

impl Read {
    /// Whether it goes in [parts](super::long_read).
    pub(super) fn is_long(&self) -> bool {
        self.pipes.is_some() && self.cover.length() > MOST_PIPED
    }

    /// Reads into `buffer`, if bytes have to be in memory.
    pub(super) fn submit(self, plug: &Plug, buffer: Buffer) {
        let bio = Bio::read(self.cover.sector(), buffer);
        let bio = if self.pipes.is_some() { bio.by_place() } else { bio };
        self.outbox.load.begin();
        plug.submit(self.told(bio));
    }

    /// `bio`, whose end it is told.
    fn told(self, bio: Bio) -> Bio {
        let bio = if self.cover.is_short() { bio.unwaiting() } else { bio };
        bio.on_complete(move |completion| self.ended(completion))
    }

    fn ended(self, completion: Completion) {
        let parts = match self.arrived(completion) {
            Ok(Arrived::Part(part)) => Ok(Parts::from_iter([part])),
            Ok(Arrived::Again(buffer)) => {
                let (export, bio) =
                    (Arc::clone(&self.export), Bio::read(self.cover.sector(), buffer));
                return submit_again(&export, self.told(bio));
            }
            Err(error) => Err(error),
        };
        self.answer(parts);
    }

    /// What a bio brought.
    pub(super) fn arrived(&self, mut completion: Completion) -> Result<Arrived, BlockError> {
        let place = completion.place.take();
        let buffer = completion.into_buffer()?;
        let Some(place) = place else {
            let data = self.cover.cut(buffer);
            let has_chunks = self.asked.has_chunks();
            let part = if has_chunks { Part::searched(data) } else { Part::whole(data) };
            return Ok(Arrived::Part(part));
        };
        let piped = self.piped(&place, buffer.len()).map(Part::Pipe);
        Ok(piped.map_or(Arrived::Again(buffer), Arrived::Part))
    }

    /// The `length` bytes at `place` in a pipe, if all of them are to be sent.
    fn piped(&self, place: &FileRange, length: usize) -> Option<FilledPipe> {
        let may_have_zeroes = self.asked.has_chunks()
            && zeroes::samples(length).any(|at| {
                let mut sample = [0; zeroes::SAMPLE];
                let offset = place.offset + at as u64;
                let read = place.file.read_exact_at(&mut sample, offset);
                read.is_err() || sample == [0; zeroes::SAMPLE]
            });
        if may_have_zeroes { None } else { self.pipes.as_ref()?.fill(place, length) }
    }

    /// Answers it, once.
    pub(super) fn answer(&self, parts: Result<Parts, BlockError>) {
        let Self { outbox, asked, charge, .. } = self;
        outbox.push(|answers| match parts {
            Ok(parts) => asked.data(answers, parts, *charge),
            Err(error) => asked.failed_by(answers, &error, *charge),
        });
        outbox.load.end(&outbox.wake);
    }
}

/// Submits `bio` where another has ended.
pub(super) fn submit_again(export: &Export, bio: Bio) {
    let plug = Plug::new(&export.device);
    plug.submit(bio);
    // The thread may have this plug already, which it has flushed for now.
    plug.flush();
}
