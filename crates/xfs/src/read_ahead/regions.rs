//! Reads of whole regions of the device, for all buffers in them.
//!
//! Metadata lies side by side: clusters of inodes are allocated next to each other, and near the
//! blocks of their directories. A device that is [far](super::speed::ReadSpeed::is_far) brings a
//! region in about the time of a block. So a buffer has its region read there, and those that are
//! wanted next are there, or on their way. A reader here and there wastes that: each region costs, and
//! each buffer that it saves a read pays for one more; without credit a region is read now and then.

use super::arrival::Arrival;
use super::memory::REGION_BYTES;
use crate::address::BufferAddress;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use undercroft_block::{Bio, BufferPool, Sector, SharedRead};

/// Sectors of a region, which begins at a multiple of them: 64 KiB, a chunk of 64 inodes of 1 KiB.
const SECTORS: u64 = 128;

/// Most regions in memory.
const REGIONS_MAX: usize = REGION_BYTES / (SECTORS as usize * 512);

/// Regions that may be read in vain, one after the other.
const CREDIT_MAX: u32 = 64;

/// Without credit, a region is read for one of so many buffers.
const SELDOM: u32 = 64;

/// Regions of one device.
#[derive(Debug)]
pub(crate) struct Regions {
    /// Memory of those that are gone, for others.
    memory: BufferPool,
    /// Those of `state`, to be read without its lock.
    count: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// By their numbers on the device.
    regions: FxHashMap<u64, Region>,
    /// The same, oldest first.
    order: VecDeque<u64>,
    credit: u32,
    /// Buffers since the credit ended.
    refused: u32,
}

/// A region that was read, or is.
#[derive(Debug)]
struct Region {
    read: Arc<SharedRead>,
    /// Evictions of each part of the table when it was begun.
    evictions: Box<[u64]>,
    /// A buffer has its bytes from it.
    is_used: bool,
}

/// What a buffer has to expect of a region.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It has the buffer, or is going to.
    Known,
    /// The same, when this has been submitted.
    Now(Bio),
    /// None has it.
    Not,
}

/// The number of the region that has all of a buffer, and the bytes before that.
fn place(address: &BufferAddress) -> Option<(u64, usize)> {
    let [(first, sectors)] = address.parts() else { return None };
    let (number, inside) = (first.0 / SECTORS, first.0 % SECTORS);
    // Less than a region.
    (inside + u64::from(*sectors) <= SECTORS).then_some((number, inside as usize * 512))
}

impl Default for Regions {
    fn default() -> Self {
        let state = State {
            regions: FxHashMap::default(),
            order: VecDeque::new(),
            credit: CREDIT_MAX,
            refused: 0,
        };
        let memory = BufferPool::new(2 * REGION_BYTES);
        Self { memory, count: AtomicUsize::new(0), state: Mutex::new(state) }
    }
}

impl Regions {
    /// Begins the region of a buffer, on a device with so many sectors. `evictions` are those of each
    /// part of the table now.
    pub(crate) fn begin(
        &self,
        address: &BufferAddress,
        capacity: Sector,
        evictions: impl FnOnce() -> Box<[u64]>,
    ) -> Begun {
        let Some((number, _)) = place(address) else { return Begun::Not };
        let mut state = self.state.lock();
        if state.regions.contains_key(&number) {
            return Begun::Known;
        }
        let first = number * SECTORS;
        let end = capacity.0.min(first + SECTORS);
        if address.first().0 + address.len() as u64 / 512 > end || !state.pay() {
            return Begun::Not;
        }
        // At most those of a region. Without memory it is read for the buffer alone.
        let Some(memory) = self.memory.try_get((end - first) as usize * 512) else {
            return Begun::Not;
        };
        let (bio, waiter) = Bio::read(Sector(first), memory).waited();
        let read = Arc::new(waiter.into_shared());
        state.add(number, Region { read, evictions: evictions(), is_used: false });
        self.count.store(state.regions.len(), Ordering::Relaxed);
        Begun::Now(bio)
    }

    /// The bytes of a buffer, whose place in the table is the part `part`, if a region has them; and
    /// the evictions of that part when it was begun. One from before its last ones, which are
    /// `evictions`, is of no use any more.
    pub(crate) fn find(
        &self,
        address: &BufferAddress,
        part: usize,
        evictions: impl FnOnce() -> u64,
    ) -> Option<(Arrival, u64)> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let (number, skipped) = place(address)?;
        let state = &mut *self.state.lock();
        let region = state.regions.get_mut(&number)?;
        if region.evictions[part] != evictions() {
            state.remove(number);
            return None;
        }
        if std::mem::replace(&mut region.is_used, true) {
            state.credit = CREDIT_MAX.min(state.credit + 1);
        }
        Some((Arrival::Region(Arc::clone(&region.read), skipped), region.evictions[part]))
    }
}

impl State {
    /// Whether one more region may be read.
    fn pay(&mut self) -> bool {
        if self.credit > 0 {
            self.credit -= 1;
            return true;
        }
        self.refused = (self.refused + 1) % SELDOM;
        self.refused == 0
    }

    fn remove(&mut self, number: u64) {
        self.regions.remove(&number);
        self.order.retain(|other| *other != number);
    }

    fn add(&mut self, number: u64, region: Region) {
        self.regions.insert(number, region);
        self.order.push_back(number);
        if self.order.len() > REGIONS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.regions.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Sector = Sector(1 << 20);

    fn begin(regions: &Regions, first: u64, sectors: u32) -> Begun {
        let address = BufferAddress::contiguous(Sector(first), sectors);
        regions.begin(&address, CAPACITY, || Box::new([0]))
    }

    fn find(regions: &Regions, address: &BufferAddress) -> Option<(Arrival, u64)> {
        regions.find(address, 0, || 0)
    }

    /// Begins a region, which has arrived then; whether it did.
    fn brings(regions: &Regions, first: u64) -> bool {
        let Begun::Now(bio) = begin(regions, first, 8) else { return false };
        assert_eq!((bio.sector().0 % SECTORS, bio.length()), (0, SECTORS * 512));
        bio.succeed();
        find(regions, &BufferAddress::contiguous(Sector(first), 8)).unwrap();
        true
    }

    #[test]
    fn a_region_has_the_buffers_that_lie_in_it() {
        let regions = Regions::default();
        assert!(brings(&regions, 3 * SECTORS + 8));
        assert!(matches!(begin(&regions, 3 * SECTORS + 96, 32), Begun::Known));
        assert!(matches!(begin(&regions, 3 * SECTORS + 104, 32), Begun::Not), "it crosses the end");
        let scattered = [(Sector(3 * SECTORS), 8), (Sector(3 * SECTORS + 16), 8)];
        assert!(find(&regions, &BufferAddress::scattered(&scattered)).is_none());
        let last = BufferAddress::contiguous(Sector(4 * SECTORS - 8), 8);
        let (arrival, _) = find(&regions, &last).unwrap();
        assert_eq!(arrival.wait(4096).unwrap().len(), 4096);
    }

    #[test]
    fn a_region_that_may_be_old_is_read_again() {
        let regions = Regions::default();
        assert!(brings(&regions, 8));
        let address = BufferAddress::contiguous(Sector(16), 8);
        assert!(regions.find(&address, 0, || 1).is_none());
        assert!(matches!(begin(&regions, 16, 8), Begun::Now(_)));
    }

    #[test]
    fn the_last_region_ends_with_the_device() {
        let regions = Regions::default();
        let address = |first| BufferAddress::contiguous(Sector(first), 8);
        let begun = regions.begin(&address(0), Sector(64), || Box::new([0]));
        let Begun::Now(bio) = begun else { panic!("it is not read") };
        assert_eq!(bio.length(), 64 * 512);
        bio.succeed();
        let behind = regions.begin(&address(SECTORS), Sector(SECTORS + 7), || Box::new([0]));
        assert!(matches!(behind, Begun::Not));
    }

    #[test]
    fn reads_here_and_there_bring_no_more_regions() {
        let regions = Regions::default();
        let begun = (0..1000).filter(|number| brings(&regions, number * SECTORS)).count();
        let credit = CREDIT_MAX as usize;
        assert_eq!(begun, credit + (1000 - credit) / SELDOM as usize);
        // One of them pays for others again.
        let first = (1000..).find(|number| brings(&regions, number * SECTORS)).unwrap();
        for buffer in 1..4 {
            let address = BufferAddress::contiguous(Sector(first * SECTORS + 8 * buffer), 8);
            assert!(matches!(begin(&regions, address.first().0, 8), Begun::Known));
            find(&regions, &address).unwrap();
        }
        let next: Vec<_> = (1..5).map(|next| brings(&regions, (first + next) * SECTORS)).collect();
        assert_eq!(next, [true, true, true, false]);
    }

    #[test]
    fn memory_has_a_bound() {
        let regions = Regions::default();
        for number in 0..4 * REGIONS_MAX as u64 {
            regions.state.lock().credit = CREDIT_MAX;
            assert!(brings(&regions, number * SECTORS));
            assert!(regions.state.lock().regions.len() <= REGIONS_MAX);
        }
        assert!(matches!(begin(&regions, 0, 8), Begun::Now(_)), "the oldest have gone");
    }
}
