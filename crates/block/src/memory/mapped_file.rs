//! Pages of a file that is in memory, mapped: bytes that go there take no lock of the file, and no page is
//! looked for.
#![allow(unsafe_code, reason = "a mapping, and the call that fills parts of it")]

use std::ffi::c_void;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::system::sysinfo;

/// Bytes whose pages are mapped together. The kernel maps as many in one fault if the page cache has them.
const UNIT: usize = 64 << 10;

/// Of the memory of the machine, the part that is mapped at most.
const SHARE: u64 = 16;

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
    written: Units,
    mapped: Units,
    budget: &'static Budget,
}

/// A bit for each unit of a file.
struct Units(Box<[AtomicU64]>);

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
    /// Maps the whole pages of `file`, which is in memory and open for reads and writes; none if it has none,
    /// or the system refuses.
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
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the place is the system's choice, so nothing else is mapped there. The system refuses
        // no bytes.
        let start =
            unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0) }.ok()?;
        let start = NonNull::new(start)?;
        let (written, mapped) = (Units::of(length), Units::of(length));
        Some(Self { start, length, written, mapped, budget })
    }

    /// Fills up to `most` bytes of the file from `offset` on with what `source` has to be read; returns
    /// their number.
    ///
    /// # Errors
    /// The file has no whole pages there, or no room for them, or the error of `source`. Bytes that were
    /// not taken from `source` are still there, and what the range of the file has is not known.
    pub fn read_from(&self, source: BorrowedFd<'_>, offset: u64, most: usize) -> io::Result<usize> {
        let range = self.range(offset, most as u64).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the range is inside the mapping, which lasts as long as `self`. Nothing in this process
        // refers to its memory, so it is of no account that others write there, too. Where there is no
        // page, the call fails.
        let result = unsafe {
            let place = self.start.as_ptr().byte_add(range.start);
            libc::read(source.as_raw_fd(), place, range.len())
        };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// Hears that `length` bytes from `offset` on are written next, and says whether that had better be to
    /// the pages, which are mapped.
    ///
    /// To map them costs about as much as is won by one write. So it is done for the second write to
    /// a range, as long as the process has not mapped too much. The first one, if it is by other means, makes
    /// the pages; each would cost a fault here.
    pub fn prepare(&self, offset: u64, length: u64) -> bool {
        let Some(range) = self.range(offset, length) else { return false };
        // The kernel maps the pages at the ends when they are filled.
        let units = range.start.div_ceil(UNIT)..range.end / UNIT;
        let Some(first) = units.clone().find(|unit| !self.mapped.has(*unit)) else {
            return !units.is_empty();
        };
        let units = first..units.end;
        if self.written.set(units.clone()) > 0 {
            return false;
        }
        let bytes = units.start * UNIT..units.end * UNIT;
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

impl Units {
    /// None of a file of `length` bytes.
    fn of(length: usize) -> Self {
        let words = length.div_ceil(UNIT).div_ceil(64);
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    fn has(&self, unit: usize) -> bool {
        self.bit(unit).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Sets `units`; returns how many were not.
    fn set(&self, units: Range<usize>) -> usize {
        let bits = units.filter_map(|unit| self.bit(unit));
        bits.filter(|(word, bit)| word.fetch_or(*bit, Ordering::Relaxed) & bit == 0).count()
    }

    /// Clears `units`; returns how many were set.
    fn clear(&self, units: Range<usize>) -> usize {
        let bits = units.filter_map(|unit| self.bit(unit));
        bits.filter(|(word, bit)| word.fetch_and(!bit, Ordering::Relaxed) & bit != 0).count()
    }

    fn bit(&self, unit: usize) -> Option<(&AtomicU64, u64)> {
        self.0.get(unit / 64).map(|word| (word, 1 << (unit % 64)))
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
        assert_eq!(pages.read_from(socket.as_fd(), 10, page).unwrap(), page);
        assert_eq!(pages.read_from(socket.as_fd(), page as u64 + 10, 2 * page - 10).unwrap(), page);
        let mut found = vec![0; 3 * page + 100];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found[..10] == [0; 10] && found[2 * page + 10..] == vec![0; page + 90]);
        assert!(found[10..2 * page + 10].iter().all(|byte| *byte == 7));
        // The last part of a page could not be kept.
        for (offset, most) in [(3 * page as u64, 1), (1, 3 * page), (u64::MAX, 2)] {
            let error = pages.read_from(socket.as_fd(), offset, most).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(!pages.prepare(offset, most as u64));
        }
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
        assert!(pages.read_from(socket.as_fd(), page as u64, page).is_err());
        assert_eq!(rustix::io::ioctl_fionread(&socket).unwrap(), 2 * page as u64);
        assert_eq!(pages.read_from(socket.as_fd(), 0, 2 * page).unwrap(), page);
        assert_eq!(rustix::io::ioctl_fionread(&socket).unwrap(), page as u64);
    }

    #[test]
    fn a_file_that_cannot_be_mapped_is_not() {
        assert!(MappedFile::of(&in_memory(page_size() as u64 - 1)).is_none());
        let sealed = in_memory(BYTES);
        fcntl_add_seals(&sealed, SealFlags::WRITE).unwrap();
        assert!(MappedFile::of(&sealed).is_none());
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
        // What has no whole unit is never written again.
        assert!((0..3).all(|_| !pages.prepare(1, 2 * BYTES - 2)));
        assert!((0..3).all(|_| !pages.prepare(7 * BYTES, BYTES - page_size() as u64)));
        pages.forget(0, u64::MAX);
        assert_eq!(used(), 0);
        assert!(!mapped(0..1) && mapped(0..1));
        drop(pages);
        assert_eq!(used(), 0);
    }
}
