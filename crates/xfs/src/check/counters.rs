//! The counters of the superblock against the sums over all groups (docs/format/counters.md#sums).

use super::Location;
use super::checker::Checker;
use super::group::Group;

/// Compares the counters, unless the journal holds newer ones.
pub(super) fn check(checker: &Checker, groups: &[Group]) {
    let superblock = checker.volume.superblock();
    if let Err(error) = superblock.check_counters()
        && !checker.dirty()
    {
        checker.error("superblock", Location::Volume, error.to_string());
    }
    let (mut inodes, mut free_inodes, mut free_blocks) = (0_u64, 0_u64, 0_u64);
    for group in groups {
        let (Some(agf), Some(agi)) = (&group.agf, &group.agi) else { return };
        inodes += u64::from(agi.count);
        free_inodes += u64::from(agi.free_count);
        free_blocks += u64::from(agf.free_blocks)
            + u64::from(agf.free_list_count)
            + u64::from(agf.tree_blocks);
    }
    if checker.dirty() {
        return;
    }
    let location = Location::Volume;
    checker.expect("superblock", location, "icount", superblock.inodes, inodes);
    checker.expect("superblock", location, "ifree", superblock.free_inodes, free_inodes);
    checker.expect("superblock", location, "fdblocks", superblock.free_blocks, free_blocks);
}
