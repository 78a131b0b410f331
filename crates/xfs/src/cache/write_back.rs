//! Write-back of dirty buffers: verified, stamped, sorted, in large writes.

use super::buffer::{BufferRef, Content};
use super::table::Cache;
use super::verify::{stamp, verify_content};
use super::written_buffer::WrittenBuffer;
use crate::error::Error;
use parking_lot::RwLockWriteGuard;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use undercroft_block::{Batch, Bio, Buffer, BufferPool, Plug, Sector, Segment, flush_plugs};

/// Buffers that lie together go in bios of at most this many bytes, or one buffer: each goes to a file
/// in one call, and longer ones gain nothing (`drivers/file/transfer` of the block layer).
const BIO_BYTES: usize = 32 << 10;

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
            && run.len() + range.len() <= BIO_BYTES
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
            // A buffer of which a part is new and a part old would have a wrong checksum.
            plug.submit(Bio::write(sector, Segment::new(&bytes, run)).untorn().in_batch(writes));
        }
    }
}

impl Cache {
    /// Keeps memory within its bounds.
    ///
    /// # Errors
    /// An earlier write-back failed.
    pub(crate) fn balance(&self) -> Result<(), Error> {
        if self.has_much_dirty() {
            self.write_back(Which::Cold)?;
        }
        self.shrink();
        Ok(())
    }

    /// Writes dirty buffers. They are copied first, so that they can be changed again at once.
    /// Devices keep overlapping requests in the order of submission, but two threads could submit
    /// their copies in another order than they took them, and a buffer could be dropped, and read
    /// again, before its copy is submitted. So one thread writes back at a time. Buffers that it
    /// wrote stay in memory until the write has ended, and cold buffers wait for those before them
    /// only when there is too much.
    ///
    /// # Errors
    /// A buffer is not sound (a defect of the engine: it is not written), or an earlier
    /// write-back failed.
    pub(crate) fn write_back(&self, which: Which) -> Result<(), Error> {
        let may_wait = which == Which::All || self.has_too_much_dirty();
        let under_way =
            if may_wait { Some(self.under_way.lock()) } else { self.under_way.try_lock() };
        let Some(mut under_way) = under_way.filter(|_| may_wait || self.writes.outstanding() == 0)
        else {
            return Ok(self.writes.check()?);
        };
        self.writes.wait()?;
        under_way.clear();
        let mut due = std::mem::take(&mut *self.dirty.lock());
        due.sort_unstable_by_key(|buffer| buffer.sector());
        let plug = Plug::new(&self.device);
        let mut image = Image::default();
        let mut kept = Vec::new();
        for buffer in due {
            if image.filled + buffer.address().len() > IMAGE_BYTES {
                image.submit(&plug, &self.writes);
            }
            let copied = self.copy_due(&buffer, which, &mut image)?;
            if copied { &mut *under_way } else { &mut kept }.push(buffer);
        }
        image.submit(&plug, &self.writes);
        self.dirty.lock().append(&mut kept);
        drop(plug);
        // Another thread may wait for them while this one waits for a lock of its.
        flush_plugs();
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
    /// durable there: those of checkpoints up to `durable`. Returns the buffers written. They stay
    /// in the lists of the journal until `writes` are done and flushed.
    ///
    /// # Errors
    /// A buffer is not sound: a defect of the engine.
    pub(crate) fn write_in_place(
        &self,
        mut due: Vec<BufferRef>,
        durable: u64,
        writes: &Batch,
    ) -> Result<Vec<WrittenBuffer>, Error> {
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
            written.push(WrittenBuffer { buffer, tail });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::BufferAddress;
    use crate::cache::shard::SHARDS;
    use crate::format::BufferKind;
    use crate::mkfs::{MkfsOptions, ag_static, plan};
    use crate::units::AgNumber;
    use parking_lot::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::time::Duration;
    use undercroft_block::{
        Below, BlockDevice, BlockError, Layer, Limits, MemoryDevice, Part, Stacked,
    };
    use uuid::Uuid;

    /// A bio, and what the device below answered.
    type Held = (Bio, Result<(), BlockError>);

    /// Counts bios, and keeps their answers back until they are released.
    struct HoldingDevice {
        below: [Arc<dyn BlockDevice>; 1],
        bios: AtomicU64,
        /// `None` after their release.
        answers: Arc<Mutex<Option<Vec<Held>>>>,
    }

    impl HoldingDevice {
        fn new() -> Arc<Self> {
            let answers = Arc::new(Mutex::new(Some(Vec::new())));
            Arc::new(Self {
                below: [Arc::new(MemoryDevice::new(1 << 20))],
                bios: AtomicU64::new(0),
                answers,
            })
        }

        fn bios(&self) -> u64 {
            self.bios.load(Ordering::Relaxed)
        }

        /// Answers what was sent; from now on, at once.
        fn release(&self) {
            let held = self.answers.lock().take();
            held.into_iter().flatten().for_each(|(bio, result)| bio.answer(result));
        }
    }

    impl BlockDevice for HoldingDevice {
        fn name(&self) -> &str {
            "holding"
        }

        fn capacity(&self) -> Sector {
            self.below[0].capacity()
        }

        fn limits(&self) -> Limits {
            self.below[0].limits()
        }

        fn is_read_only(&self) -> bool {
            false
        }

        fn layer(&self) -> Layer<'_> {
            Layer::Stacked(self)
        }
    }

    impl Stacked for HoldingDevice {
        fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
            let Some(mut bio) = bio.admit(self) else { return };
            self.bios.fetch_add(1, Ordering::Relaxed);
            let answers = Arc::clone(&self.answers);
            bio.intercept(move |bio, result| {
                let mut held = answers.lock();
                match &mut *held {
                    Some(held) => held.push((bio, result)),
                    None => {
                        drop(held);
                        bio.answer(result);
                    }
                }
            });
            below.submit(&*self.below[0], bio);
        }

        fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
            visit(Part { device: &*self.below[0], sectors, is_written: true });
        }

        fn devices(&self) -> &[Arc<dyn BlockDevice>] {
            &self.below
        }
    }

    /// A buffer that was changed and sent; its write is not answered yet.
    fn sent() -> (Cache, BufferRef, Arc<HoldingDevice>) {
        let device = HoldingDevice::new();
        let options = MkfsOptions::new(512 << 20, Uuid::from_u128(1));
        let superblock = plan(&options).unwrap();
        let cache = Cache::new(Arc::clone(&device) as _, Arc::new(superblock.geometry()));
        let mut blocks = ag_static(&superblock, AgNumber(0)).into_iter();
        let block = blocks.find(|block| block.kind == BufferKind::Agfl).unwrap();
        let sectors = (block.bytes.len() / 512) as u32;
        let buffer = cache.fresh(BufferAddress::contiguous(block.sector, sectors), block.kind);
        buffer.content().bytes = block.bytes;
        cache.mark_dirty(&[Arc::clone(&buffer)]);
        cache.write_back(Which::Cold).unwrap();
        cache.write_back(Which::Cold).unwrap();
        assert_eq!(device.bios(), 1);
        (cache, buffer, device)
    }

    #[test]
    fn a_buffer_is_not_on_its_way_twice() {
        let (cache, buffer, device) = sent();
        cache.mark_dirty(&[buffer]);
        cache.write_back(Which::Cold).unwrap();
        cache.write_back(Which::Cold).unwrap();
        assert_eq!(device.bios(), 1, "the second before the first's answer");
        device.release();
        cache.write_back_all().unwrap();
        assert_eq!(device.bios(), 2);
    }

    #[test]
    fn buffers_on_their_way_stay() {
        let (cache, buffer, device) = sent();
        let sector = buffer.sector();
        drop(buffer);
        // Until no buffer has age credit.
        let sweep = || (0..SHARDS * 32).for_each(|part| cache.sweep(part % SHARDS, 1));
        sweep();
        assert!(cache.peek(sector).is_some(), "dropped before it was written");
        device.release();
        cache.write_back_all().unwrap();
        sweep();
        assert!(cache.peek(sector).is_none(), "nothing keeps it any more");
    }

    #[test]
    fn what_comes_in_the_place_of_a_freed_block_waits_for_it() {
        let (cache, buffer, device) = sent();
        let (sector, answered) = (buffer.sector(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                cache.forget(sector);
                answered.load(Ordering::SeqCst)
            });
            while cache.peek(sector).is_some() {
                std::thread::yield_now();
            }
            // Time in which it could return too early, were it not to wait.
            std::thread::sleep(Duration::from_millis(20));
            answered.store(true, Ordering::SeqCst);
            device.release();
            assert!(waits.join().unwrap(), "it did not wait for the answer");
        });
    }
}
