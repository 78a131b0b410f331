//! The functions under the names that C gives them.

use core::ffi::{c_int, c_void};

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(
    target: *mut c_void,
    source: *const c_void,
    length: usize,
) -> *mut c_void {
    // SAFETY: the caller's; what may overlap need not.
    unsafe { memmove(target, source, length) }
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(
    target: *mut c_void,
    source: *const c_void,
    length: usize,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { crate::copy(target.cast(), source.cast(), length) };
    target
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const c_void, right: *const c_void, length: usize) -> c_int {
    // SAFETY: the caller's.
    unsafe { crate::compare(left.cast(), right.cast(), length) }
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const c_void, right: *const c_void, length: usize) -> c_int {
    // SAFETY: the caller's.
    unsafe { memcmp(left, right, length) }
}
