//! The amount of a file that the page cache has: the system call `cachestat` (Linux 6.5), which no crate
//! wraps.
#![allow(unsafe_code, reason = "a system call without a safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Its number, the same on all architectures.
const CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range` of `linux/mman.h`.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of `linux/mman.h`; all in pages.
#[repr(C)]
#[derive(Default)]
struct Counts {
    cached: u64,
    dirty: u64,
    under_write_back: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Whether the page cache has all pages of `length` bytes from `offset` on; not if that is not known.
pub(super) fn has_all(file: &File, offset: u64, length: u64) -> bool {
    let page = rustix::param::page_size() as u64;
    let all = (offset + length).div_ceil(page) - offset / page;
    pages(file, offset, length).is_ok_and(|cached| cached == all)
}

/// The number of pages of `length` bytes from `offset` on that the page cache has.
///
/// # Errors
/// The system has no such call, or does not allow it.
pub(super) fn pages(file: &File, offset: u64, length: u64) -> io::Result<u64> {
    let (range, mut counts) = (Range { offset, length }, Counts::default());
    // SAFETY: both outlive the call, which reads the one and fills the other, and are as it knows them.
    let result =
        unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, 0) };
    if result == 0 { Ok(counts.cached) } else { Err(io::Error::last_os_error()) }
}
