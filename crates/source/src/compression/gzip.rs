//! A gzip stream as gzip(1) and GNU tar take it: members one after the other are one stream, and
//! zeros after the last one, with which tapes and some tools fill up a block, mean nothing.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Chain, Read};

/// First bytes of a member (RFC 1952, 2.3.1).
static MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The uncompressed bytes of a gzip stream.
pub(super) struct GzipReader<R> {
    state: State<R>,
}

enum State<R> {
    /// In a member, whose first bytes were taken to see that it is one.
    Member(Box<GzDecoder<Chain<&'static [u8], Counted<R>>>>),
    /// Before a member, or behind the last one.
    Between(Counted<R>),
    Ended,
}

impl<R: BufRead> GzipReader<R> {
    /// Reads the stream that starts at `reader`'s present position.
    pub(super) fn new(reader: R) -> Self {
        Self { state: State::Between(Counted { reader, position: 0 }) }
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            self.state = match std::mem::replace(&mut self.state, State::Ended) {
                State::Member(mut member) => match member.read(buffer) {
                    // The decoder read all of its member and nothing behind it.
                    Ok(0) => State::Between(member.into_inner().into_inner().1),
                    other => {
                        self.state = State::Member(member);
                        return other;
                    }
                },
                State::Between(mut reader) => {
                    if !reader.at_member()? {
                        return Ok(0);
                    }
                    State::Member(Box::new(GzDecoder::new(MAGIC.chain(reader))))
                }
                State::Ended => return Ok(0),
            }
        }
    }
}

/// A reader that knows how far it is.
struct Counted<R> {
    reader: R,
    position: u64,
}

impl<R: BufRead> Counted<R> {
    /// Goes over the first bytes of a member if one starts here, or over zeros to the end of the
    /// stream. Anything else is an error.
    fn at_member(&mut self) -> io::Result<bool> {
        let start = self.position;
        match self.next()? {
            None => Ok(false),
            Some(0) => self.only_zeros().map(|()| false),
            Some(first) if first == MAGIC[0] && self.next()? == Some(MAGIC[1]) => Ok(true),
            Some(_) => Err(foreign(start)),
        }
    }

    fn only_zeros(&mut self) -> io::Result<()> {
        loop {
            let rest = match self.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                rest => rest?,
            };
            if rest.is_empty() {
                return Ok(());
            }
            let (length, zeros) = (rest.len(), rest.iter().take_while(|byte| **byte == 0).count());
            self.consume(zeros);
            if zeros < length {
                return Err(foreign(self.position));
            }
        }
    }

    /// The next byte; `None` at the end.
    fn next(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        match self.read_exact(&mut byte) {
            Ok(()) => Ok(Some(byte[0])),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What says that `position` should be a member, padding or the end.
fn foreign(position: u64) -> io::Error {
    let text = format!(
        "behind the end of the gzip data, at byte {position} of the compressed stream, comes \
         something that is neither gzip data nor padding with zeros"
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.position += count as u64;
        self.reader.consume(count);
    }
}
