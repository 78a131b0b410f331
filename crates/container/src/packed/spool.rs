//! What was decompressed, in a file without a name.

use super::cache;
use super::{Codec, Segment};
use crate::disk::invalid;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use undercroft_block::is_zero;

/// Bytes that become a hole where they are all zeroes.
const PIECE: usize = 64 << 10;
/// Decoders that are kept in the middle of a segment.
const DECODERS: usize = 2;

/// The bytes of a disk, as far as they were needed.
pub(super) struct Spool {
    file: File,
    /// How many bytes of each segment are there; `None` if all of the disk is.
    there: Option<Vec<u64>>,
    decoders: Vec<Decoder>,
}

struct Decoder {
    segment: usize,
    /// Bytes of the segment that came from it.
    done: u64,
    reader: Box<dyn Read + Send>,
}

impl Spool {
    /// For a disk of so many bytes in so many segments.
    pub(super) fn new(bytes: u64, segments: usize) -> io::Result<Self> {
        let file = cache::temporary_file()?;
        file.set_len(bytes)?;
        Ok(Self { file, there: Some(vec![0; segments]), decoders: Vec::new() })
    }

    /// For all bytes of a disk, which are put one behind the other.
    pub(super) fn whole() -> io::Result<Self> {
        Ok(Self { file: cache::temporary_file()?, there: None, decoders: Vec::new() })
    }

    /// Puts bytes at a place.
    pub(super) fn put(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        for (at, piece) in (at..).step_by(PIECE).zip(bytes.chunks(PIECE)) {
            if !is_zero(piece) {
                self.file.write_all_at(piece, at)?;
            }
        }
        Ok(())
    }

    /// Has it end at a place, with zeroes before that.
    pub(super) fn finish(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    pub(super) fn read(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(memory, at)
    }

    /// Has the first `wanted` bytes of a segment.
    pub(super) fn fill(
        &mut self,
        number: usize,
        segment: Segment,
        wanted: u64,
        codec: &dyn Codec,
    ) -> io::Result<()> {
        let Some(there) = self.there.as_ref().map(|all| all[number]) else { return Ok(()) };
        if there >= wanted {
            return Ok(());
        }
        let kept = self.decoders.iter().position(|decoder| decoder.segment == number);
        let mut decoder = match kept {
            Some(index) => self.decoders.remove(index),
            None => Decoder { segment: number, done: 0, reader: codec.decoder(number, segment)? },
        };
        let mut piece = vec![0; PIECE];
        while decoder.done < wanted {
            let length = (wanted - decoder.done).min(PIECE as u64) as usize;
            decoder.reader.read_exact(&mut piece[..length]).map_err(early)?;
            self.put(segment.start + decoder.done, &piece[..length])?;
            decoder.done += length as u64;
        }
        if let Some(there) = &mut self.there {
            there[number] = decoder.done;
        }
        self.decoders.insert(0, decoder);
        self.decoders.truncate(DECODERS);
        Ok(())
    }
}

fn early(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            invalid("the compressed data ends before its index says so; is it cut?")
        }
        _ => error,
    }
}
