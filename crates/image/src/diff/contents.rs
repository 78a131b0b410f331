//! Contents of two files compared as they are read.

use super::digest::{ContentDigest, Digest};
use undercroft_source::{Data, Source, SourceError};

/// Zeros to compare with, a piece at a time.
const ZEROS: [u8; 4096] = [0; 4096];

/// The contents of the entry that a source delivered last.
pub(super) struct Contents<'s> {
    source: &'s mut dyn Source,
    /// The piece that is at hand.
    piece: Option<Data>,
    has_ended: bool,
    digest: Option<ContentDigest>,
    /// Bytes of data so far.
    bytes: u64,
}

impl<'s> Contents<'s> {
    /// The contents, with their digest if it is wanted.
    pub(super) fn new(source: &'s mut dyn Source, digest: bool) -> Self {
        let digest = digest.then(ContentDigest::new);
        Self { source, piece: None, has_ended: false, digest, bytes: 0 }
    }

    fn fetch(&mut self) -> Result<(), SourceError> {
        self.piece = self.source.next_data()?;
        self.has_ended = self.piece.is_none();
        if let Some(Data { offset, chunk }) = &self.piece {
            self.bytes += chunk.len() as u64;
            if let Some(digest) = &mut self.digest {
                digest.update(*offset, chunk.as_slice());
            }
        }
        Ok(())
    }

    /// The bytes at `at`, as many as are at hand; or none, and the length of the hole there.
    fn run(&mut self, at: u64) -> Result<(Option<&[u8]>, u64), SourceError> {
        let is_behind = |piece: &Data| piece.offset + piece.chunk.len() as u64 <= at;
        while !self.has_ended && self.piece.as_ref().is_none_or(is_behind) {
            self.fetch()?;
        }
        Ok(match &self.piece {
            None => (None, u64::MAX),
            Some(piece) if piece.offset > at => (None, piece.offset - at),
            Some(piece) => {
                // It ends behind `at`.
                let bytes = &piece.chunk.as_slice()[(at - piece.offset) as usize..];
                (Some(bytes), bytes.len() as u64)
            }
        })
    }

    /// The digest, if it was wanted, and the number of bytes of data that were read.
    pub(super) fn finish(mut self) -> Result<(Option<Digest>, u64), SourceError> {
        while self.digest.is_some() && !self.has_ended {
            self.fetch()?;
        }
        Ok((self.digest.map(ContentDigest::finish), self.bytes))
    }
}

/// Which of two contents could not be read.
pub(super) enum Fault {
    Left(SourceError),
    Right(SourceError),
}

/// The first byte that differs in contents of these sizes.
pub(super) fn first_difference(
    (left, left_size): (&mut Contents<'_>, u64),
    (right, right_size): (&mut Contents<'_>, u64),
) -> Result<Option<u64>, Fault> {
    let end = left_size.min(right_size);
    let mut at = 0;
    while at < end {
        let (one, one_length) = left.run(at).map_err(Fault::Left)?;
        let (other, other_length) = right.run(at).map_err(Fault::Right)?;
        let length = one_length.min(other_length).min(end - at);
        // Bytes at hand are in memory.
        let part = |bytes: &[u8]| bytes.len().min(length as usize);
        let found = match (one, other) {
            (None, None) => None,
            (Some(bytes), None) | (None, Some(bytes)) => nonzero(&bytes[..part(bytes)]),
            (Some(one), Some(other)) => unequal(&one[..part(one)], &other[..part(other)]),
        };
        if let Some(place) = found {
            return Ok(Some(at + place as u64));
        }
        at += length;
    }
    Ok((left_size != right_size).then_some(end))
}

/// The first byte that is not zero.
fn nonzero(bytes: &[u8]) -> Option<usize> {
    let is_zero = |piece: &[u8]| *piece == ZEROS[..piece.len()];
    let (number, piece) =
        bytes.chunks(ZEROS.len()).enumerate().find(|(_, piece)| !is_zero(piece))?;
    let place = piece.iter().position(|byte| *byte != 0)?;
    Some(number * ZEROS.len() + place)
}

/// The first place where equally long pieces differ.
fn unequal(one: &[u8], other: &[u8]) -> Option<usize> {
    if one == other {
        return None;
    }
    one.iter().zip(other).position(|(one, other)| one != other)
}
