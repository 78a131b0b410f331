//! Buffers read before they are asked for.
//!
//! A caller that knows which buffers it needs next says so ([`Cache::prefetch`]): the reads are on
//! their way together while it works, and [`Cache::read`] waits for the one that it wants. A block
//! is verified when it is asked for, not when it arrives: damage in a block that stays unused is
//! no error of any caller. A prefetch that failed, or that is older than what the cache had since,
//! is forgotten, and the block is read again.

use super::table::Cache;
use crate::address::BufferAddress;
use crate::read_ahead::{Arrival, Arrived, Begun, ReadAhead};
use undercroft_block::{Bio, Plug};

impl Cache {
    /// What is read ahead from the device.
    pub(crate) fn ahead(&self) -> &ReadAhead {
        &self.ahead
    }

    /// Begins to read those of these buffers that are neither in memory nor on their way. Returns
    /// at once; errors show when a buffer is asked for.
    ///
    /// Nothing is read where that [is not worth it](ReadAhead::is_worth_it).
    pub fn prefetch(&self, addresses: impl IntoIterator<Item = BufferAddress>) {
        if self.ahead.is_worth_it() {
            let missing = |address: BufferAddress| {
                let evictions = self.find(address.first()).err()?;
                Some((address, evictions))
            };
            self.ahead.begin(addresses.into_iter().filter_map(missing), || self.evictions());
        }
    }

    /// Evictions of each part of the table.
    fn evictions(&self) -> Box<[u64]> {
        self.shards.iter().map(|part| part.read().evictions).collect()
    }

    /// What was begun ahead and brings a buffer that is not in memory, with the evictions of its part
    /// of the table before that.
    fn begun(&self, address: &BufferAddress) -> Option<(Arrival, u64)> {
        let part = Self::part_of(address.first());
        self.ahead.take(address, part, || self.shards[part].read().evictions)
    }

    /// The same for a buffer that is wanted now: its region may be begun, and the read of that has to
    /// be submitted.
    pub(super) fn begun_now(
        &self,
        address: &BufferAddress,
    ) -> (Option<(Arrival, u64)>, Option<Bio>) {
        let begun = self.begun(address);
        if begun.is_some() || !self.ahead.is_worth_it() {
            return (begun, None);
        }
        let around = self.ahead.begin_around(address, || self.evictions());
        let bio = if let Begun::Now(bio) = around { Some(bio) } else { None };
        (self.begun(address), bio)
    }

    /// Waits for the bytes at `address` if their read was begun ahead, for a caller that does not
    /// want them in memory. `None` if it was not, or failed.
    pub(crate) fn take_prefetched(&self, address: &BufferAddress) -> Option<Vec<u8>> {
        let (arrival, _) = self.begun(address)?;
        self.ahead.speed().measure_wait(|| arrival.wait(address.len())).ok()
    }

    /// Waits for the buffer at `address` if its read was begun ahead, or is with those around it.
    /// `None` if it was not, or failed.
    pub(super) fn prefetched(&self, address: &BufferAddress) -> Option<Arrived> {
        let (begun, bio) = self.begun_now(address);
        let (arrival, evictions) = begun?;
        let bytes = match bio {
            Some(bio) => self.ahead.speed().measure(|| {
                Plug::new(&self.device).submit(bio);
                arrival.wait(address.len())
            }),
            None => self.ahead.speed().measure_wait(|| arrival.wait(address.len())),
        };
        Some(Arrived { bytes: bytes.ok()?, evictions })
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

    /// How long a device takes that is slow, and one that is far.
    const TIMES: [Duration; 2] = [Duration::from_micros(200), Duration::from_secs(1)];

    /// A cache over an empty volume whose reads took so long, and fail as these faults say; and its
    /// first cluster.
    fn cache(time: Duration, faults: Vec<Fault>) -> (Cache, Arc<FaultyDevice>, BufferAddress) {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        let plan = mkfs::plan(&MkfsOptions::new(64 << 20, Uuid::from_u128(1))).unwrap();
        let geometry: Geometry = plan.geometry();
        let new = NewInode::new(crate::format::FileType::Directory, 0o755);
        mkfs::finish(&mkfs::begin(&device, plan, &new).unwrap(), true).unwrap();
        let faulty = Arc::new(FaultyDevice::new(device, faults));
        let below: Arc<dyn BlockDevice> = Arc::clone(&faulty) as _;
        let address = crate::inode::place(&geometry, geometry.root_inode).0;
        let cache = Cache::new(below, Arc::new(geometry));
        cache.ahead().speed().count(time);
        (cache, faulty, address)
    }

    fn sectors(address: &BufferAddress) -> Range<Sector> {
        address.first()..Sector(address.first().0 + address.len() as u64 / 512)
    }

    #[test]
    fn what_was_read_ahead_is_not_read_again() {
        for time in TIMES {
            let (cache, device, address) =
                cache(time, vec![Fault::new().on(Operation::Read).from_nth(1)]);
            cache.prefetch([address.clone(), address.clone()]);
            cache.prefetch([address.clone()]);
            let buffer = cache.read(&address, KIND).unwrap();
            assert_eq!(device.injected(), 0);
            assert!(Arc::ptr_eq(&buffer, &cache.read(&address, KIND).unwrap()));
            cache.prefetch([address]);
            assert_eq!(device.injected(), 0, "it is in memory");
        }
    }

    #[test]
    fn a_read_ahead_that_failed_or_is_damaged_is_nobodys_error() {
        for time in TIMES {
            let fault = Fault::new().on(Operation::Read).nth(0);
            let (cache, device, address) = cache(time, vec![fault]);
            cache.prefetch([address.clone()]);
            cache.read(&address, KIND).unwrap();
            assert_eq!(device.injected(), 1);
        }
    }

    #[test]
    fn damage_is_reported_to_the_reader_alone() {
        for time in TIMES {
            let (cache, _, address) = cache(time, Vec::new());
            write_all_at(&**cache.device(), address.first(), &[7; 512]).unwrap();
            cache.prefetch([address.clone()]);
            assert!(matches!(cache.read(&address, KIND), Err(Error::Block { .. })));
        }
    }

    #[test]
    fn what_came_and_went_since_is_newer() {
        for time in TIMES {
            let (cache, _, address) = cache(time, Vec::new());
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
    }

    #[test]
    fn a_prefetch_of_another_shape_is_not_taken() {
        for time in TIMES {
            let (cache, device, address) = cache(time, Vec::new());
            let longer = BufferAddress::contiguous(address.first(), 2 * address.len() as u32 / 512);
            cache.prefetch([longer]);
            cache.read(&address, KIND).unwrap();
            assert_eq!(device.injected(), 0);
            assert!(!sectors(&address).is_empty());
        }
    }

    #[test]
    fn a_buffer_of_a_far_device_brings_those_around_it() {
        for (time, reads) in TIMES.into_iter().zip([2, 1]) {
            let second = Fault::new().on(Operation::Read).from_nth(1);
            let (cache, device, address) = cache(time, vec![second]);
            cache.read(&address, KIND).unwrap();
            let next = BufferAddress::contiguous(sectors(&address).end, 32);
            assert_eq!(cache.read(&next, KIND).is_ok(), reads == 1);
            assert_eq!(device.injected(), reads - 1);
        }
    }
}
