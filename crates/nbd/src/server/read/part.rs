//! The data of a read, in parts.

use smallvec::SmallVec;
use undercroft_block::Buffer;

use super::zeroes::{self, Runs};
use crate::server::answer::Data;
use crate::server::pipe::FilledPipe;

/// A part of the data of a read.
pub(crate) enum Part {
    /// With the zeroes that need not be sent.
    Memory(Buffer, Runs),
    /// It has no such zeroes.
    Pipe(FilledPipe),
}

/// All of it, in order; most reads have one part.
pub(crate) type Parts = SmallVec<[Part; 1]>;

impl Part {
    /// Looks for zeroes in `data`.
    pub(crate) fn searched(data: Buffer) -> Self {
        let runs = zeroes::runs(&data);
        Self::Memory(data, runs)
    }

    /// `data` that is sent, whatever it is.
    pub(crate) fn whole(data: Buffer) -> Self {
        let runs = zeroes::all(data.len());
        Self::Memory(data, runs)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(data, _) => data.len(),
            Self::Pipe(pipe) => pipe.len(),
        }
    }

    /// Whether none of it need be sent.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Memory(_, runs) => runs.iter().all(|run| run.is_zero),
            Self::Pipe(_) => false,
        }
    }

    /// What is sent if all of it is.
    pub(crate) fn into_data(self) -> Data {
        match self {
            Self::Memory(data, _) => Data::Memory(data),
            Self::Pipe(pipe) => Data::Pipe(pipe),
        }
    }
}
