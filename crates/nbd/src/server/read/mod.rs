//! Reads: from the page cache to the socket without a copy where that goes, else by memory.

pub(crate) mod long;
pub(crate) mod part;
pub(crate) mod zeroes;

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use undercroft_block::{Bio, BlockError, Buffer, Completion, FileRange, Plug};

use self::part::{Part, Parts};
use super::answer::{Asked, Outbox};
use super::export::Export;
use super::pipe::{FilledPipe, Pipes};
use super::request::aligned_range::AlignedRange;

/// Shorter reads are copied: that takes no longer than the calls for a pipe.
const LEAST_PIPED: u64 = 128 << 10;
/// Longer reads by pipes go in parts.
pub(crate) const MOST_PIPED: u64 = 256 << 10;

/// Whether a read of `range` may go by a pipe.
pub(crate) fn may_be_piped(range: &AlignedRange) -> bool {
    range.is_exact() && range.length() >= LEAST_PIPED
}

/// A read of a client on its way.
pub(crate) struct Read {
    pub(crate) export: Arc<Export>,
    pub(crate) outbox: Arc<Outbox>,
    /// None: it goes by memory.
    pub(crate) pipes: Option<Arc<Pipes>>,
    pub(crate) asked: Asked,
    pub(crate) range: AlignedRange,
    /// Memory to give back when it was answered.
    pub(crate) charge: usize,
}

/// The outcome of a bio of a read.
pub(crate) enum Arrived {
    Part(Part),
    /// Its bytes have to be read into this memory.
    Again(Buffer),
}

impl Read {
    /// Whether it goes in [parts](long).
    pub(crate) fn is_long(&self) -> bool {
        self.pipes.is_some() && self.range.length() > MOST_PIPED
    }

    /// Reads into `buffer`, if bytes have to be in memory.
    pub(crate) fn submit(self, plug: &Plug, buffer: Buffer) {
        let bio = Bio::read(self.range.sector(), buffer);
        let bio = if self.pipes.is_some() { bio.by_place() } else { bio };
        self.outbox.quota.begin();
        plug.submit(self.told(bio));
    }

    /// `bio`, whose end it is told.
    fn told(self, bio: Bio) -> Bio {
        let bio = if self.range.is_short() { bio.unwaiting() } else { bio };
        bio.on_complete(move |completion| self.ended(completion))
    }

    fn ended(self, completion: Completion) {
        let parts = match self.arrived(completion) {
            Ok(Arrived::Part(part)) => Ok(Parts::from_iter([part])),
            Ok(Arrived::Again(buffer)) => {
                let (export, bio) =
                    (Arc::clone(&self.export), Bio::read(self.range.sector(), buffer));
                return submit_again(&export, self.told(bio));
            }
            Err(error) => Err(error),
        };
        self.answer(parts);
    }

    /// What a bio brought.
    pub(crate) fn arrived(&self, mut completion: Completion) -> Result<Arrived, BlockError> {
        let place = completion.place.take();
        let buffer = completion.into_buffer()?;
        let Some(place) = place else {
            let data = self.range.cut(buffer);
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
    pub(crate) fn answer(&self, parts: Result<Parts, BlockError>) {
        let Self { outbox, asked, charge, .. } = self;
        outbox.push(|answers| match parts {
            Ok(parts) => asked.data(answers, parts, *charge),
            Err(error) => asked.failed_by(answers, &error, *charge),
        });
        outbox.quota.end(&outbox.wake);
    }
}

/// Submits `bio` where another has ended.
pub(crate) fn submit_again(export: &Export, bio: Bio) {
    let plug = Plug::new(&export.device);
    plug.submit(bio);
    // The thread may have this plug already, which it has flushed for now.
    plug.flush();
}
