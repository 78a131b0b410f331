//! Which blocks were read as metadata.
//!
//! On a damaged volume many structures can lead to one block. Each block is followed only once:
//! that bounds the work by the size of the volume. The second claim shows up when the owners of all
//! blocks are compared.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Blocks per page of the map: a page is 4 KiB.
const PAGE_LOG: u32 = 15;
/// Independent parts, so that threads seldom meet.
const SHARDS: usize = 16;

type Page = Box<[u64; 1 << (PAGE_LOG - 6)]>;

/// A set of block numbers of the volume; memory grows with the pages that are touched.
#[derive(Debug, Default)]
pub(super) struct Visited {
    shards: [Mutex<FxHashMap<u64, Page>>; SHARDS],
}

impl Visited {
    /// Adds a block; `false` if it was there.
    pub(super) fn first(&self, block: u64) -> bool {
        let page = block >> PAGE_LOG;
        let mut shard = self.shards[page as usize % SHARDS].lock();
        let words = shard.entry(page).or_insert_with(|| Box::new([0; 1 << (PAGE_LOG - 6)]));
        let index = block as usize & ((1 << PAGE_LOG) - 1);
        let (word, bit) = (&mut words[index / 64], 1 << (index % 64));
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_new_once() {
        let visited = Visited::default();
        for block in [0, 63, 64, 1 << 15, u64::MAX] {
            assert!(visited.first(block));
            assert!(!visited.first(block));
        }
        assert!(visited.first(1));
    }
}
