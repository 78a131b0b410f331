//! The ordered (hash, data pointer) pairs of hash blocks and of the block form's table.
//!
//! A removed entry may leave a *stale* pair: pointer 0, hash kept, order kept. All functions take
//! the offset of the first pair (`base`) and the number of pairs, stale ones included.

use crate::bytes::{EditBytes, be32};
use crate::hash_tree::block::{PAIR_SIZE, lower_bound};

/// Hash of pair `index`.
#[must_use]
#[inline]
pub fn hash(bytes: &[u8], base: usize, index: usize) -> u32 {
    be32(bytes, base + index * PAIR_SIZE)
}

/// Data pointer of pair `index`, 0 if stale.
#[must_use]
#[inline]
pub fn pointer(bytes: &[u8], base: usize, index: usize) -> u32 {
    be32(bytes, base + index * PAIR_SIZE + 4)
}

/// Writes pair `index`.
pub fn put(edit: &mut EditBytes<'_>, base: usize, index: usize, hash: u32, pointer: u32) {
    edit.put_be64(base + index * PAIR_SIZE, u64::from(hash) << 32 | u64::from(pointer));
}

/// Makes pair `index` stale.
pub fn set_stale(edit: &mut EditBytes<'_>, base: usize, index: usize) {
    edit.put_be32(base + index * PAIR_SIZE + 4, 0);
}

/// Index of the first pair whose hash is not below `hash`.
#[must_use]
#[inline]
pub fn search(bytes: &[u8], base: usize, count: usize, wanted: u32) -> usize {
    lower_bound(count, wanted, |index| hash(bytes, base, index))
}

/// Inserts a pair before `index` in the place of the stale pair nearest to it; `false` if none is
/// stale. The number of pairs stays.
pub fn reuse_stale(
    edit: &mut EditBytes<'_>,
    base: usize,
    count: usize,
    index: usize,
    hash: u32,
    target: u32,
) -> bool {
    let bytes = edit.bytes();
    let stale = |at: usize| pointer(bytes, base, at) == 0;
    let offset = |at: usize| base + at * PAIR_SIZE;
    for distance in 0..count {
        if let Some(above) = Some(index + distance).filter(|at| *at < count && stale(*at)) {
            edit.copy_within(offset(index)..offset(above), offset(index + 1));
            put(edit, base, index, hash, target);
            return true;
        }
        if let Some(below) = index.checked_sub(distance + 1).filter(|at| stale(*at)) {
            edit.copy_within(offset(below + 1)..offset(index), offset(below));
            put(edit, base, index - 1, hash, target);
            return true;
        }
    }
    false
}

/// Removes stale pairs until at most `keep` are left (the ones with the lowest hashes) and returns
/// the number of pairs that remain, from `base` on.
pub fn compact(edit: &mut EditBytes<'_>, base: usize, count: usize, keep: usize) -> usize {
    let (mut kept, mut to) = (0, 0);
    let region = edit.region(base..base + count * PAIR_SIZE);
    for from in 0..count {
        if pointer(region, 0, from) == 0 {
            if kept == keep {
                continue;
            }
            kept += 1;
        }
        region.copy_within(from * PAIR_SIZE..(from + 1) * PAIR_SIZE, to * PAIR_SIZE);
        to += 1;
    }
    to
}

/// Checks order and number of stale pairs.
///
/// # Errors
/// Which pair is wrong.
pub fn verify(bytes: &[u8], base: usize, count: usize, stale: usize) -> Result<(), String> {
    let mut found = 0;
    for index in 0..count {
        if index > 0 && hash(bytes, base, index) < hash(bytes, base, index - 1) {
            return Err(format!("hash {index} is below its predecessor"));
        }
        found += usize::from(pointer(bytes, base, index) == 0);
    }
    if found != stale {
        return Err(format!("stale count is {stale}, but {found} pairs are stale"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Changes;
    use proptest::prelude::*;

    proptest! {
        /// Inserting into a stale slot keeps the order and loses no other pair.
        #[test]
        fn stale_slots_are_reused_in_order(
            mut pairs in proptest::collection::vec((0_u32..50, 0_u32..3), 1..40),
            wanted in 0_u32..50,
        ) {
            pairs.sort_by_key(|(hash, _)| *hash);
            let (mut bytes, mut changes) = (vec![0; 400], Changes::default());
            let mut edit = EditBytes::new(&mut bytes, &mut changes);
            for (index, (hash, target)) in pairs.iter().enumerate() {
                put(&mut edit, 16, index, *hash, *target);
            }
            let count = pairs.len();
            let stale = pairs.iter().filter(|(_, target)| *target == 0).count();
            let index = search(edit.bytes(), 16, count, wanted);
            let reused = reuse_stale(&mut edit, 16, count, index, wanted, 9);
            prop_assert_eq!(reused, stale > 0);
            let stale = stale - usize::from(reused);
            prop_assert_eq!(verify(edit.bytes(), 16, count, stale), Ok(()));
            let mut live: Vec<_> = pairs.into_iter().filter(|(_, target)| *target != 0).collect();
            live.extend(reused.then_some((wanted, 9)));
            live.sort_unstable();
            let left = compact(&mut edit, 16, count, 0);
            let mut found: Vec<_> = (0..left)
                .map(|index| (hash(edit.bytes(), 16, index), pointer(edit.bytes(), 16, index)))
                .collect();
            found.sort_unstable();
            prop_assert_eq!(found, live);
        }
    }
}
