//! Copies, which may overlap.

use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

/// Bytes of a step of a long copy.
const STEP: usize = 64;

/// Bytes from which on the processor is told to copy a string: what it takes to begin is paid back.
const STRING_MIN: usize = 1024;

/// Copies `length` bytes, as `memmove` does.
///
/// # Safety
/// `source` can be read and `target` written for `length` bytes. They may overlap.
#[inline(always)]
pub unsafe fn copy(target: *mut u8, source: *const u8, length: usize) {
    // SAFETY: each branch moves bytes below `length` alone, which its condition says are there, and
    // reads all that it may overwrite before it writes.
    unsafe {
        match length {
            0 => {}
            1 => target.write(source.read()),
            2..4 => both_ends::<u16>(target, source, length),
            4..8 => both_ends::<u32>(target, source, length),
            8..16 => both_ends::<u64>(target, source, length),
            16..=32 => both_ends::<__m128i>(target, source, length),
            33..=64 => both_ends::<[__m128i; 2]>(target, source, length),
            65..=128 => both_ends::<[__m128i; STEP / 16]>(target, source, length),
            _ => long(target, source, length),
        }
    }
}

/// Copies from one to two times the size of `T`: a `T` at each end, which overlap in the middle.
///
/// # Safety
/// As for [`copy`]; `length` is in that range.
#[inline(always)]
unsafe fn both_ends<T>(target: *mut u8, source: *const u8, length: usize) {
    let last = length - size_of::<T>();
    // SAFETY: both values lie inside the range, and both are read before one is written.
    unsafe {
        let front = source.cast::<T>().read_unaligned();
        let back = source.add(last).cast::<T>().read_unaligned();
        target.cast::<T>().write_unaligned(front);
        target.add(last).cast::<T>().write_unaligned(back);
    }
}

/// Copies more than two steps.
///
/// # Safety
/// As for [`copy`]; `length` is more than two [`STEP`]s.
#[inline(never)]
unsafe fn long(target: *mut u8, source: *const u8, length: usize) {
    let ahead = target.addr().wrapping_sub(source.addr());
    let behind = source.addr().wrapping_sub(target.addr());
    if length >= STRING_MIN && ahead >= length && behind >= length {
        // SAFETY: the ranges do not overlap; the direction flag is clear by the convention of calls.
        // Words, not bytes: older processors are slow with those. The last one covers what is left.
        unsafe {
            let last = length - size_of::<u64>();
            let word = source.add(last).cast::<u64>().read_unaligned();
            target.add(last).cast::<u64>().write_unaligned(word);
            asm!(
                "rep movsq",
                inout("rcx") length / size_of::<u64>() => _,
                inout("rdi") target => _,
                inout("rsi") source => _,
                options(nostack, preserves_flags)
            );
        }
    } else if ahead >= length {
        // SAFETY: the target begins before the source, or behind its end.
        unsafe { forwards(target, source, length) }
    } else {
        // SAFETY: the target begins inside the source.
        unsafe { backwards(target, source, length) }
    }
}

/// Copies from the front.
///
/// # Safety
/// As for [`long`]; the target does not begin inside the source.
#[inline(always)]
unsafe fn forwards(target: *mut u8, source: *const u8, length: usize) {
    let last = length - STEP;
    // SAFETY: all steps lie inside the range. A step is read before it is written, and what is
    // written lies before all that is still to be read but the last step, which was read first.
    unsafe {
        let end = load(source.add(last));
        let mut at = 0;
        while at < last {
            let step = load(source.add(at));
            store(target.add(at), step);
            at += STEP;
        }
        store(target.add(last), end);
    }
}

/// Copies from the end.
///
/// # Safety
/// As for [`long`]; the target begins behind the beginning of the source.
#[inline(always)]
unsafe fn backwards(target: *mut u8, source: *const u8, length: usize) {
    // SAFETY: as for `forwards`, the other way round: the first step was read first.
    unsafe {
        let begin = load(source);
        let mut at = length;
        while at > STEP {
            at -= STEP;
            let step = load(source.add(at));
            store(target.add(at), step);
        }
        store(target, begin);
    }
}

/// # Safety
/// A step can be read at `source`.
#[inline(always)]
unsafe fn load(source: *const u8) -> [__m128i; 4] {
    let source = source.cast::<__m128i>();
    // SAFETY: the caller's; these loads take any alignment.
    unsafe {
        [
            _mm_loadu_si128(source),
            _mm_loadu_si128(source.add(1)),
            _mm_loadu_si128(source.add(2)),
            _mm_loadu_si128(source.add(3)),
        ]
    }
}

/// # Safety
/// A step can be written at `target`.
#[inline(always)]
unsafe fn store(target: *mut u8, step: [__m128i; 4]) {
    let target = target.cast::<__m128i>();
    // SAFETY: the caller's; these stores take any alignment.
    unsafe {
        _mm_storeu_si128(target, step[0]);
        _mm_storeu_si128(target.add(1), step[1]);
        _mm_storeu_si128(target.add(2), step[2]);
        _mm_storeu_si128(target.add(3), step[3]);
    }
}
