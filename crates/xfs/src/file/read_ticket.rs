//! Reads that a task waits for.

use super::OpenFile;
use super::kind::check_kind;
use super::read::plan;
use super::stored_parts::Part;
use crate::error::Error;
use crate::volume::Volume;
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use undercroft_block::{Bio, Buffer, CompletionFuture, Plug, Sector};

/// A read that is under way: a future of its bytes. One that is dropped ends by itself.
///
/// The bytes are those that the file had when the read began.
#[derive(Debug)]
#[must_use = "a future gives nothing before it is awaited"]
pub struct ReadTicket {
    bytes: Vec<u8>,
    /// Not copied to their places yet.
    parts: VecDeque<PartOnItsWay>,
    /// The volume, if it does not change.
    still: Option<Arc<Volume>>,
}

#[derive(Debug)]
struct PartOnItsWay {
    completion: CompletionFuture,
    sector: Sector,
    /// It shares no request with the reads of others.
    is_alone: bool,
    /// Bytes of the buffer that are not wanted.
    skipped: usize,
    range: Range<usize>,
}

impl OpenFile {
    /// Begins to read up to `len` bytes from `offset` on, as [`read`](Self::read) does, and returns
    /// when all of it is under way. So one thread has as many reads of many files in flight as it
    /// likes.
    ///
    /// It waits for no data, but for a step of another thread that takes blocks away from the file,
    /// and at the first use of a file of very many extents for their list. On a volume open for
    /// reading the bios stay in the caller's [`Plug`], if there is one, where neighbours become one
    /// request.
    ///
    /// # Errors
    /// It is no regular file; the mapping is damaged. The ticket tells errors of the device.
    pub fn begin_read(&self, offset: u64, len: usize) -> Result<ReadTicket, Error> {
        let left = {
            let state = self.inode.read();
            check_kind(&self.volume, &state)?;
            state.core.size.saturating_sub(offset)
        };
        let mut bytes = vec![0; len.min(usize::try_from(left).unwrap_or(usize::MAX))];
        let (mut parts, mut done) = (VecDeque::new(), 0);
        let plug = Plug::new(self.volume.cache().device());
        // While the blocks are the file's. Who has them later writes later: requests that overlap
        // keep the order in which they were submitted.
        let _in_use = self.locks.use_blocks();
        while done < bytes.len() {
            let at = offset.saturating_add(done as u64);
            let (planned, found) = plan(&self.volume, &self.inode, at, &mut bytes[done..])?;
            for part in found {
                parts.push_back(self.submit(&plug, part, done));
            }
            if planned == 0 {
                // The file has become shorter.
                break;
            }
            done += planned;
        }
        bytes.truncate(done);
        let still = self.volume.is_read_only().then(|| Arc::clone(&self.volume));
        if still.is_none() {
            plug.flush();
        }
        Ok(ReadTicket { bytes, parts, still })
    }

    /// Submits the read of a part, whose range counts from the byte `done` on.
    fn submit(&self, plug: &Plug, part: Part, done: usize) -> PartOnItsWay {
        let Part { sector, skipped, range } = part;
        let range = done + range.start..done + range.end;
        let completion = submit(&self.volume, plug, sector, skipped + range.len());
        PartOnItsWay { completion, sector, is_alone: false, skipped, range }
    }
}

/// Submits the read of `len` bytes and what follows of the last sector.
fn submit(volume: &Volume, plug: &Plug, sector: Sector, len: usize) -> CompletionFuture {
    let unit = volume.geometry().sector_size();
    let (bio, completion) = Bio::read(sector, Buffer::zeroed(len.next_multiple_of(unit))).future();
    plug.submit(bio);
    completion
}

impl PartOnItsWay {
    /// Reads it again by itself: its error may be that of a neighbour in one request.
    fn submit_alone(&mut self, volume: &Volume) {
        let plug = Plug::new(volume.cache().device());
        self.completion = submit(volume, &plug, self.sector, self.skipped + self.range.len());
        self.is_alone = true;
        plug.flush();
    }
}

impl Future for ReadTicket {
    type Output = Result<Vec<u8>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ReadTicket { bytes, parts, still } = &mut *self;
        while let Some(part) = parts.front_mut() {
            let completion = ready!(Pin::new(&mut part.completion).poll(context));
            let buffer = match (completion.into_buffer(), &still) {
                (Err(_), Some(volume)) if !part.is_alone => {
                    part.submit_alone(volume);
                    continue;
                }
                (buffer, _) => buffer?,
            };
            let from = part.skipped..part.skipped + part.range.len();
            bytes[part.range.clone()].copy_from_slice(&buffer[from]);
            parts.pop_front();
        }
        Poll::Ready(Ok(std::mem::take(bytes)))
    }
}
