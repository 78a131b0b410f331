//! Counters that the superblock repeats from the groups (docs/format/counters.md#sums).

use crate::bytes::put_be64;
use crate::{Agf, Agi};

/// The sums over the groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Inodes that exist.
    pub inodes: u64,
    /// Free inodes among them.
    pub free_inodes: u64,
    /// Free blocks, free lists and non-root blocks of the space trees included.
    pub free_blocks: u64,
}

impl Counters {
    /// Adds the counts in the headers of a group.
    pub fn add(&mut self, agf: &Agf, agi: &Agi) {
        self.inodes += u64::from(agi.count);
        self.free_inodes += u64::from(agi.free_count);
        let blocks = [agf.free_blocks, agf.free_list_count, agf.tree_blocks];
        self.free_blocks += blocks.map(u64::from).iter().sum::<u64>();
    }

    /// Writes them to their places in a superblock.
    pub fn encode(&self, superblock: &mut [u8]) {
        put_be64(superblock, 128, self.inodes);
        put_be64(superblock, 136, self.free_inodes);
        put_be64(superblock, 144, self.free_blocks);
    }
}
