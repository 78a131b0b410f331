//! Pages of a file that is in memory, mapped: bytes that go there take no lock of the file, and no page is
//! looked for.
#![allow(unsafe_code, reason = "a mapping, and the call that fills parts of it")]

use std::ffi::c_void;
use std::fmt;
use std::fs::File;
use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::system::sysinfo;

use super::file_units::{UNIT, Units, WrittenParts};

/// Of the memory of the machine, the part that is mapped at most.
const SHARE: u64 = 16;

/// Budgets that the file may be long: four times the memory of the machine.
const MOST_BUDGETS: u64 = 4 * SHARE;

/// What this process has mapped.
static ALL: LazyLock<Budget> = LazyLock::new(|| {
    let system = sysinfo();
    let memory = u64::from(system.mem_unit).saturating_mul(system.totalram as _);
    Budget::of(memory / SHARE)
});

/// A file in memory whose pages are mapped where it is written again and again.
///
/// What fills them writes to the file, beside any other writes to it.
pub struct MappedFile {
    start: NonNull<c_void>,
    /// In bytes: the whole pages that the file had.
    length: usize,
    written: WrittenParts,
    mapped: Units,
    budget: &'static Budget,
}

// SAFETY: the mapping belongs to no thread, and only the kernel reads and writes there.
unsafe impl Send for MappedFile {}
// SAFETY: as above; the bits of units are atomic.
unsafe impl Sync for MappedFile {}

/// Bytes that may be mapped. The system takes them for memory of the process when it looks for one to end
/// since there is too little.
struct Budget {
    limit: u64,
    used: AtomicU64,
}

impl MappedFile {
    /// Maps the whole pages of `file`, which is in memory and open for reads and writes; none if it has none
    /// or is much longer than memory, or the system refuses.
    pub(crate) fn of(file: &File) -> Option<Self> {
        Self::within(file, &ALL)
    }

    fn within(file: &File, budget: &'static Budget) -> Option<Self> {
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // Where addresses are limited, other memory needs them.
        if getrlimit(Resource::As).current.is_some() {
            return None;
        }
        // What is written behind the end of a file in its last page is lost.
        let length = length - length % page_size();
        // Most of it are holes, and of each unit is known here whether it is mapped.
        if length as u64 / MOST_BUDGETS > budget.limit {
            return None;
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the place is the system's choice, so nothing else is mapped there. The system refuses
        // no bytes.
        let start =
            unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0) }.ok()?;
        let start = NonNull::new(start)?;
        let (written, mapped) = (WrittenParts::of(length), Units::of(length));
        Some(Self { start, length, written, mapped, budget })
    }

    /// Fills up to `most` bytes of the file from `offset` on with what has come to `socket`, and `behind`
    /// with what follows; returns how many bytes there were in all. Does not wait for any.
    ///
    /// # Errors
    /// The file has no whole pages there, or no room for them, or the error of `socket`. Bytes that were
    /// not taken from it are still there, and what the range of the file has is not known.
    pub fn receive_from(
        &self,
        socket: BorrowedFd<'_>,
        offset: u64,
        most: usize,
        behind: &mut [u8],
    ) -> io::Result<usize> {
        let range = self.range(offset, most as u64).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the range is inside the mapping, which lasts as long as `self`. Nothing in this process
        // refers to its memory, so it is of no account that others write there, too. Where there is no
        // page, the call fails. The second piece is borrowed for the call. A message header of zeroes has
        // no parts.
        let result = unsafe {
            let place = self.start.as_ptr().byte_add(range.start);
            let mut pieces = [
                libc::iovec { iov_base: place, iov_len: range.len() },
                libc::iovec { iov_base: behind.as_mut_ptr().cast(), iov_len: behind.len() },
            ];
            let mut message: libc::msghdr = mem::zeroed();
            message.msg_iov = pieces.as_mut_ptr();
            message.msg_iovlen = 2;
            libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT)
        };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// Hears that `length` bytes from `offset` on are written next, and says whether that had better be to
    /// the pages, which are mapped.
    ///
    /// To map them costs about as much as is won by one write of all. So it is done for the first write to
    /// a unit of which all was written, as long as the process has not mapped too much. What is written
    /// by other means makes the pages; each would cost a fault here.
    pub fn prepare(&self, offset: u64, length: u64) -> bool {
        let Some(range) = self.range(offset, length).filter(|range| !range.is_empty()) else {
            return false;
        };
        // The kernel maps the pages at the ends of a long one when they are filled.
        let whole = range.start.div_ceil(UNIT)..range.end / UNIT;
        let units =
            if whole.is_empty() { range.start / UNIT..range.end.div_ceil(UNIT) } else { whole };
        let Some(first) = units.clone().find(|unit| !self.mapped.has(*unit)) else {
            return true;
        };
        let units = first..units.end;
        let bytes = units.start * UNIT..self.length.min(units.end * UNIT);
        if !self.written.set(bytes.start.max(range.start)..bytes.end.min(range.end)) {
            return false;
        }
        let is_done = self.budget.has_room(bytes.len()) && self.populate(bytes);
        if is_done {
            self.budget.take(self.mapped.set(units) * UNIT);
        }
        is_done
    }

    /// Maps the pages of `bytes`, which are inside.
    fn populate(&self, bytes: Range<usize>) -> bool {
        // SAFETY: the range is inside the mapping, and nothing changes but the costs of its use.
        let result = unsafe {
            let place = self.start.as_ptr().byte_add(bytes.start);
            madvise(place, bytes.len(), Advice::LinuxPopulateRead)
        };
        result.is_ok()
    }

    /// Pages of `length` bytes from `offset` on were given back to the system.
    pub(crate) fn forget(&self, offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.length as u64);
        if offset < end {
            // Inside the mapping.
            let units = offset as usize / UNIT..(end as usize).div_ceil(UNIT);
            self.written.clear(units.clone());
            self.budget.give_back(self.mapped.clear(units) * UNIT);
        }
    }

    /// Bytes of the mapping, if all are in it.
    fn range(&self, offset: u64, length: u64) -> Option<Range<usize>> {
        let end = offset.checked_add(length).filter(|end| *end <= self.length as u64)?;
        // No more than the length.
        Some(offset as usize..end as usize)
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        self.forget(0, self.length as u64);
        // SAFETY: made with this length, and nothing refers to it. It fails only for other arguments.
        let _ = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedFile").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Budget {
    const fn of(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.used.load(Ordering::Relaxed).saturating_add(bytes as u64) <= self.limit
    }

    fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;
    use std::os::unix::net::UnixStream;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;

    const BYTES: u64 = UNIT as u64;

    fn in_memory(length: u64) -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("image", flags).unwrap());
        file.set_len(length).unwrap();
        file
    }

    #[test]
    fn what_a_socket_has_is_in_the_file() {
        let page = page_size();
        let file = in_memory(3 * page as u64 + 100);
        let pages = MappedFile::of(&file).unwrap();
        let (mut client, socket) = UnixStream::pair().unwrap();
        client.write_all(&vec![7; 2 * page]).unwrap();
        assert_eq!(pages.receive_from(socket.as_fd(), 10, page, &mut []).unwrap(), page);
        assert_eq!(
            pages.receive_from(socket.as_fd(), page as u64 + 10, 2 * page - 10, &mut []).unwrap(),
            page
        );
        let mut found = vec![0; 3 * page + 100];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found[..10] == [0; 10] && found[2 * page + 10..] == vec![0; page + 90]);
        assert!(found[10..2 * page + 10].iter().all(|byte| *byte == 7));
        // The last part of a page could not be kept.
        for (offset, most) in [(3 * page as u64, 1), (1, 3 * page), (u64::MAX, 2)] {
            let error = pages.receive_from(socket.as_fd(), offset, most, &mut []).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(!pages.prepare(offset, most as u64));
        }
    }

    #[test]
    fn what_follows_is_kept_apart() {
        let page = page_size();
        let file = in_memory(2 * page as u64);
        let pages = MappedFile::of(&file).unwrap();
        let (mut client, socket) = UnixStream::pair().unwrap();
        let mut behind = [0; 28];
        client.write_all(&[&vec![7; page][..], &[8; 40]].concat()).unwrap();
        let count = pages.receive_from(socket.as_fd(), page as u64, page, &mut behind).unwrap();
        assert!(count == page + 28 && behind == [8; 28]);
        let mut found = vec![0; 2 * page];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found == [vec![0; page], vec![7; page]].concat());
        // Less than the first piece.
        assert_eq!(pages.receive_from(socket.as_fd(), 0, page, &mut behind).unwrap(), 12);
        let error = pages.receive_from(socket.as_fd(), 0, page, &mut behind).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_file_that_became_shorter_takes_nothing_from_the_socket() {
        let page = page_size();
        let file = in_memory(2 * page as u64);
        let pages = MappedFile::of(&file).unwrap();
        let (mut client, socket) = UnixStream::pair().unwrap();
        // What is sent with one call comes to the file as a whole, or not.
        (0..2).for_each(|_| client.write_all(&vec![7; page]).unwrap());
        file.set_len(page as u64).unwrap();
        assert!(pages.receive_from(socket.as_fd(), page as u64, page, &mut []).is_err());
        assert_eq!(rustix::io::ioctl_fionread(&socket).unwrap(), 2 * page as u64);
        assert_eq!(pages.receive_from(socket.as_fd(), 0, 2 * page, &mut []).unwrap(), page);
        assert_eq!(rustix::io::ioctl_fionread(&socket).unwrap(), page as u64);
    }

    #[test]
    fn a_file_that_cannot_be_mapped_is_not() {
        assert!(MappedFile::of(&in_memory(page_size() as u64 - 1)).is_none());
        let sealed = in_memory(BYTES);
        fcntl_add_seals(&sealed, SealFlags::WRITE).unwrap();
        assert!(MappedFile::of(&sealed).is_none());
        static BUDGET: Budget = Budget::of(BYTES);
        assert!(MappedFile::within(&in_memory(MOST_BUDGETS * BYTES), &BUDGET).is_some());
        assert!(MappedFile::within(&in_memory((MOST_BUDGETS + 1) * BYTES), &BUDGET).is_none());
        assert!(MappedFile::of(&File::open("/").unwrap()).is_none());
    }

    #[test]
    fn what_is_written_again_is_mapped_as_far_as_the_budget_goes() {
        static BUDGET: Budget = Budget::of(3 * BYTES);
        let used = || BUDGET.used.load(Ordering::Relaxed) / BYTES;
        let file = in_memory(8 * BYTES - page_size() as u64);
        let pages = MappedFile::within(&file, &BUDGET).unwrap();
        let mapped = |units: Range<u64>| {
            pages.prepare(units.start * BYTES, (units.end - units.start) * BYTES)
        };
        assert!(!mapped(0..2) && used() == 0);
        assert!(mapped(0..2) && used() == 2);
        // Part of it for the first time.
        assert!(!mapped(1..3) && mapped(1..3) && used() == 3);
        assert!(mapped(0..3) && used() == 3);
        // No more than that.
        assert!(!mapped(3..4) && !mapped(3..4) && used() == 3);
        pages.forget(BYTES + 1, 1);
        pages.forget(u64::MAX, u64::MAX);
        assert!(used() == 2 && mapped(0..1) && !mapped(0..2) && mapped(0..2) && used() == 3);
        // The last one is not whole.
        assert!((0..3).all(|_| !pages.prepare(7 * BYTES, BYTES - page_size() as u64)));
        pages.forget(0, u64::MAX);
        assert_eq!(used(), 0);
        assert!(!mapped(0..1) && mapped(0..1));
        drop(pages);
        assert_eq!(used(), 0);
    }

    #[test]
    fn a_unit_is_mapped_when_each_of_its_pages_was_written() {
        static BUDGET: Budget = Budget::of(8 * BYTES);
        const PAGE: u64 = 4096;
        let file = in_memory(4 * BYTES);
        let pages = MappedFile::within(&file, &BUDGET).unwrap();
        let parts = BYTES / PAGE;
        for part in (0..parts - 1).chain(0..parts) {
            assert!(!pages.prepare(BYTES + part * PAGE, PAGE), "part {part}");
        }
        assert!(pages.prepare(BYTES + 3 * PAGE, 1) && !pages.prepare(BYTES + 3 * PAGE, 0));
        // The other unit is not.
        assert!(!pages.prepare(2 * BYTES - 1, 2));
        for _ in 0..2 {
            assert!(!pages.prepare(2 * BYTES - PAGE, BYTES));
        }
        // All of it was written by now, but for the last part.
        assert!(!pages.prepare(3 * BYTES - PAGE, 1) && pages.prepare(2 * BYTES - PAGE, BYTES));
        pages.forget(BYTES, 1);
        assert!(!pages.prepare(BYTES, 1) && pages.prepare(2 * BYTES, BYTES));
    }
}
