//! Superblocks: what opening a volume makes of its first sectors.

use crate::blocks::block;
use crate::input::Input;
use undercroft_xfs::format::checksum;
use undercroft_xfs::format::{BufferKind, Superblock, TreeHeights, agfl};
use undercroft_xfs::units::AgNumber;

/// Where a version 5 superblock has its checksum.
const CHECKSUM: usize = 224;

pub(crate) fn run(input: &[u8]) {
    let mut fuzzed = block(BufferKind::Superblock, Input(input));
    // The sector size, which decides what the checksum covers, may be patched.
    let sector_log = u32::from(fuzzed.bytes[121]).clamp(9, 15);
    fuzzed.bytes.resize(fuzzed.bytes.len().max(1 << sector_log), 0);
    checksum::stamp(&mut fuzzed.bytes[..1 << sector_log], CHECKSUM);
    let Ok(superblock) = Superblock::decode(&fuzzed.bytes) else { return };
    // The message is made as well.
    drop(superblock.check_counters().map_err(|error| error.to_string()));
    if superblock.check_primary(u64::MAX).map_err(|error| error.to_string()).is_err() {
        return;
    }
    let geometry = superblock.geometry();
    assert!(geometry.ag_count > 0 && geometry.blocks > 0, "an empty volume passed the checks");
    let last = AgNumber(geometry.ag_count - 1);
    assert!(geometry.ag_length(last) > 0, "the last group of a volume is empty");
    assert!(agfl::slots(&geometry) > 0, "a free list without slots");
    let heights = TreeHeights::new(&geometry);
    assert!(heights.alloc > 0 && heights.bmap_data > 0, "trees without levels");
    let mut again = vec![0; geometry.sector_size()];
    superblock.encode(&mut again);
    checksum::stamp(&mut again, CHECKSUM);
    if geometry.features.crc {
        let decoded = Superblock::decode(&again).expect("what was encoded can be decoded");
        assert_eq!(decoded, superblock, "a superblock changes when it is written and read");
    }
}
