//! Where the bytes of an archive come from, in shared chunks.

use super::header_walk::{HeaderWalk, READ_SIZE};
use crate::Chunk;
use crate::pool::{BUFFER_SIZE, BufferPool};
use crate::region::Region;
use std::io::{self, Read};
use std::sync::Arc;

/// A stream of bytes in chunks.
pub(super) trait Input: Send {
    /// The next bytes, at least one, or `None` at the end.
    fn next_chunk(&mut self) -> io::Result<Option<Chunk>>;

    /// Leaves out up to `length` bytes that need not be read; how many it left out, which may be none.
    fn skip(&mut self, length: u64) -> io::Result<u64>;
}

/// Reads a stream into large chunks when they are asked for.
pub(super) struct Stream<R> {
    reader: R,
    /// A fault after bytes that are delivered first, so that it is told at the right offset.
    fault: Option<io::Error>,
    pool: Arc<BufferPool>,
}

impl<R: Read + Send> Stream<R> {
    pub(super) fn new(reader: R, pool: Arc<BufferPool>) -> Self {
        Self { reader, fault: None, pool }
    }
}

impl<R: Read + Send> Input for Stream<R> {
    fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let Self { reader, fault, pool } = self;
        let (shared, filled) = pool.filled(|buffer| {
            let mut filled = 0;
            while filled < BUFFER_SIZE {
                match reader.read(&mut buffer[filled..BUFFER_SIZE]) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if filled == 0 => return Err(error),
                    Err(error) => {
                        *fault = Some(error);
                        break;
                    }
                }
            }
            Ok(filled)
        })?;
        if filled == 0 {
            return Ok(None);
        }
        Ok(Some(Chunk::new(shared, 0..filled)))
    }

    fn skip(&mut self, _length: u64) -> io::Result<u64> {
        Ok(0)
    }
}

/// An uncompressed archive in a file of which little but the headers is read.
pub(super) struct Headers {
    region: Region,
    position: u64,
    /// What was read ahead, as far as that is of use.
    walk: Option<HeaderWalk>,
}

impl Headers {
    pub(super) fn new(region: Region) -> Self {
        let walk = HeaderWalk::start(region.clone());
        Self { region, position: 0, walk }
    }
}

impl Input for Headers {
    fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        let chunk = match self.walk.as_mut().and_then(|walk| walk.at(self.position)) {
            Some(chunk) => chunk,
            None => {
                let mut buffer = vec![0; READ_SIZE];
                let count = self.region.read_at(&mut buffer, self.position)?;
                Chunk::new(Arc::new(buffer), 0..count)
            }
        };
        self.position += chunk.len() as u64;
        Ok((!chunk.is_empty()).then_some(chunk))
    }

    fn skip(&mut self, length: u64) -> io::Result<u64> {
        let skipped = length.min(self.region.length().saturating_sub(self.position));
        self.position += skipped;
        Ok(skipped)
    }
}
