//! Block status of a range.

use crate::protocol::{Dialect, StatusChunk, StatusExtent};
use crate::server::export::Extents;

/// Extents in one answer; a client asks again for what is behind them.
const MOST: usize = 4096;

/// The extents of a context from `offset` to `end`, which is behind it: a part if there are many.
/// Neighbours with the same flags are joined.
pub(crate) fn chunk(
    context: u32,
    source: &dyn Extents,
    (offset, end): (u64, u64),
    dialect: Dialect,
    only_one: bool,
) -> StatusChunk {
    // Lengths of 32 bits end at a block.
    let longest =
        if dialect == Dialect::Extended { u64::MAX } else { u64::from(u32::MAX) & !0xfff };
    let most = if only_one { 1 } else { MOST };
    let mut extents: Vec<StatusExtent> = Vec::new();
    let mut at = offset;
    while at < end {
        let found = source.at(at, end);
        // An empty extent would be an endless loop; no device has bytes behind its end.
        let length = found.length.clamp(1, end - at);
        let taken = length.min(longest);
        let joined = extents
            .last_mut()
            .filter(|last| last.flags == found.flags && last.length + taken <= longest);
        if let Some(last) = joined {
            last.length += taken;
        } else if extents.len() < most {
            extents.push(StatusExtent { length: taken, flags: found.flags });
        } else {
            break;
        }
        at += taken;
    }
    StatusChunk { context, extents }
}
