//! Buffers read before they are asked for.
//!
//! A caller that knows which buffers it needs next says so ([`Cache::prefetch`]): the reads are on
//! their way together while it works, and [`Cache::read`] waits for the one that it wants. A block
//! is verified when it is asked for, not when it arrives: damage in a block that stays unused is
//! no error of any caller. A prefetch that failed, or that is older than what the cache had since,
//! is forgotten, and the block is read again.

use super::buffer::BufferAddress;
use super::prefetches::Arrived;
use super::table::Cache;
use undercroft_block::{Plug, drives_queues};

impl Cache {
    /// Whether reads are worth beginning ahead of their use by this thread.
    ///
    /// Where [reads are fast](Self::is_slow) the way through another thread takes longer than a copy
    /// out of the page cache. And a thread that drives hardware queues of its own reads nothing
    /// ahead: nothing but that thread could collect what arrives, and another may wait for it.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.is_slow() && !drives_queues()
    }

    /// Begins to read those of these buffers that are neither in memory nor on their way. Returns
    /// at once; errors show when a buffer is asked for.
    ///
    /// Nothing is read where that [is not worth it](Self::reads_ahead).
    pub fn prefetch(&self, addresses: impl IntoIterator<Item = BufferAddress>) {
        if !self.reads_ahead() {
            return;
        }
        let mut plug = None;
        for address in addresses {
            let Err(evictions) = self.find(address.first()) else { continue };
            if let Some(bios) = self.prefetches.begin(address, evictions) {
                let plug = plug.get_or_insert_with(|| Plug::new(&self.device));
                bios.into_iter().for_each(|bio| plug.submit(bio));
            }
        }
    }

    /// Waits for the bytes at `address` if their read was begun ahead, for a caller that does not
    /// want them in memory. `None` if it was not, or failed.
    pub(crate) fn take_prefetched(&self, address: &BufferAddress) -> Option<Vec<u8>> {
        self.prefetched(address).map(|arrived| arrived.bytes)
    }

    /// Waits for the buffer at `address` if its read was begun ahead. `None` if it was not, or
    /// failed.
    pub(super) fn prefetched(&self, address: &BufferAddress) -> Option<Arrived> {
        let prefetch = self.prefetches.take(address)?;
        let mut bytes = Vec::with_capacity(address.len());
        for part in prefetch.parts {
            let arrived = self.speed.measure_wait(|| part.wait());
            bytes.extend_from_slice(&arrived.into_buffer().ok()?);
        }
        Some(Arrived { bytes, evictions: prefetch.evictions })
    }
}

#[cfg(test)]
mod tests {
    use super::super::buffer::MOST_AGE_CREDIT;
    use super::super::shard::SHARDS;
    use super::*;
    use crate::error::Error;
    use crate::format::BufferKind;
    use crate::geometry::Geometry;
    use crate::mkfs::{self, MkfsOptions};
    use crate::ops::NewInode;
    use std::ops::Range;
    use std::sync::Arc;
    use std::time::Duration;
    use undercroft_block::testing::{Fault, FaultyDevice};
    use undercroft_block::{BlockDevice, MemoryDevice, Operation, Sector, write_all_at};
    use uuid::Uuid;

    const KIND: BufferKind = BufferKind::InodeCluster;

    /// A cache over an empty volume whose reads fail as these faults say, and its first cluster.
    fn cache(faults: Vec<Fault>) -> (Cache, Arc<FaultyDevice>, BufferAddress) {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        let plan = mkfs::plan(&MkfsOptions::new(64 << 20, Uuid::from_u128(1))).unwrap();
        let geometry: Geometry = plan.geometry();
        let new = NewInode::new(crate::format::FileType::Directory, 0o755);
        mkfs::finish(&mkfs::begin(&device, plan, &new).unwrap(), true).unwrap();
        let faulty = Arc::new(FaultyDevice::new(device, faults));
        let below: Arc<dyn BlockDevice> = Arc::clone(&faulty) as _;
        let address = crate::inode::place(&geometry, geometry.root_inode).0;
        let cache = Cache::new(below, Arc::new(geometry));
        cache.count_read(Duration::from_secs(1));
        (cache, faulty, address)
    }

    fn sectors(address: &BufferAddress) -> Range<Sector> {
        address.first()..Sector(address.first().0 + address.len() as u64 / 512)
    }

    #[test]
    fn what_was_read_ahead_is_not_read_again() {
        let (cache, device, address) = cache(vec![Fault::new().on(Operation::Read).from_nth(1)]);
        cache.prefetch([address.clone(), address.clone()]);
        cache.prefetch([address.clone()]);
        let buffer = cache.read(&address, KIND).unwrap();
        assert_eq!(device.injected(), 0);
        assert!(Arc::ptr_eq(&buffer, &cache.read(&address, KIND).unwrap()));
        cache.prefetch([address]);
        assert_eq!(device.injected(), 0, "it is in memory");
    }

    #[test]
    fn a_read_ahead_that_failed_or_is_damaged_is_nobodys_error() {
        let fault = Fault::new().on(Operation::Read).nth(0);
        let (cache, device, address) = cache(vec![fault]);
        cache.prefetch([address.clone()]);
        cache.read(&address, KIND).unwrap();
        assert_eq!(device.injected(), 1);
    }

    #[test]
    fn damage_is_reported_to_the_reader_alone() {
        let (cache, _, address) = cache(Vec::new());
        write_all_at(&**cache.device(), address.first(), &[7; 512]).unwrap();
        cache.prefetch([address.clone()]);
        assert!(matches!(cache.read(&address, KIND), Err(Error::Block { .. })));
    }

    #[test]
    fn what_came_and_went_since_is_newer() {
        let (cache, _, address) = cache(Vec::new());
        cache.prefetch([address.clone()]);
        let mut newer = cache.read(&address, KIND).unwrap().read().to_vec();
        newer[120] ^= 0xff;
        // It is read ahead as it was; then it is changed, written and dropped.
        (0..2 * SHARDS).for_each(|part| cache.sweep(part % SHARDS, MOST_AGE_CREDIT + 1));
        cache.prefetch([address.clone()]);
        cache.adopt(address.clone(), KIND, newer.clone());
        // The second lets go of what the first wrote.
        (0..2).for_each(|_| cache.write_back_all().unwrap());
        (0..2 * SHARDS).for_each(|part| cache.sweep(part % SHARDS, MOST_AGE_CREDIT + 1));
        assert!(cache.peek(address.first()).is_none(), "the sweep left it");
        assert_eq!(cache.read(&address, KIND).unwrap().read()[120], newer[120]);
    }

    #[test]
    fn a_prefetch_of_another_shape_is_not_taken() {
        let (cache, device, address) = cache(Vec::new());
        let longer = BufferAddress::contiguous(address.first(), 2 * address.len() as u32 / 512);
        cache.prefetch([longer]);
        cache.read(&address, KIND).unwrap();
        assert_eq!(device.injected(), 0);
        assert!(!sectors(&address).is_empty());
    }
}
