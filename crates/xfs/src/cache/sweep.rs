//! Dropping buffers, so that memory has a bound.
//!
//! Once there is more than the limit, one part of the table after the other is swept: clean buffers
//! are dropped that are not held and were not used for some sweeps of their part. That is one
//! sweep, or several for kinds that are used again at random; fewer, the more there is beyond the
//! limit. So a stream of new inodes does not push the directories out in which they get their
//! names. The turns of the parts: `sweep_schedule`.
//!
//! Memory is at most the sum of buffers that are dirty or held, the limit, and the buffers that
//! come in during four rounds of sweeps: half of the limit. After two rounds the buffers of kinds
//! that are not used again have gone.

use super::sweep_schedule::Sweep;
use super::table::Cache;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Cache {
    /// Sets the bytes of buffers above which clean ones are dropped; 64 MiB at first. Dirty ones,
    /// and those in use, always stay.
    pub fn set_limit(&self, bytes: usize) {
        self.sweeps.set_limit(bytes);
    }

    /// Sweeps a part of the table if one is due.
    pub(crate) fn shrink(&self) {
        if let Some(Sweep { part, loss }) =
            self.sweeps.claim(self.total_bytes.load(Ordering::Relaxed))
        {
            self.sweep(part, loss);
            self.sweeps.done(self.total_bytes.load(Ordering::Relaxed));
        }
    }

    /// Drops clean buffers of a part that are not held and whose age_credit ends when it loses
    /// `loss`.
    pub(super) fn sweep(&self, part: usize, loss: u8) {
        let (mut dropped, mut were_changed) = (0, false);
        let mut part = self.shards[part].write();
        part.buffers.retain(|_, buffer| {
            let keep = Arc::strong_count(buffer) > 1 || buffer.outlives(loss) || !buffer.retire();
            if !keep {
                dropped += buffer.address().len();
                were_changed |= buffer.was_changed();
            }
            keep
        });
        // Of one that is as it was read, what others have read by now is as new.
        part.evictions += u64::from(were_changed);
        drop(part);
        self.total_bytes.fetch_sub(dropped, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::buffer::MOST_AGE_CREDIT;
    use crate::cache::shard::SHARDS;
    use crate::cache::{BufferAddress, BufferRef, MetaBuffer};
    use crate::format::BufferKind;
    use crate::mkfs::{MkfsOptions, plan};
    use std::hint::spin_loop;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use undercroft_block::{MemoryDevice, Sector};
    use undercroft_judges::rounds;
    use uuid::Uuid;

    const BUFFER: usize = 4096;
    const COUNT: usize = 1024;

    /// A cache that may keep `COUNT` buffers.
    fn cache() -> Cache {
        let options = MkfsOptions::new(512 << 20, Uuid::from_u128(1));
        let geometry = plan(&options).unwrap().geometry();
        let cache = Cache::new(Arc::new(MemoryDevice::new(1 << 20)), Arc::new(geometry));
        cache.set_limit(COUNT * BUFFER);
        cache
    }

    fn insert(cache: &Cache, number: usize) -> BufferRef {
        insert_of(cache, number, BufferKind::InodeCluster)
    }

    fn insert_of(cache: &Cache, number: usize, kind: BufferKind) -> BufferRef {
        let address = BufferAddress::contiguous(Sector(number as u64 * 8), 8);
        let buffer = cache.fresh(address, kind);
        cache.shrink();
        buffer
    }

    fn buffers(cache: &Cache) -> usize {
        cache.shards.iter().map(|shard| shard.read().buffers.len()).sum()
    }

    #[test]
    fn unused_buffers_are_dropped() {
        let cache = cache();
        for number in 0..20 * COUNT {
            drop(insert(&cache, number));
            assert!(buffers(&cache) <= COUNT + COUNT / 4, "{} buffers", buffers(&cache));
        }
        assert!(buffers(&cache) > COUNT / 2);
        assert_eq!(buffers(&cache) * BUFFER, cache.total_bytes.load(Ordering::Relaxed));
    }

    #[test]
    fn memory_has_a_bound_whatever_the_kind() {
        let cache = cache();
        for number in 0..20 * COUNT {
            drop(insert_of(&cache, number, BufferKind::DirData));
            assert!(buffers(&cache) <= COUNT + COUNT / 2, "{} buffers", buffers(&cache));
        }
        assert!(buffers(&cache) > COUNT / 2);
    }

    #[test]
    fn inodes_do_not_push_directories_out() {
        let cache = cache();
        (0..COUNT / 2).for_each(|number| drop(insert_of(&cache, number, BufferKind::DirData)));
        (COUNT..4 * COUNT).for_each(|number| drop(insert(&cache, number)));
        let kept = (0..COUNT / 2).filter(|n| cache.peek(Sector(*n as u64 * 8)).is_some()).count();
        assert_eq!(kept, COUNT / 2);
        assert!(buffers(&cache) <= COUNT + COUNT / 4, "{} buffers", buffers(&cache));
    }

    #[test]
    fn buffers_used_again_and_again_stay() {
        let cache = cache();
        let used = insert(&cache, 20 * COUNT).sector();
        for number in 0..4 * COUNT {
            cache.peek(used).unwrap().set_referenced();
            drop(insert(&cache, number));
        }
        assert!(cache.peek(used).is_some() && cache.peek(Sector(0)).is_none());
    }

    #[test]
    fn what_stays_is_not_swept_for_each_that_comes() {
        let cache = cache();
        let held: Vec<_> = (0..4 * COUNT).map(|number| insert(&cache, number)).collect();
        // Each round of the parts lets the eighth part of the limit in.
        let rounds = 3 * COUNT / (COUNT / 8);
        let swept = cache.sweeps.parts.load(Ordering::Relaxed);
        assert!(swept <= rounds * SHARDS, "{swept} parts");
        assert_eq!(buffers(&cache), held.len());
        // Given up, they go as others come.
        drop(held);
        (0..COUNT).for_each(|number| drop(insert(&cache, 4 * COUNT + number)));
        assert!(buffers(&cache) <= COUNT + COUNT / 4, "{} buffers", buffers(&cache));
    }

    #[test]
    fn buffers_reached_by_another_way_are_those_of_the_cache() {
        let (cache, ended) = (cache(), AtomicBool::new(false));
        let (sector, kind) = (insert(&cache, 1).sector(), BufferKind::InodeCluster);
        let part = cache.shards.iter().position(|shard| !shard.read().buffers.is_empty()).unwrap();
        let (mut round, mut found, mut gone, mut lost) = (0, 0, 0, 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    cache.sweep(part, MOST_AGE_CREDIT + 1);
                }
            });
            // However late the other thread begins, the two meet.
            while round < 50_000 || (gone < rounds(100, 1_000) && round < 10_000_000) {
                round += 1;
                let way = Arc::downgrade(&insert(&cache, 1));
                (0..round % 64).for_each(|_| spin_loop());
                let Some(buffer) = way.upgrade().filter(|buffer| buffer.use_as(kind)) else {
                    gone += 1;
                    continue;
                };
                (0..64).for_each(|_| spin_loop());
                let kept = cache.peek(sector).is_some_and(|kept| Arc::ptr_eq(&kept, &buffer));
                (found, lost) = (found + 1, lost + u32::from(!kept));
            }
            ended.store(true, Ordering::Relaxed);
        });
        assert!(found > 0 && gone > 0, "{found} found, {gone} gone");
        assert_eq!(lost, 0, "of {found} that were held");
    }

    #[test]
    fn what_was_read_before_a_buffer_came_and_went_is_not_kept() {
        let cache = cache();
        let (address, kind) = (BufferAddress::contiguous(Sector(8), 8), BufferKind::DirData);
        let read = || MetaBuffer::new(address.clone(), kind, vec![0; BUFFER]);
        let evictions = cache.find(Sector(8)).unwrap_err();
        let come_and_go = |is_changed| {
            insert(&cache, 1).content().was_dirty = is_changed;
            (0..2 * SHARDS).for_each(|part| cache.sweep(part % SHARDS, MOST_AGE_CREDIT + 1));
            assert!(cache.peek(Sector(8)).is_none(), "the sweep left it");
        };
        come_and_go(false);
        assert_eq!(cache.find(Sector(8)).unwrap_err(), evictions, "it was as it had been read");
        come_and_go(true);
        assert!(cache.keep(read(), evictions).is_none(), "it is old");
        let evictions = cache.find(Sector(8)).unwrap_err();
        let kept = cache.keep(read(), evictions).expect("nothing went since");
        let second = cache.keep(read(), evictions).expect("there is one");
        assert!(Arc::ptr_eq(&kept, &second), "the first one wins");
    }
}
