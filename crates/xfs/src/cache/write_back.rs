//! Write-back of dirty buffers: verified, stamped, sorted, in large writes.

use super::verify::{stamp, verify_content};
use super::{BufferRef, Cache, Content};
use crate::error::Error;
use crate::log::InPlace;
use parking_lot::RwLockWriteGuard;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use undercroft_block::{Batch, Bio, Buffer, BufferPool, Plug, Sector, Segment};

/// Memory for copies of buffers on their way to the device.
pub(super) const POOL_BYTES: usize = 16 << 20;

/// Copies are collected in pieces of memory of this size.
const IMAGE_BYTES: usize = 256 << 10;

/// Which dirty buffers to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those not used since the last time.
    Cold,
    /// All.
    All,
}

/// Copies of buffers, and where each contiguous run of them goes.
#[derive(Default)]
struct Image {
    bytes: Option<Buffer>,
    filled: usize,
    runs: Vec<(Sector, Range<usize>)>,
}

impl Image {
    /// Room for `len` more bytes; the caller made sure that there is.
    fn append(&mut self, pool: &BufferPool, source: &[u8]) -> &mut [u8] {
        let size = IMAGE_BYTES.max(source.len());
        let image = self.bytes.get_or_insert_with(|| pool.get(size));
        let place = &mut image[self.filled..self.filled + source.len()];
        place.copy_from_slice(source);
        self.filled += source.len();
        place
    }

    /// Says that the next `sectors` of the image, so far without a place, belong at `sector`.
    fn place(&mut self, sector: Sector, range: Range<usize>) {
        if let Some((first, run)) = self.runs.last_mut()
            && first.0 + (run.len() / 512) as u64 == sector.0
            && run.end == range.start
        {
            run.end = range.end;
            return;
        }
        self.runs.push((sector, range));
    }

    /// Sends everything collected so far.
    fn submit(&mut self, plug: &Plug, writes: &Batch) {
        self.filled = 0;
        let Some(bytes) = self.bytes.take() else {
            return;
        };
        let bytes = Arc::new(bytes);
        for (sector, run) in self.runs.drain(..) {
            plug.submit(Bio::write(sector, Segment::new(&bytes, run)).in_batch(writes));
        }
    }
}

impl Cache {
    /// Writes dirty buffers. They are copied first, so that they can be changed again at once.
    ///
    /// # Errors
    /// A buffer is not sound (a defect of the engine: it is not written), or an earlier
    /// write-back failed.
    pub(crate) fn write_back(&self, which: Which) -> Result<(), Error> {
        let mut due = std::mem::take(&mut *self.dirty.lock());
        due.sort_unstable_by_key(|buffer| buffer.sector());
        let plug = Plug::new(&self.device);
        let mut image = Image::default();
        let mut kept = Vec::new();
        for buffer in due {
            if image.filled + buffer.address().len() > IMAGE_BYTES {
                image.submit(&plug, &self.writes);
            }
            if !self.copy_due(&buffer, which, &mut image)? {
                kept.push(buffer);
            }
        }
        image.submit(&plug, &self.writes);
        self.dirty.lock().append(&mut kept);
        drop(plug);
        Ok(self.writes.check()?)
    }

    /// Copies a buffer into the image, stamped; `false` if it stays dirty.
    fn copy_due(&self, buffer: &BufferRef, which: Which, image: &mut Image) -> Result<bool, Error> {
        let content = buffer.content();
        if !content.dirty {
            // It was forgotten after it became dirty.
            return Ok(true);
        }
        if content.joined || (which == Which::Cold && buffer.take_referenced()) {
            return Ok(false);
        }
        self.copy(buffer, content, image)?;
        Ok(true)
    }

    /// Copies a dirty buffer into the image, stamped. It is clean then.
    fn copy(
        &self,
        buffer: &BufferRef,
        mut content: RwLockWriteGuard<'_, Content>,
        image: &mut Image,
    ) -> Result<(), Error> {
        let (kind, lsn) = (content.kind, content.log.lsn);
        let mut start = image.filled;
        let copy = image.append(&self.pool, &content.bytes);
        content.dirty = false;
        self.dirty_bytes.fetch_sub(copy.len(), Ordering::Relaxed);
        drop(content);
        stamp(kind, copy, lsn, &self.geometry);
        verify_content(kind, copy, &self.geometry).map_err(|what| Error::Block {
            structure: kind.name(),
            sector: buffer.sector(),
            what,
        })?;
        for (sector, sectors) in buffer.address().parts() {
            let end = start + *sectors as usize * 512;
            image.place(*sector, start..end);
            start = end;
        }
        Ok(())
    }

    /// Writes buffers whose changes are in the journal to their places, as far as all of them are
    /// durable there: those of checkpoints up to `durable`. Returns what was written. They stay in
    /// the books of the journal until `writes` are done and flushed.
    ///
    /// # Errors
    /// A buffer is not sound: a defect of the engine.
    pub(crate) fn write_in_place(
        &self,
        mut due: Vec<BufferRef>,
        durable: u64,
        writes: &Batch,
    ) -> Result<Vec<InPlace>, Error> {
        due.sort_unstable_by_key(|buffer| buffer.sector());
        let plug = Plug::new(&self.device);
        let mut image = Image::default();
        let mut written = Vec::with_capacity(due.len());
        for buffer in due {
            if image.filled + buffer.address().len() > IMAGE_BYTES {
                image.submit(&plug, writes);
            }
            let mut content = buffer.content();
            if !content.can_go_in_place(durable) {
                continue;
            }
            let tail = content.log.tail;
            let changes = std::mem::take(&mut content.changes);
            content.log.in_flight.merge(&changes);
            content.log.writing = true;
            self.copy(&buffer, content, &mut image)?;
            written.push(InPlace { buffer, tail });
        }
        image.submit(&plug, writes);
        Ok(written)
    }

    /// Writes buffers that do not go through the journal.
    ///
    /// # Errors
    /// A buffer is not sound: a defect of the engine.
    pub(crate) fn write_directly(&self, due: &[BufferRef], writes: &Batch) -> Result<(), Error> {
        let plug = Plug::new(&self.device);
        let mut image = Image::default();
        for buffer in due {
            if image.filled + buffer.address().len() > IMAGE_BYTES {
                image.submit(&plug, writes);
            }
            let content = buffer.content();
            if content.dirty && !content.log.freed {
                self.copy(buffer, content, &mut image)?;
            }
        }
        image.submit(&plug, writes);
        Ok(())
    }

    /// Writes everything that is dirty and waits for it.
    ///
    /// # Errors
    /// As [`write_back`](Self::write_back).
    pub(crate) fn write_back_all(&self) -> Result<(), Error> {
        self.write_back(Which::All)?;
        Ok(self.writes.wait()?)
    }
}
