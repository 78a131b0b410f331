//! Comparisons.

use core::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};

/// Bytes that are compared at once.
const STEP: usize = 16;

/// Compares `length` bytes, as `memcmp` does: below zero, zero, or above, as the first byte that differs
/// is less in `left` or in `right`.
///
/// # Safety
/// Both can be read for `length` bytes.
#[inline(always)]
pub unsafe fn compare(left: *const u8, right: *const u8, length: usize) -> i32 {
    // SAFETY: all reads lie below `length`.
    unsafe {
        match length {
            0 => 0,
            1 => i32::from(left.read()) - i32::from(right.read()),
            2..4 => both_ends(left, right, length, |bytes| u16::from_be_bytes(bytes).into()),
            4..8 => both_ends(left, right, length, |bytes| u32::from_be_bytes(bytes).into()),
            8..STEP => both_ends(left, right, length, u64::from_be_bytes),
            _ => long(left, right, length),
        }
    }
}

/// Compares from one to two times `N` bytes: `N` at each end, as numbers whose order is that of the bytes.
///
/// # Safety
/// As for [`compare`]; `length` is in that range.
#[inline(always)]
unsafe fn both_ends<const N: usize>(
    left: *const u8,
    right: *const u8,
    length: usize,
    number: impl Fn([u8; N]) -> u64,
) -> i32 {
    // SAFETY: `N` bytes from the front and before the end lie inside; an array takes any alignment.
    let at =
        |place: *const u8, offset| unsafe { number(place.add(offset).cast::<[u8; N]>().read()) };
    let (mut first, mut second) = (at(left, 0), at(right, 0));
    if first == second {
        (first, second) = (at(left, length - N), at(right, length - N));
    }
    i32::from(first > second) - i32::from(first < second)
}

/// Compares a step or more.
///
/// # Safety
/// As for [`compare`]; `length` is at least a [`STEP`].
#[inline(always)]
unsafe fn long(left: *const u8, right: *const u8, length: usize) -> i32 {
    let last = length - STEP;
    let mut at = 0;
    loop {
        // SAFETY: `at` is at most `last`, so a step lies inside.
        let equal = unsafe { equal_bytes(left.add(at), right.add(at)) };
        if equal != u16::MAX {
            let offset = at + equal.trailing_ones() as usize;
            // SAFETY: below `at` and a step.
            let (first, second) = unsafe { (left.add(offset).read(), right.add(offset).read()) };
            return i32::from(first) - i32::from(second);
        }
        if at == last {
            return 0;
        }
        // The last step may overlap the one before.
        at = last.min(at + STEP);
    }
}

/// A bit for each byte of a step, set where both are the same.
///
/// # Safety
/// A step can be read at both.
#[inline(always)]
unsafe fn equal_bytes(left: *const u8, right: *const u8) -> u16 {
    // SAFETY: the caller's; these loads take any alignment.
    let (left, right) = unsafe {
        (_mm_loadu_si128(left.cast::<__m128i>()), _mm_loadu_si128(right.cast::<__m128i>()))
    };
    // SAFETY: every x86_64 has these instructions.
    let mask = unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(left, right)) };
    mask as u16
}
