//! Free extents without the blocks that are not to be used.

use crate::format::AllocRecord;
use crate::units::AgBlock;
use std::collections::BTreeMap;

/// The part of a free extent that is usable for a request of `min_len` to `max_len` blocks. Its length is 0
/// if none is. `overlap` finds the first extent that is not usable and overlaps a range: where it begins, and
/// what is behind it.
///
/// Of two parts around an unusable one the left is preferred, so that allocation moves forward.
pub(super) fn trim(
    free: AllocRecord,
    min_len: u32,
    max_len: u32,
    overlap: impl Fn(u32, u32) -> Option<(u32, u32)>,
) -> AllocRecord {
    let (mut start, mut end) = (free.start.0, free.start.0 + free.len);
    let nothing = AllocRecord { start: free.start, len: 0 };
    while let Some((first, after)) = overlap(start, end) {
        let (left, right) = (first.saturating_sub(start), end.saturating_sub(after));
        if first <= start && after >= end {
            return nothing;
        } else if first <= start {
            start = after;
        } else if after >= end || left >= max_len {
            end = first;
        } else if u64::from(right) >= 4 * u64::from(max_len) {
            start = after;
        } else if left >= min_len {
            end = first;
        } else {
            return nothing;
        }
        if end - start < min_len {
            return nothing;
        }
    }
    AllocRecord { start: AgBlock(start), len: end - start }
}

/// The first of disjoint extents, by their first blocks, that overlaps `[start, end)`.
pub(super) fn first_overlap<V>(
    extents: &BTreeMap<u32, V>,
    len: impl Fn(&V) -> u32,
    start: u32,
    end: u32,
) -> Option<(u32, u32)> {
    let bounds = |(first, value): (&u32, &V)| (*first, first + len(value));
    let around = extents.range(..=start).next_back().map(bounds);
    around
        .filter(|(_, after)| *after > start)
        .or_else(|| extents.range(start..end).next().map(bounds))
}
