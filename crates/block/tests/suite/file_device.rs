//! Properties of the file driver alone: opening, sizes, permissions, its threads.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{
    Batch, Bio, BlockDevice, Buffer, FileDevice, FileOptions, OpenError, Plug, PlugThreshold,
    Reason, Sector, flush, read_buffer, write_all_at,
};

struct Scratch {
    directory: TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a scratch directory") }
    }

    fn file(&self, contents: &[u8]) -> PathBuf {
        let path = self.directory.path().join("image");
        fs::write(&path, contents).expect("a scratch file");
        path
    }
}

#[test]
fn only_files_that_exist_are_opened_and_nothing_is_created() {
    let scratch = Scratch::new();
    let missing = scratch.directory.path().join("missing");
    for read_only in [false, true] {
        let error = FileDevice::open(&missing, read_only).unwrap_err();
        assert!(matches!(error, OpenError::Open { .. }), "{error}");
        assert!(error.to_string().contains("missing"));
    }
    assert!(!missing.exists());
    let error = FileDevice::open(scratch.directory.path(), true).unwrap_err();
    assert!(matches!(error, OpenError::NotAFile { .. }));
    let error = FileDevice::open("/dev/null".as_ref(), false).unwrap_err();
    assert!(matches!(error, OpenError::NotAFile { .. }));
    // Its other end is closed.
    let pipe = scratch.directory.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let error = FileDevice::open(&pipe, true).unwrap_err();
    assert!(matches!(error, OpenError::NotAFile { .. }));
}

#[test]
fn a_read_only_device_refuses_every_change() {
    let scratch = Scratch::new();
    let path = scratch.file(&[7; 1024]);
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&path, true).unwrap());
    let bios = [
        Bio::write(Sector(0), Buffer::zeroed(512)),
        Bio::write_zeroes(Sector(0), 512),
        Bio::discard(Sector(0), 512),
    ];
    for bio in bios {
        let (bio, waiter) = bio.waited();
        Plug::new(&device).submit(bio);
        let error = waiter.wait().result.unwrap_err();
        assert!(matches!(error.reason, Reason::ReadOnly), "{error:?}");
    }
    flush(&*device).unwrap();
    assert_eq!(read_buffer(&*device, Sector(0), 1024).unwrap()[..], [7; 1024]);
    let device = FileDevice::open(&path, true).unwrap();
    assert!(matches!(device.set_len(0), Err(OpenError::Resize { .. })));
    assert_eq!(fs::read(&path).unwrap(), [7; 1024]);
}

#[test]
fn a_partial_last_sector_counts_and_reads_as_padded() {
    let device = FileDevice::open(&Scratch::new().file(&[7; 700]), true).unwrap();
    assert_eq!(device.capacity(), Sector(2));
    let found = read_buffer(&device, Sector(1), 512).unwrap();
    assert_eq!(found[..], [&[7; 188][..], &[0; 324]].concat());
}

#[test]
fn set_len_cuts_and_adds_a_hole() {
    let scratch = Scratch::new();
    let path = scratch.file(&[7; 1024]);
    let device = FileDevice::open(&path, false).unwrap();
    device.set_len(512).unwrap();
    assert!(write_all_at(&device, Sector(1), &[1; 512]).is_err());
    device.set_len(1 << 30).unwrap();
    assert_eq!(device.capacity(), Sector(1 << 21));
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 30);
    assert_eq!(read_buffer(&device, Sector(0), 1024).unwrap()[..], [[7; 512], [0; 512]].concat());
    let error = device.set_len(u64::MAX).unwrap_err();
    assert!(matches!(error, OpenError::Resize { bytes: u64::MAX, .. }), "{error:?}");
}

#[test]
fn dropping_the_device_finishes_what_was_submitted() {
    let scratch = Scratch::new();
    let path = scratch.file(&[]);
    for round in 0..50_u8 {
        let device = FileDevice::open(&path, false).unwrap();
        device.set_len(64 << 10).unwrap();
        let device: Arc<dyn BlockDevice> = Arc::new(device);
        let batch = Batch::new();
        let plug = Plug::with_threshold(&device, PlugThreshold { bios: 1, bytes: 0 });
        // All overlap, so that one worker waits for the other until the end.
        for sector in 0..64 {
            let mut buffer = Buffer::zeroed(2 * 512);
            buffer.fill(round);
            plug.submit(Bio::write(Sector(sector), buffer).in_batch(&batch));
        }
        drop(plug);
        drop(device);
        assert_eq!(batch.outstanding(), 0);
        assert_eq!(fs::read(&path).unwrap()[..65 * 512], [round; 65 * 512]);
    }
}

#[test]
fn a_panic_in_a_callback_leaves_the_workers_alive() {
    let scratch = Scratch::new();
    let device: Arc<dyn BlockDevice> =
        Arc::new(FileDevice::open(&scratch.file(&[0; 4096]), false).unwrap());
    for _ in 0..8 {
        let bio = Bio::read(Sector(0), Buffer::zeroed(512));
        Plug::new(&device).submit(bio.on_complete(|_| panic!("a defect of a caller")));
    }
    device.drain();
    assert_eq!(read_buffer(&*device, Sector(0), 512).unwrap()[..], [0; 512]);
}

#[test]
fn an_error_of_the_system_reaches_every_bio_with_its_own_address() {
    let scratch = Scratch::new();
    let path = scratch.file(&[0; 4096]);
    // The descriptor does not allow the access that the options name.
    let file = fs::File::open(&path).unwrap();
    let device = FileDevice::from_file(file, "disk", &FileOptions::default()).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(device);
    let plug = Plug::new(&device);
    let submit = |sector| {
        let (bio, waiter) = Bio::write(Sector(sector), Buffer::zeroed(512)).waited();
        plug.submit(bio);
        waiter
    };
    let waiters = [submit(0), submit(1)];
    for (waiter, sector) in waiters.into_iter().zip(0..) {
        let error = waiter.wait().result.unwrap_err();
        assert_eq!((error.sector, error.length), (Sector(sector), 512));
        assert_eq!(&*error.device, "disk");
        assert!(error.io_error().is_some());
    }
    assert_eq!(device.statistics().requests, 1);
}

/// Faults at random: every bio is answered exactly once, and as many failed as the faulty device
/// says.
#[test]
fn every_bio_is_answered_once_whatever_fails() {
    const BIOS: u64 = 20_000;
    let file = FileDevice::open(&Scratch::new().file(&[0; 1 << 20]), false).unwrap();
    let faulty = Arc::new(FaultyDevice::new(Arc::new(file), [Fault::new().random(7, 5)]));
    let device: Arc<dyn BlockDevice> = Arc::clone(&faulty) as _;
    let [answers, errors] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let plug = Plug::with_threshold(&device, PlugThreshold { bios: 1, bytes: 0 });
    for index in 0..BIOS {
        let sector = Sector(index * 31 % 2048);
        let bio = match index % 4 {
            0 => Bio::read(sector, Buffer::zeroed(512)),
            1 => Bio::write_zeroes(sector, 512),
            _ => Bio::write(sector, Buffer::zeroed(512)),
        };
        let (answers, errors) = (Arc::clone(&answers), Arc::clone(&errors));
        plug.submit(bio.on_complete(move |answer| {
            answers.fetch_add(1, Ordering::Relaxed);
            errors.fetch_add(u64::from(answer.result.is_err()), Ordering::Relaxed);
        }));
    }
    device.drain();
    assert_eq!(answers.load(Ordering::Relaxed), BIOS);
    assert_eq!(errors.load(Ordering::Relaxed), faulty.injected());
    assert!(faulty.injected() > BIOS / 10);
}
