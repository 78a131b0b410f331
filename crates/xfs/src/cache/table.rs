//! The table of all metadata buffers of a volume.

use super::buffer::{BufferRef, Content, MetaBuffer};
use super::shard::{SHARDS, Shard};
use super::sweep_schedule::SweepSchedule;
use super::verify::verify;
use crate::address::BufferAddress;
use crate::error::Error;
use crate::format::BufferKind;
use crate::geometry::Geometry;
use crate::read_ahead::{Arrived, ReadAhead};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use undercroft_block::{Batch, BlockDevice, BufferPool, Sector, SegmentList, read_exact_at};

/// Dirty bytes above which a commit writes back buffers that were not used lately.
const DIRTY_LIMIT: usize = 32 << 20;

/// Memory for copies of buffers on their way to the device.
const POOL_BYTES: usize = 16 << 20;

/// All metadata buffers of one volume.
pub struct Cache {
    pub(super) device: Arc<dyn BlockDevice>,
    pub(super) geometry: Arc<Geometry>,
    /// What the device wants memory to be a multiple of, in bytes; 1 = nothing.
    memory_alignment: usize,
    pub(super) shards: Box<[Shard]>,
    /// Buffers that became dirty, each once.
    pub(super) dirty: Mutex<Vec<BufferRef>>,
    pub(crate) dirty_bytes: AtomicUsize,
    pub(crate) total_bytes: AtomicUsize,
    pub(super) sweeps: SweepSchedule,
    /// Write-backs on their way, without a journal.
    pub(super) writes: Batch,
    /// Their buffers; only the holder of the lock sends more.
    pub(super) under_way: Mutex<Vec<BufferRef>>,
    pub(super) pool: BufferPool,
    pub(super) ahead: ReadAhead,
}

impl Cache {
    pub(crate) fn new(device: Arc<dyn BlockDevice>, geometry: Arc<Geometry>) -> Self {
        let ahead = ReadAhead::new(Arc::clone(&device));
        Self {
            memory_alignment: device.limits().memory_alignment,
            device,
            geometry,
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            dirty: Mutex::default(),
            dirty_bytes: AtomicUsize::new(0),
            total_bytes: AtomicUsize::new(0),
            sweeps: SweepSchedule::default(),
            writes: Batch::new(),
            under_way: Mutex::default(),
            pool: BufferPool::new(POOL_BYTES),
            ahead,
        }
    }

    /// The device below.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// The same bytes, whole sectors in all, in memory that the device takes.
    pub(crate) fn in_fitting_memory(&self, segments: SegmentList) -> SegmentList {
        segments.aligned_to(self.memory_alignment)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(super) fn shard(&self, sector: Sector) -> &Shard {
        &self.shards[Self::part_of(sector)]
    }

    /// The part of the table in which the buffer at `sector` is.
    pub(super) fn part_of(sector: Sector) -> usize {
        // Addresses are multiples of a block; mix so that any block size spreads.
        let hash = (sector.0 / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 58) as usize % SHARDS
    }

    /// The buffer at `sector`, if it is in memory.
    #[must_use]
    pub fn peek(&self, sector: Sector) -> Option<BufferRef> {
        self.shard(sector).read().buffers.get(&sector).map(Arc::clone)
    }

    /// The buffer at `address`, read from the device and verified if it is not in memory.
    ///
    /// # Errors
    /// The device failed; or the bytes are not a sound block of `kind`; or they are not in memory,
    /// and the thread does not wait for them.
    pub fn read(&self, address: &BufferAddress, kind: BufferKind) -> Result<BufferRef, Error> {
        loop {
            let evictions = match self.find(address.first()) {
                Ok(buffer) => {
                    buffer.set_referenced();
                    return self.expect_kind(buffer, address, kind);
                }
                Err(evictions) => evictions,
            };
            if let Some(read) = self.read_in_attempt(address, kind, evictions) {
                return read;
            }
            if let Some(Arrived { bytes, evictions }) = self.prefetched(address)
                && let Ok(buffer) = self.verified(address, kind, bytes)
                && let Some(kept) = self.keep_and_shrink(buffer, evictions)
            {
                return Ok(kept);
            }
            let bytes = self.ahead.speed().measure(|| self.read_from_device(address))?;
            let buffer = self.verified(address, kind, bytes)?;
            if let Some(kept) = self.keep_and_shrink(buffer, evictions) {
                return Ok(kept);
            }
        }
    }

    pub(super) fn keep_and_shrink(&self, buffer: BufferRef, evictions: u64) -> Option<BufferRef> {
        self.shrink();
        self.keep(buffer, evictions)
    }

    /// The buffer at `sector`, or if it is not in memory how often others of its part went.
    pub(super) fn find(&self, sector: Sector) -> Result<BufferRef, u64> {
        let part = self.shard(sector).read();
        part.buffers.get(&sector).map(Arc::clone).ok_or(part.evictions)
    }

    /// Keeps a buffer that was read without a lock when so many had gone. Another thread may have
    /// read it, too: the first one wins, as it may have changed its own. `None` if it can have
    /// come, been changed, written and gone since: then the bytes read are old.
    pub(super) fn keep(&self, buffer: BufferRef, evictions: u64) -> Option<BufferRef> {
        let mut part = self.shard(buffer.sector()).write();
        if let Some(known) = part.buffers.get(&buffer.sector()) {
            return Some(Arc::clone(known));
        }
        if part.evictions != evictions {
            return None;
        }
        self.total_bytes.fetch_add(buffer.address().len(), Ordering::Relaxed);
        part.buffers.insert(buffer.sector(), Arc::clone(&buffer));
        Some(buffer)
    }

    fn read_from_device(&self, address: &BufferAddress) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; address.len()];
        let mut filled = 0;
        for (first, sectors) in address.parts() {
            let len = *sectors as usize * 512;
            read_exact_at(self.device.as_ref(), *first, &mut bytes[filled..filled + len])?;
            filled += len;
        }
        Ok(bytes)
    }

    /// The buffer that holds these bytes, which were read from its place.
    fn verified(
        &self,
        address: &BufferAddress,
        kind: BufferKind,
        bytes: Vec<u8>,
    ) -> Result<BufferRef, Error> {
        let kind = self.verify(address, kind, &bytes)?;
        Ok(MetaBuffer::new(address.clone(), kind, bytes))
    }

    /// Checks bytes that were read; returns their kind.
    pub(super) fn verify(
        &self,
        address: &BufferAddress,
        kind: BufferKind,
        bytes: &[u8],
    ) -> Result<BufferKind, Error> {
        let sector = address.first();
        verify(kind, bytes, sector, &self.geometry).map_err(|what| Error::Block {
            structure: kind.name(),
            sector,
            what,
        })
    }

    /// Checks that a buffer found in memory is what the caller looks for: on a damaged volume two
    /// structures can claim one block.
    fn expect_kind(
        &self,
        buffer: BufferRef,
        address: &BufferAddress,
        kind: BufferKind,
    ) -> Result<BufferRef, Error> {
        let found = buffer.read().kind();
        if kind.accepts(found) && buffer.address() == address {
            return Ok(buffer);
        }
        Err(Error::Block {
            structure: kind.name(),
            sector: address.first(),
            what: format!("the block is in use as {} too", found.name()),
        })
    }

    /// A zeroed buffer at `address`, in place of any other there.
    pub(crate) fn fresh(&self, address: BufferAddress, kind: BufferKind) -> BufferRef {
        let (sector, len) = (address.first(), address.len());
        let buffer = MetaBuffer::new(address, kind, vec![0; len]);
        self.forget(sector);
        self.shard(sector).write().buffers.insert(sector, Arc::clone(&buffer));
        self.total_bytes.fetch_add(len, Ordering::Relaxed);
        buffer
    }

    /// Keeps a buffer that was read, and verified, elsewhere.
    pub(crate) fn admit(&self, buffer: &BufferRef) {
        self.shard(buffer.sector()).write().buffers.insert(buffer.sector(), Arc::clone(buffer));
        self.total_bytes.fetch_add(buffer.address().len(), Ordering::Relaxed);
    }

    /// A buffer with these bytes, due for write-back.
    pub(crate) fn adopt(&self, address: BufferAddress, kind: BufferKind, bytes: Vec<u8>) {
        let buffer = self.fresh(address, kind);
        buffer.content().bytes = bytes;
        self.mark_dirty(&[buffer]);
    }

    /// Drops the buffer at `sector` with its changes: its block was freed.
    pub(crate) fn forget(&self, sector: Sector) {
        let gone = {
            let mut part = self.shard(sector).write();
            let gone = part.buffers.remove(&sector);
            part.evictions += u64::from(gone.is_some());
            gone
        };
        if let Some(buffer) = gone {
            if self.writes.outstanding() > 0 {
                // A copy of it may not be submitted yet, and must not be behind what comes in its
                // place. If the wait fails, the next write-back says so.
                let _ = self.writes.wait();
            }
            self.total_bytes.fetch_sub(buffer.address().len(), Ordering::Relaxed);
            let mut content = buffer.content();
            content.retired = true;
            if std::mem::take(&mut content.dirty) {
                self.dirty_bytes.fetch_sub(content.bytes.len(), Ordering::Relaxed);
            }
        }
    }

    /// Ends the membership of these buffers in a transaction and makes them due for write-back.
    pub(crate) fn mark_dirty(&self, joined: &[BufferRef]) {
        let mut dirty = self.dirty.lock();
        for buffer in joined {
            let mut content = buffer.content();
            content.joined = false;
            content.stale_checksum = true;
            content.changes.clear();
            if self.count_dirty(&mut content) {
                dirty.push(Arc::clone(buffer));
            }
        }
    }

    /// Says that a buffer is newer than the disk; whether it was not before.
    pub(crate) fn count_dirty(&self, content: &mut Content) -> bool {
        content.was_dirty = true;
        let is_new = !std::mem::replace(&mut content.dirty, true);
        if is_new {
            self.dirty_bytes.fetch_add(content.bytes.len(), Ordering::Relaxed);
        }
        is_new
    }

    /// Whether more is dirty than is good for memory.
    pub(crate) fn has_much_dirty(&self) -> bool {
        self.dirty_bytes.load(Ordering::Relaxed) > DIRTY_LIMIT
    }

    /// Whether so much is dirty that nothing more may be changed before some of it is written.
    pub(crate) fn has_too_much_dirty(&self) -> bool {
        self.dirty_bytes.load(Ordering::Relaxed) > 4 * DIRTY_LIMIT
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("total_bytes", &self.total_bytes)
            .field("dirty_bytes", &self.dirty_bytes)
            .finish_non_exhaustive()
    }
}
