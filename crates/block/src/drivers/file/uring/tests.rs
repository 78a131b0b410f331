//! A driver queue by itself: what the queue layer relies on.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use undercroft_tags::TagSet;

use super::*;
use crate::driver::{Completions, DriverQueue, Wait};
use crate::drivers::file::{Engine, FileDevice, FileOptions, announce_fallback};
use crate::plug::{read_buffer, write_all_at};
use crate::request::RequestList;
use crate::{Batch, Bio, Buffer, Reason, Segment, SegmentList, Waiter};

const DEPTH: u32 = 8;

fn driver(file: File, direct: bool, polled: bool) -> Arc<UringDriver> {
    let file = Arc::new(OpenFile::from_file(file, "image", false, direct).unwrap());
    Arc::new(UringDriver { file, polled, pool: Some(BufferPool::registrable(1 << 20)) })
}

fn open(driver: &Arc<UringDriver>) -> UringQueue {
    driver.open_queue(&QueueContext { index: 0, depth: DEPTH }).unwrap()
}

/// A scratch file on the disk of the sources: a file system in memory may lack direct I/O.
fn scratch(bytes: u64) -> File {
    let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    file.set_len(bytes).unwrap();
    file
}

/// Requests of `bios` with different tags.
fn requests(bios: impl IntoIterator<Item = Bio>) -> RequestList {
    let mut tags = TagSet::new(DEPTH).unwrap().caller();
    let tagged = |bio| {
        let mut request = Request::new(bio);
        request.inner.tag = tags.try_get();
        request
    };
    let mut list = RequestList::default();
    list.extend(bios.into_iter().map(tagged));
    list
}

/// Answers what `queue` puts out until nothing is in flight.
fn finish(queue: &mut UringQueue, mut completions: Completions) {
    loop {
        completions.ended.drain(..).for_each(|request| request.answer("image"));
        if queue.in_flight() == 0 {
            return;
        }
        queue.reap(&mut completions, Wait::Forever).unwrap();
    }
}

/// Executes `bios`, at most as many as there are tags, together.
fn run(queue: &mut UringQueue, bios: impl IntoIterator<Item = Bio>) {
    let mut completions = Completions::default();
    let mut list = requests(bios);
    queue.start(&mut list, &mut completions);
    assert!(list.is_empty(), "a batch of as many requests as there are tags fits");
    finish(queue, completions);
}

fn filled(length: usize, byte: u8) -> Buffer {
    let mut buffer = Buffer::zeroed(length);
    buffer.fill(byte);
    buffer
}

fn read(queue: &mut UringQueue, sector: u64, buffer: Buffer) -> Buffer {
    let (bio, waiter) = Bio::read(Sector(sector), buffer).waited();
    run(queue, [bio]);
    waiter.wait().into_buffer().unwrap()
}

fn every_kind_of_memory(direct: bool, polled: bool) {
    let driver = driver(scratch(1 << 20), direct, polled);
    let mut queue = open(&driver);
    let pool = driver.pool.clone().unwrap();
    let batch = Batch::new();
    let pooled = |byte| {
        let mut buffer = pool.get(4096);
        buffer.fill(byte);
        buffer
    };
    let pieces: SegmentList =
        [4, 5].into_iter().map(|byte| Segment::from(filled(4096, byte))).collect();
    let writes = [
        Bio::write(Sector(0), pooled(1)),
        Bio::write(Sector(8), pooled(2)).force_unit_access(),
        Bio::write(Sector(16), filled(4096, 3)),
        Bio::write(Sector(24), pieces),
    ];
    run(&mut queue, writes.map(|bio| bio.in_batch(&batch)));
    batch.wait().unwrap();
    for (sector, byte) in [(0, 1), (8, 2), (16, 3), (24, 4), (32, 5), (40, 0)] {
        assert_eq!(read(&mut queue, sector, pooled(9))[..], [byte; 4096], "sector {sector}");
        assert_eq!(read(&mut queue, sector, filled(4096, 9))[..], [byte; 4096]);
    }
    let others = [
        Bio::write_zeroes(Sector(8), 4096),
        Bio::discard(Sector(16), 4096).force_unit_access(),
        Bio::flush(),
    ];
    run(&mut queue, others.map(|bio| bio.in_batch(&batch)));
    batch.wait().unwrap();
    let all = read(&mut queue, 0, filled(6 * 4096, 9));
    for (page, byte) in all.chunks(4096).zip([1, 0, 0, 4, 5, 0]) {
        assert_eq!(page, [byte; 4096]);
    }
}

#[test]
fn through_the_page_cache() {
    every_kind_of_memory(false, false);
}

#[test]
fn with_direct_transfers() {
    every_kind_of_memory(true, false);
}

#[test]
fn a_polled_ring_is_for_disks_with_queues_to_poll() {
    let options =
        |engine| FileOptions { engine, direct: true, polled: true, ..FileOptions::default() };
    match FileDevice::from_file(scratch(4096), "image", &options(Engine::Uring)) {
        Ok(_) => every_kind_of_memory(true, true),
        Err(error) => {
            assert!(matches!(error, OpenError::NotPolled { .. }), "{error}");
            static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
            announce_fallback(|fallback| TOLD.lock().push(fallback.to_string()));
            for _ in 0..2 {
                // A ring without polling, which works.
                let device =
                    FileDevice::from_file(scratch(4096), "image", &options(Engine::Auto)).unwrap();
                assert_eq!(device.engine(), Engine::Uring);
                write_all_at(&device, Sector(0), &[7; 4096]).unwrap();
                assert_eq!(read_buffer(&device, Sector(0), 4096).unwrap()[..], [7; 4096]);
            }
            let told = TOLD.lock();
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].contains("disk of image has no queues to poll"), "{told:?}");
        }
    }
}

#[test]
fn what_the_file_lacks_reads_as_zeroes() {
    for direct in [false, true] {
        let file = scratch(0);
        file.write_all_at(&[7; 5000], 0).unwrap();
        let mut queue = open(&driver(file, direct, false));
        let found = read(&mut queue, 0, filled(12288, 9));
        assert_eq!(found[..], [&[7; 5000][..], &[0; 7288]].concat(), "direct {direct}");
        assert_eq!(read(&mut queue, 64, filled(4096, 9))[..], [0; 4096]);
    }
}

/// A file that must not grow takes the pages inside it, then refuses: first a short write.
#[test]
fn a_short_write_goes_on_until_the_error_and_says_how_far_it_came() {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("image", flags).unwrap());
    file.set_len(8192).unwrap();
    fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    let mut queue = open(&driver(file.try_clone().unwrap(), false, false));
    let [inside, outside] = [Batch::new(), Batch::new()];
    let mut request = requests([Bio::write(Sector(8), filled(4096, 1)).in_batch(&inside)]);
    let mut both = request.pop().unwrap();
    let next = Bio::write(Sector(16), filled(4096, 1)).in_batch(&outside);
    assert!(both.accepts(&next, &Limits::default()));
    both.merge(next);
    request.extend([both]);
    let mut completions = Completions::default();
    queue.start(&mut request, &mut completions);
    finish(&mut queue, completions);
    inside.wait().unwrap();
    let error = outside.wait().unwrap_err();
    assert_eq!(error.sector, Sector(16));
    assert!(matches!(error.reason, Reason::Io(_)));
    let mut found = [0; 8192];
    file.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, *[[0; 4096], [1; 4096]].as_flattened());
}

#[test]
fn many_pieces_take_several_entries() {
    let mut queue = open(&driver(scratch(0), false, false));
    let bytes: Vec<u8> = (0..512 * 2500).map(|index| (index / 512 % 251) as u8).collect();
    let whole = Arc::new(Buffer::copy_of(&bytes));
    // Backwards in memory, so that no piece is adjacent to the next.
    let pieces: SegmentList =
        (0..2500).rev().map(|index| Segment::new(&whole, index * 512..(index + 1) * 512)).collect();
    let batch = Batch::new();
    run(&mut queue, [Bio::write(Sector(0), pieces).in_batch(&batch)]);
    batch.wait().unwrap();
    let found = read(&mut queue, 0, Buffer::zeroed(bytes.len()));
    for (piece, index) in found.chunks(512).zip((0..2500_usize).rev()) {
        assert!(piece.iter().all(|&byte| usize::from(byte) == index % 251));
    }
}

#[test]
fn a_waker_ends_the_sleep_from_another_thread() {
    for polled in [false, true] {
        let mut queue = open(&driver(scratch(4096), true, polled));
        let mut completions = Completions::default();
        for round in 0..100 {
            let waker = queue.waker();
            let waking = std::thread::spawn(move || {
                if round % 2 == 0 {
                    std::thread::sleep(Duration::from_micros(200));
                }
                waker.wake();
            });
            queue.reap(&mut completions, Wait::Forever).unwrap();
            waking.join().unwrap();
            // The wake-up may have come when the sleep was over.
            queue.reap(&mut completions, Wait::No).unwrap();
        }
        assert!(completions.is_empty());
    }
}

#[test]
fn a_sleep_ends_at_its_time() {
    for polled in [false, true] {
        let mut queue = open(&driver(scratch(4096), true, polled));
        let until = Instant::now() + Duration::from_millis(20);
        while Instant::now() < until {
            queue.reap(&mut Completions::default(), Wait::Until(until)).unwrap();
        }
    }
}

#[test]
fn a_message_from_another_ring_ends_the_sleep() {
    let (give, take) = mpsc::channel();
    let sleeping = std::thread::spawn(move || {
        let mut queue = open(&driver(scratch(4096), false, false));
        for _ in 0..100 {
            give.send(queue.bell().unwrap()).unwrap();
            queue.reap(&mut Completions::default(), Wait::Forever).unwrap();
        }
    });
    let mut queue = open(&driver(scratch(4096), false, false));
    let mut last = None;
    for bell in take {
        queue.ring(&bell);
        queue.reap(&mut Completions::default(), Wait::No).unwrap();
        last = Some(bell);
    }
    sleeping.join().unwrap();
    // The thread is gone: the message is lost, which harms nothing.
    queue.ring(&last.unwrap());
    for _ in 0..3 {
        queue.reap(&mut Completions::default(), Wait::No).unwrap();
    }
}

#[test]
fn closing_waits_for_requests_in_flight() {
    for direct in [false, true] {
        let driver = driver(scratch(1 << 20), direct, false);
        let mut queue = open(&driver);
        let started: Vec<(Bio, Waiter)> = (0..u64::from(DEPTH))
            .map(|index| Bio::read(Sector(index * 256), filled(128 << 10, 9)).waited())
            .collect();
        let (bios, waiters): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        let mut completions = Completions::default();
        queue.start(&mut requests(bios), &mut completions);
        completions.ended.drain(..).for_each(|request| request.answer("image"));
        queue.cancel(3);
        queue.cancel(3);
        drop(queue);
        for waiter in waiters {
            let completion = waiter.wait();
            let cancelled = completion.result.is_err_and(|error| {
                error.io_error().and_then(io::Error::raw_os_error) == Some(libc::ECANCELED)
            });
            assert!(cancelled || completion.buffer.unwrap().iter().all(|&byte| byte == 0));
        }
    }
}

#[test]
fn memory_of_the_pool_is_registered_when_it_is_needed() {
    let driver = driver(scratch(4096), true, false);
    let mut queue = open(&driver);
    assert!(!queue.is_registered());
    read(&mut queue, 0, Buffer::zeroed(512));
    assert!(queue.is_registered(), "this user may lock a megabyte");
}
