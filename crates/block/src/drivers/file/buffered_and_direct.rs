//! The file driver of bulk writes: through the page cache and around it at the same time.
//!
//! A copy into the page cache keeps a processor busy and the disk idle; direct I/O does the
//! reverse. Here one thread does both. As long as not too many large writes are under way around the
//! cache it copies the next into memory of its own, which stays in the caches of the processor,
//! and sends it off through a ring; the one after that it copies into the page cache. A fast disk
//! takes most of the work, a slow one little, and neither is waited for.
//!
//! A server has memory that its clients wait for, and what they rewrite is best kept: there, large
//! writes go around the page cache from where they are, and only if it has nothing of their range.
//!
//! The two ways never share a page of the page cache: only writes of whole pages go around it, and
//! the queue layer lets no two requests that overlap be under way together.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use super::open::OpenFile;
use super::uring::{UringDriver, UringQueue};
use super::{page_cache, transfer, unwaiting};
use crate::bio::Operation;
use crate::driver::{Bell, Completions, Driver, DriverQueue, OpenError, QueueContext, Wait, drain};
use crate::memory::{Buffer, BufferPool};
use crate::request::{Failure, Request, RequestList};
use crate::units::{Limits, SECTOR_SIZE, Sector};

/// Memory for writes around the page cache: some thirty of them. Measured with builds of 1.4 GB in
/// a virtual machine: with a quarter of it the disk has too little to do in between and more goes
/// through the page cache, which costs a fifth of the time; with twice as much nothing is gained,
/// and the writes under way at the end are waited for.
const POOL_BYTES: usize = 16 << 20;

/// Shorter writes go through the page cache: they are metadata, which is read again soon, and a
/// disk is slow with them.
const AROUND_MIN: u64 = 128 << 10;

/// Writes of a queue of a server around the page cache at a time; more go through it.
const LENT: usize = 32;

/// Moves bytes through the page cache, and large writes around it too.
pub(super) struct BufferedAndDirect {
    file: Arc<OpenFile>,
    around: Arc<UringDriver>,
    /// Where the bytes are on the way around: copied to memory registered with the ring, or lent by
    /// their request.
    pool: Option<BufferPool>,
    /// Offset and length of what goes around are multiples of this, in bytes.
    unit: u64,
}

impl BufferedAndDirect {
    /// A driver for bulk writes to `file`; `None` where direct I/O or rings are not to be had.
    pub(super) fn copying(file: &Arc<OpenFile>) -> Option<Self> {
        Self::new(file, true)
    }

    /// A driver for a server of `file`; `None` also where it is not known what the page cache has.
    pub(super) fn lending(file: &Arc<OpenFile>) -> Option<Self> {
        page_cache::pages(file.file(), 0, 1).ok()?;
        Self::new(file, false)
    }

    fn new(file: &Arc<OpenFile>, copies: bool) -> Option<Self> {
        let around = file.reopened_direct()?;
        super::uring::try_out(false).ok()?;
        let unit = around.block().max(rustix::param::page_size() as u64);
        let pool = copies.then(|| BufferPool::registrable(POOL_BYTES));
        let around = UringDriver { file: Arc::new(around), polled: false, pool: pool.clone() };
        Some(Self { file: Arc::clone(file), around: Arc::new(around), pool, unit })
    }

    /// Whether `request` may go around the page cache.
    fn may_go_around(&self, request: &Request) -> bool {
        request.operation() == Operation::Write
            && !request.is_force_unit_access()
            && request.length() >= AROUND_MIN
            && request.length().is_multiple_of(self.unit)
            && (request.sector().0 * SECTOR_SIZE).is_multiple_of(self.unit)
    }

    /// Whether the page cache has nothing of the range of `request`, whose memory will do.
    fn may_lend(&self, request: &Request) -> bool {
        let alignment = self.around.limits().memory_alignment;
        let fits = |piece: &[u8]| (piece.as_ptr() as usize | piece.len()).is_multiple_of(alignment);
        let offset = request.sector().0 * SECTOR_SIZE;
        let cached = || page_cache::pages(self.file.file(), offset, request.length());
        request.gather().all(fits) && cached().is_ok_and(|pages| pages == 0)
    }
}

impl Driver for BufferedAndDirect {
    type Queue = MixedQueue;

    fn name(&self) -> &str {
        self.file.name()
    }

    fn capacity(&self) -> Sector {
        self.file.capacity()
    }

    fn limits(&self) -> Limits {
        self.file.limits()
    }

    fn is_read_only(&self) -> bool {
        self.file.is_read_only()
    }

    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<MixedQueue, OpenError> {
        Ok(MixedQueue {
            driver: Arc::clone(self),
            ring: self.around.open_queue(context)?,
            ended: Completions::default(),
            goes_around: true,
        })
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        Some(transfer::execute(&self.file, request))
    }

    fn place(&self, request: &Request) -> Option<&Arc<File>> {
        unwaiting::place(&self.file, request)
    }

    fn splice_target(&self, sector: Sector, length: u64) -> Option<&File> {
        unwaiting::splice_target(&self.file, sector, length)
    }

    fn execute_unwaiting(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        let goes_around =
            || self.may_go_around(request) && (self.pool.is_some() || self.may_lend(request));
        if request.is_seldom_waiting() && goes_around() {
            return None;
        }
        unwaiting::execute(&self.file, request)
    }
}

/// What one thread drives.
pub(super) struct MixedQueue {
    driver: Arc<BufferedAndDirect>,
    ring: UringQueue,
    /// Writes around the page cache that ended; empty between calls.
    ended: Completions,
    /// No write around the page cache has failed.
    goes_around: bool,
}

impl MixedQueue {
    /// Sends `request` around the page cache, or gives it back. If what it writes is copied, its
    /// submitter has its memory again while that is in the caches of the processor.
    fn send_around(&mut self, mut request: Request) -> Option<Request> {
        if !self.goes_around || !self.driver.may_go_around(&request) {
            return Some(request);
        }
        match &self.driver.pool {
            Some(pool) => match memory_for(&request, pool) {
                Some(memory) => request.move_to(memory),
                None => return Some(request),
            },
            None if self.in_flight() < LENT && self.driver.may_lend(&request) => {}
            None => return Some(request),
        }
        self.ring.start(&mut RequestList::of(request), &mut self.ended);
        None
    }

    /// Hands on the writes that ended.
    fn end_around(&mut self, completions: &mut Completions) {
        for mut request in std::mem::take(&mut self.ended.ended) {
            let result = request.inner.failure.take().map_or(Ok(()), |_| {
                // The page cache may take what the disk does not take directly; if not, its answer
                // is the one to give.
                self.goes_around = false;
                transfer::execute(&self.driver.file, &mut request)
            });
            completions.push(request, result);
        }
    }
}

/// Memory of the ring for the bytes of `request`; `None` if there is none now.
fn memory_for(request: &Request, pool: &BufferPool) -> Option<Buffer> {
    pool.try_get(usize::try_from(request.length()).ok()?)
}

impl DriverQueue for MixedQueue {
    // The ring is looked after between any two copies.
    const BATCH: usize = 1;

    fn start(&mut self, requests: &mut RequestList, completions: &mut Completions) {
        while let Some(request) = requests.pop() {
            if let Some(mut request) = self.send_around(request) {
                let result = transfer::execute(&self.driver.file, &mut request);
                completions.push(request, result);
            }
        }
    }

    fn reap(&mut self, completions: &mut Completions, wait: Wait) -> io::Result<()> {
        let wait = if completions.is_empty() { wait } else { Wait::No };
        let reaped = self.ring.reap(&mut self.ended, wait);
        self.end_around(completions);
        reaped
    }

    fn in_flight(&self) -> usize {
        self.ring.in_flight()
    }

    fn waker(&self) -> Waker {
        self.ring.waker()
    }

    fn bell(&self) -> Option<Bell> {
        self.ring.bell()
    }

    fn expect(&mut self, event: BorrowedFd<'_>) -> Option<Instant> {
        self.ring.expect(event)
    }

    fn ignore(&mut self) {
        self.ring.ignore();
    }

    fn ring(&mut self, bell: &Bell) {
        self.ring.ring(bell);
    }

    fn cancel(&mut self, tag: u32) {
        self.ring.cancel(tag);
    }
}

impl Drop for MixedQueue {
    fn drop(&mut self) {
        let driver = Arc::clone(&self.driver);
        drain(self, driver.name());
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    use super::*;
    use crate::{Batch, Bio, BlockDevice, Leaf, Plug, QueueOptions, Segment, SegmentList};

    const LENGTH: u64 = 16 << 20;
    const LARGE: usize = 512 << 10;

    /// A file on the disk of the build, twice.
    fn file() -> (File, Arc<OpenFile>) {
        let program = std::env::current_exe().unwrap();
        let file = tempfile::tempfile_in(program.parent().unwrap()).unwrap();
        file.set_len(LENGTH).unwrap();
        let copy = file.try_clone().unwrap();
        (file, Arc::new(OpenFile::from_file(copy, "image", false, false).unwrap()))
    }

    fn made(driver: Option<BufferedAndDirect>) -> BufferedAndDirect {
        driver.expect("the disk of the build has direct I/O")
    }

    fn device(driver: BufferedAndDirect) -> Arc<dyn BlockDevice> {
        Arc::new(Leaf::start(driver, QueueOptions::default()).unwrap())
    }

    /// Writes `length` bytes, all `byte`, at `offset`.
    fn write(device: &Arc<dyn BlockDevice>, offset: u64, length: usize, byte: u8) {
        let mut buffer = Buffer::zeroed(length);
        buffer.fill(byte);
        let batch = Batch::new();
        let bio = Bio::write(Sector(offset / SECTOR_SIZE), buffer).in_batch(&batch);
        Plug::new(device).submit(bio);
        batch.wait().unwrap();
    }

    fn is_cached(file: &File, offset: u64) -> bool {
        if let Ok(pages) = page_cache::pages(file, offset, 1) {
            return pages == 1;
        }
        // Before Linux 6.5. This starts a read-ahead, which may be over before it answers.
        let mut byte = [0];
        let slice = io::IoSliceMut::new(&mut byte);
        match preadv2(file, &mut [slice], offset, ReadWriteFlags::NOWAIT) {
            Ok(count) => count == 1,
            Err(error) => {
                assert_eq!(error, Errno::AGAIN);
                false
            }
        }
    }

    fn assert_filled(file: &File, offset: u64, length: usize, byte: u8) {
        let mut found = vec![!byte; length];
        file.read_exact_at(&mut found, offset).unwrap();
        assert!(found.iter().all(|found| *found == byte));
    }

    #[test]
    fn large_writes_of_whole_pages_go_around_the_page_cache() {
        let (file, opened) = file();
        let device = device(made(BufferedAndDirect::copying(&opened)));
        write(&device, 1 << 20, LARGE, 1);
        assert!(!is_cached(&file, 1 << 20));
        write(&device, 4 << 20, 4096, 2);
        assert!(is_cached(&file, 4 << 20));
        write(&device, (8 << 20) + SECTOR_SIZE, LARGE, 3);
        assert!(is_cached(&file, (8 << 20) + SECTOR_SIZE));
        drop(device);
        assert_filled(&file, 1 << 20, LARGE, 1);
        assert_filled(&file, 4 << 20, 4096, 2);
        assert_filled(&file, (8 << 20) + SECTOR_SIZE, LARGE, 3);
    }

    #[test]
    fn a_server_rewrites_in_the_page_cache_what_it_has() {
        let (file, opened) = file();
        let driver = BufferedAndDirect::lending(&opened);
        if page_cache::pages(&file, 0, 1).is_err() {
            // Linux before 6.5.
            assert!(driver.is_none());
            return;
        }
        let device = device(made(driver));
        write(&device, 1 << 20, LARGE, 1);
        assert!(!is_cached(&file, 1 << 20));
        assert_filled(&file, 1 << 20, LARGE, 1);
        assert!(is_cached(&file, 1 << 20));
        write(&device, 1 << 20, LARGE, 2);
        assert!(is_cached(&file, 1 << 20));
        // One page of the range will do.
        assert_filled(&file, (4 << 20) + (LARGE as u64) - 1, 1, 0);
        write(&device, 4 << 20, LARGE, 3);
        assert!(is_cached(&file, 4 << 20));
        // Memory that direct I/O does not take.
        let memory = Arc::new(vec![4; LARGE + 1]);
        let batch = Batch::new();
        let odd = usize::from((memory.as_ptr() as usize).is_multiple_of(2));
        let segments = SegmentList::from(Segment::shared(&memory, odd..odd + LARGE));
        let bio = Bio::write(Sector((8 << 20) / SECTOR_SIZE), segments);
        Plug::new(&device).submit(bio.in_batch(&batch));
        batch.wait().unwrap();
        assert!(is_cached(&file, 8 << 20));
        drop(device);
        assert_filled(&file, 1 << 20, LARGE, 2);
        assert_filled(&file, 4 << 20, LARGE, 3);
        assert_filled(&file, 8 << 20, LARGE, 4);
    }

    #[test]
    fn what_does_not_go_around_goes_through() {
        let (file, opened) = file();
        let mut driver = made(BufferedAndDirect::copying(&opened));
        // A file that cannot be written in the way around.
        let read_only =
            File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
        let around = OpenFile::unclaimed(read_only.unwrap(), "image", false, true).unwrap();
        let pool = driver.pool.clone();
        driver.around = Arc::new(UringDriver { file: Arc::new(around), polled: false, pool });
        let device = device(driver);
        for round in 0..3 {
            write(&device, 0, 256 << 10, round);
            assert!(is_cached(&file, 0));
            assert_filled(&file, 0, 256 << 10, round);
        }
    }

    #[test]
    fn a_file_in_memory_has_one_way() {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = File::from(rustix::fs::memfd_create("image", flags).unwrap());
        file.set_len(LENGTH).unwrap();
        let opened = Arc::new(OpenFile::from_file(file, "image", false, false).unwrap());
        assert!(BufferedAndDirect::copying(&opened).is_none());
        assert!(BufferedAndDirect::lending(&opened).is_none());
    }
}
