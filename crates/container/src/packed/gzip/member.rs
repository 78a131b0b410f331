//! What is before the deflated data of a member, and behind it.

use crate::disk::invalid;
use std::io::{self, BufRead, Read};

const HAS_SUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const KNOWN: u8 = 0x1f;

/// A reader that knows how far it is.
pub(super) struct Counted<R> {
    pub(super) reader: R,
    pub(super) position: u64,
}

impl<R: BufRead> Counted<R> {
    pub(super) fn array<const LENGTH: usize>(&mut self) -> io::Result<[u8; LENGTH]> {
        let mut bytes = [0; LENGTH];
        self.reader.read_exact(&mut bytes).map_err(cut)?;
        self.position += LENGTH as u64;
        Ok(bytes)
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.reader.consume(count);
        self.position += count as u64;
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.reader.by_ref().take(bytes), &mut io::sink())?;
        self.position += skipped;
        if skipped < bytes { Err(cut(io::ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
    }

    fn skip_text(&mut self) -> io::Result<()> {
        while self.array::<1>()? != [0] {}
        Ok(())
    }

    /// Goes over the header of a member; `false` at the end, before which there may be zeroes.
    pub(super) fn header(&mut self) -> io::Result<bool> {
        loop {
            match self.reader.fill_buf()? {
                [] => return Ok(false),
                [0, ..] if self.position > 0 => self.consume(1),
                _ => break,
            }
        }
        let [mark, second, method, flags, ..] = self.array::<10>()?;
        if [mark, second, method] != [0x1f, 0x8b, 8] || flags & !KNOWN != 0 {
            return Err(invalid(format!("before byte {} is no member of gzip", self.position)));
        }
        if flags & HAS_EXTRA != 0 {
            let length = u16::from_le_bytes(self.array()?);
            self.skip(length.into())?;
        }
        for text in [HAS_NAME, HAS_COMMENT] {
            if flags & text != 0 {
                self.skip_text()?;
            }
        }
        if flags & HAS_SUM != 0 {
            self.skip(2)?;
        }
        Ok(true)
    }
}

fn cut(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => invalid("it ends within a member; is it cut?"),
        _ => error,
    }
}
