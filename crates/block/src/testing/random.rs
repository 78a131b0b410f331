//! Choices that repeat with their seed.

use std::ops::Range;

use crate::units::Sector;

/// Spreads the bits of `value` (the finaliser of SplitMix64).
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Pieces that an operation is torn into at most; those of up to this many sectors are torn by
/// sectors.
const MAX_PIECES: u64 = 1 << 16;

/// The parts of `sectors` that survive a tear, as `random` decides: none, all, those before some
/// sector, or some here and there. In ascending order.
pub(crate) fn tear(sectors: &Range<Sector>, random: u64) -> Vec<Range<Sector>> {
    let (start, count) = (sectors.start.0, sectors.end.0 - sectors.start.0);
    let part = |from: u64, to: u64| Sector(start + from)..Sector(start + to.min(count));
    let parts = match random % 4 {
        0 => Vec::new(),
        1 => vec![sectors.clone()],
        2 => vec![part(0, (random >> 2) % count.max(1))],
        _ => {
            // A discard may be as large as the disk.
            let unit = count.div_ceil(MAX_PIECES).max(1);
            let kept = |piece: &u64| mix(random ^ piece) & 1 == 0;
            let pieces = (0..count.div_ceil(unit)).filter(kept);
            pieces.map(|piece| part(piece * unit, (piece + 1) * unit)).collect()
        }
    };
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}
