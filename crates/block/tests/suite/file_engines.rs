//! The two engines of the file device do the same, through the page cache and with direct I/O.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use tempfile::TempDir;
use undercroft_block::{
    Batch, Bio, BlockDevice, Buffer, BufferPool, CompletionQueue, Engine, FileDevice, FileOptions,
    NullDevice, NullOptions, Plug, PlugThreshold, QueueOptions, Reason, Sector, flush,
    write_all_at,
};

const BLOCK: usize = 4096;

/// A file on the disk of the build.
struct Scratch {
    directory: TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self { directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    fn write(&self, contents: &[u8]) -> PathBuf {
        fs::write(self.path(), contents).unwrap();
        self.path()
    }
}

/// Every way to move bytes.
fn ways() -> Vec<FileOptions> {
    let pool = || Some(BufferPool::registrable(1 << 20));
    let way = |engine, direct, threads| FileOptions {
        engine,
        direct,
        threads,
        pool: pool(),
        ..FileOptions::default()
    };
    vec![
        way(Engine::Threads, false, 0),
        way(Engine::Threads, false, 2),
        way(Engine::Threads, true, 2),
        way(Engine::Uring, false, 0),
        way(Engine::Uring, true, 0),
        way(Engine::Mixed, false, 1),
        way(Engine::Around, false, 2),
    ]
}

fn open(path: &Path, options: &FileOptions) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open_with(path, options).unwrap())
}

fn filled(length: usize, byte: u8) -> Buffer {
    let mut buffer = Buffer::zeroed(length);
    buffer.fill(byte);
    buffer
}

/// Writes through the queue, not in this thread.
fn write(device: &Arc<dyn BlockDevice>, sector: u64, buffer: Buffer) {
    let batch = Batch::new();
    Plug::new(device).submit(Bio::write(Sector(sector), buffer).in_batch(&batch));
    batch.wait().unwrap();
}

/// Reads through the queue, not in this thread.
fn read(device: &Arc<dyn BlockDevice>, sector: u64, length: usize) -> Buffer {
    let (bio, waiter) = Bio::read(Sector(sector), filled(length, 0xee)).waited();
    Plug::new(device).submit(bio);
    waiter.wait().into_buffer().unwrap()
}

#[test]
fn the_engine_asked_for_is_used() {
    let scratch = Scratch::new();
    let path = scratch.write(&[0; BLOCK]);
    for options in ways() {
        assert_eq!(FileDevice::open_with(&path, &options).unwrap().engine(), options.engine);
    }
    let auto = FileOptions { engine: Engine::Auto, ..FileOptions::default() };
    assert_eq!(FileDevice::open_with(&path, &auto).unwrap().engine(), Engine::Threads);
    let read = FileOptions { read_only: true, ..auto.clone() };
    assert_eq!(FileDevice::open_with(&path, &read).unwrap().engine(), Engine::Uring);
    let direct = FileOptions { direct: true, ..auto };
    assert_eq!(FileDevice::open_with(&path, &direct).unwrap().engine(), Engine::Uring);
}

#[test]
fn the_last_sector_ends_with_zeroes() {
    for options in ways() {
        let scratch = Scratch::new();
        let device = open(&scratch.write(&[7; BLOCK + 700]), &options);
        assert_eq!(device.capacity(), Sector(10));
        if !options.direct {
            assert_eq!(read(&device, 8, 1024)[..], [&[7; 700][..], &[0; 324]].concat());
        }
        assert_eq!(read(&device, 0, BLOCK)[..], [7; BLOCK]);
    }
}

#[test]
fn a_removed_file_is_still_a_device() {
    for options in ways() {
        let scratch = Scratch::new();
        let device = open(&scratch.write(&[7; 4 * BLOCK]), &options);
        fs::remove_file(scratch.path()).unwrap();
        write(&device, 8, filled(BLOCK, 8));
        flush(&*device).unwrap();
        let found = read(&device, 0, 4 * BLOCK);
        for (block, byte) in found.chunks(BLOCK).zip([7, 8, 7, 7]) {
            assert_eq!(block, [byte; BLOCK]);
        }
        assert!(!scratch.path().exists(), "nothing is created");
    }
}

#[test]
fn zeroes_and_discards_give_space_back() {
    for options in ways() {
        let scratch = Scratch::new();
        let device = open(&scratch.write(&[7; 64 * BLOCK]), &options);
        flush(&*device).unwrap();
        let before = fs::metadata(scratch.path()).unwrap().blocks();
        let batch = Batch::new();
        let plug = Plug::new(&device);
        let length = 16 * BLOCK as u64;
        plug.submit(Bio::write_zeroes(Sector(0), length).in_batch(&batch));
        plug.submit(Bio::discard(Sector(256), length).force_unit_access().in_batch(&batch));
        batch.wait().unwrap();
        let after = fs::metadata(scratch.path()).unwrap();
        assert!(after.blocks() + 256 <= before, "{} of {before} sectors", after.blocks());
        assert_eq!(after.len(), 64 * BLOCK as u64);
        assert_eq!(read(&device, 0, 16 * BLOCK)[..], [0; 16 * BLOCK]);
        assert_eq!(read(&device, 128, BLOCK)[..], [7; BLOCK]);
    }
}

#[test]
fn what_the_system_refuses_fails_with_its_own_address() {
    for options in ways() {
        let scratch = Scratch::new();
        // The descriptor does not allow the access that the options name.
        let file = File::open(scratch.write(&[7; 16 * BLOCK])).unwrap();
        let device: Arc<dyn BlockDevice> =
            Arc::new(FileDevice::from_file(file, "disk", &options).unwrap());
        let plug = Plug::new(&device);
        let submit = |sector| {
            let (bio, waiter) = Bio::write(Sector(sector), filled(BLOCK, 1)).waited();
            plug.submit(bio);
            (waiter, sector)
        };
        let submitted = [submit(0), submit(8), submit(24)];
        for (waiter, sector) in submitted {
            let error = waiter.wait().result.unwrap_err();
            assert_eq!((error.sector, error.length), (Sector(sector), BLOCK as u64));
            assert_eq!(&*error.device, "disk");
            assert!(error.io_error().is_some(), "{error:?}");
        }
        assert_eq!(read(&device, 0, BLOCK)[..], [7; BLOCK]);
    }
}

/// A file that must not grow takes the pages inside it, then refuses: first a short write.
#[test]
fn a_short_write_spares_the_bios_that_were_done() {
    for options in ways().into_iter().filter(|options| !options.direct) {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("image", flags).unwrap());
        file.set_len(2 * BLOCK as u64).unwrap();
        let sealed = file.try_clone().unwrap();
        let device = FileDevice::from_file(sealed, "image", &options).unwrap();
        // The device believes in more than the file may have.
        device.set_len(4 * BLOCK as u64).unwrap();
        file.set_len(2 * BLOCK as u64).unwrap();
        fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        let device: Arc<dyn BlockDevice> = Arc::new(device);
        let [inside, outside] = [Batch::new(), Batch::new()];
        let plug = Plug::new(&device);
        plug.submit(Bio::write(Sector(8), filled(BLOCK, 1)).in_batch(&inside));
        plug.submit(Bio::write(Sector(16), filled(BLOCK, 2)).in_batch(&outside));
        plug.flush();
        inside.wait().unwrap();
        let error = outside.wait().unwrap_err();
        assert_eq!((error.sector, error.length), (Sector(16), BLOCK as u64));
        assert!(matches!(error.reason, Reason::Io(_)));
        assert_eq!(device.statistics().requests, 1, "one short write, not two");
        let mut found = [9; BLOCK];
        file.read_exact_at(&mut found, BLOCK as u64).unwrap();
        assert_eq!(found, [1; BLOCK]);
    }
}

/// One thread has a queue of its own in each of several devices, rings and timers mixed, and sleeps
/// until any of them has something.
#[test]
fn a_thread_waits_for_several_queues_at_once() {
    let scratches = [(); 4].map(|()| Scratch::new());
    let options = FileOptions { engine: Engine::Uring, direct: true, ..FileOptions::default() };
    let mut devices: Vec<Arc<dyn BlockDevice>> =
        scratches.iter().map(|scratch| open(&scratch.write(&[7; 64 * BLOCK]), &options)).collect();
    let null = NullOptions { service_time: Duration::from_micros(200), ..NullOptions::default() };
    devices.push(Arc::new(NullDevice::null(null, QueueOptions::default()).unwrap()));
    let claims: Vec<_> = devices.iter().map(|device| device.claim().unwrap()).collect();
    let queue = CompletionQueue::new();
    let mut ended = [0; 5];
    for round in 0..300_u64 {
        for (number, device) in devices.iter().enumerate() {
            let bio = Bio::read(Sector(round % 64 * 8), filled(BLOCK, 7));
            Plug::new(device).submit(bio.in_queue(&queue, number as u64));
        }
        // Of some rounds a part stays behind, so that the queues do not end together.
        let wait_for = if round % 3 == 0 { 2 } else { devices.len() };
        for _ in 0..wait_for {
            let finished = queue.wait();
            ended[finished.cookie as usize] += 1;
            assert_eq!(finished.completion.into_buffer().unwrap()[..], [7; BLOCK]);
        }
    }
    while ended.iter().sum::<u64>() < 5 * 300 {
        ended[queue.wait().cookie as usize] += 1;
    }
    assert_eq!(ended, [300; 5]);
    drop(claims);
}

/// Two tags, and a time limit that nothing reaches: every request waits for a tag of another.
#[test]
fn a_full_set_of_tags_is_waited_for() {
    for options in ways() {
        let queue = QueueOptions {
            depth: 2,
            time_limit: Some(Duration::from_secs(600)),
            ..QueueOptions::default()
        };
        let scratch = Scratch::new();
        let device = open(&scratch.write(&[7; 64 * BLOCK]), &FileOptions { queue, ..options });
        let waiters: Vec<_> = (0..64)
            .map(|index| {
                let plug = Plug::with_threshold(&device, PlugThreshold { bios: 1, bytes: 0 });
                let (bio, waiter) =
                    Bio::read(Sector(index * 8 % 512), filled(BLOCK, 0xee)).waited();
                plug.submit(bio);
                waiter
            })
            .collect();
        for waiter in waiters {
            assert_eq!(waiter.wait().into_buffer().unwrap()[..], [7; BLOCK]);
        }
    }
}

#[test]
fn direct_transfers_refuse_unaligned_ranges() {
    for options in ways().into_iter().filter(|options| options.direct) {
        let scratch = Scratch::new();
        let device = open(&scratch.write(&[7; 4 * BLOCK]), &options);
        let limits = device.limits();
        assert!(limits.memory_alignment > 1, "{limits:?}");
        let mut buffer = Buffer::zeroed(2 * BLOCK);
        let part = buffer.split_off(1);
        let (bio, waiter) = Bio::read(Sector(0), part).waited();
        Plug::new(&device).submit(bio);
        let error = waiter.wait().result.unwrap_err();
        assert!(matches!(error.reason, Reason::Misaligned { .. }), "{error:?}");
        write_all_at(&*device, Sector(0), &[8; BLOCK]).unwrap();
        assert_eq!(fs::read(scratch.path()).unwrap()[..BLOCK], [8; BLOCK]);
    }
}

/// A file that another program cuts has not become one of zeroes.
#[test]
fn what_was_cut_off_a_file_is_an_error() {
    for options in ways() {
        let scratch = Scratch::new();
        let path = scratch.write(&[7; 16 * BLOCK]);
        let device = open(&path, &options);
        File::options().write(true).open(&path).unwrap().set_len(6 * BLOCK as u64).unwrap();
        assert_eq!(read(&device, 0, BLOCK)[..], [7; BLOCK], "{:?}", options.engine);
        for (sector, length) in [(40, 2 * BLOCK), (64, BLOCK), (120, BLOCK)] {
            let (bio, waiter) = Bio::read(Sector(sector), filled(length, 0xee)).waited();
            Plug::new(&device).submit(bio);
            let error = waiter.wait().result.unwrap_err();
            let why = error.io_error().unwrap().to_string();
            assert!(why.contains("it was cut while it was open"), "{why}");
        }
        // Writing brings back the bytes that were cut off.
        write(&device, 120, filled(BLOCK, 8));
        assert_eq!(read(&device, 120, BLOCK)[..], [8; BLOCK]);
        assert_eq!(fs::metadata(&path).unwrap().len(), 16 * BLOCK as u64);
    }
}
