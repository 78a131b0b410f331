//! Whether every group has room for what its trees may become.

use undercroft_xfs::format::{Agf, Agi, Geometry};
use undercroft_xfs::mkfs::Reserved;
use undercroft_xfs::units::AgNumber;

use crate::error::RepairError;
use crate::scratch::Scratch;

/// Blocks that each group lacks: kernels keep them free for the trees, and warn of a group that has not so
/// many.
pub(super) fn missing(scratch: &Scratch, geometry: &Geometry) -> Result<Vec<u32>, RepairError> {
    let of = |ag| {
        let header =
            |index| scratch.read(geometry.header_sector(ag, index), geometry.sector_size());
        let (agf, agi) = (header(1)?, header(2)?);
        let (agf, agi) = (Agf::decode(&agf, geometry), Agi::decode(&agi, geometry));
        let wanted = Reserved::new(geometry, ag).ordinary(&agf, &agi);
        Ok(wanted.saturating_sub(agf.free_blocks))
    };
    (0..geometry.ag_count).map(AgNumber).map(of).collect()
}

/// Refuses a change by which groups lack more than before.
pub(super) fn check(
    before: &[u32],
    scratch: &Scratch,
    geometry: &Geometry,
) -> Result<(), RepairError> {
    let groups = before.iter().zip(missing(scratch, geometry)?);
    let lacking: Vec<(usize, u32)> = groups
        .enumerate()
        .filter(|(_, (before, after))| after > *before)
        .map(|(ag, (_, after))| (ag, after))
        .collect();
    let Some((worst, most)) = lacking.iter().copied().max_by_key(|(_, blocks)| *blocks) else {
        return Ok(());
    };
    let bytes = |blocks: u32| u64::from(blocks) << geometry.block_log;
    let all: u64 = lacking.iter().map(|(_, blocks)| bytes(*blocks)).sum();
    Err(RepairError::NoRoom {
        groups: lacking.len(),
        bytes: all,
        worst: AgNumber(worst as u32),
        most: bytes(most),
    })
}
