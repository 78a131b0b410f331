//! Writes whose bytes are in no memory of this process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};

use undercroft_block::stack::Linear;
use undercroft_block::{
    Bio, BlockDevice, Buffer, Driver, Failure, FileDevice, FileOptions, Leaf, MemoryDevice,
    OpenError, Plug, QueueContext, QueueOptions, Request, Sector, Synchronous, splice_at,
    splice_target, write_all_at,
};

const PAGE: u64 = 4096;

fn in_memory() -> (File, FileDevice) {
    let file = File::from(memfd_create("image", MemfdFlags::CLOEXEC).unwrap());
    file.set_len(64 * PAGE).unwrap();
    let options = FileOptions::default();
    let device = FileDevice::from_file(file.try_clone().unwrap(), "image", &options).unwrap();
    (file, device)
}

/// Moves `byte`, up to so many a call as `step` says.
fn of(byte: u8, step: usize) -> impl FnMut(&File, u64, usize) -> io::Result<usize> {
    move |target, offset, most| target.write_at(&vec![byte; most.min(step)], offset)
}

fn found(file: &File, offset: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

#[test]
fn bytes_go_to_the_file_behind_those_that_a_plug_holds() {
    let (file, device) = in_memory();
    let device: Arc<dyn BlockDevice> = Arc::new(device);
    let plug = Plug::new(&device);
    // It ends where it leaves the plug.
    plug.submit(Bio::write(Sector(8), Buffer::copy_of(&[1; 8192])).unwaiting());
    assert!(splice_target(&*device, Sector(8), PAGE).is_some());
    splice_at(&*device, Sector(8), PAGE, &mut of(7, 1000)).unwrap().unwrap();
    assert!(found(&file, PAGE, PAGE) == [7; 4096] && found(&file, 2 * PAGE, PAGE) == [1; 4096]);
    let statistics = device.statistics();
    assert_eq!((statistics.bios, statistics.bytes_written), (2, 3 * PAGE));
}

#[test]
fn an_error_before_the_first_byte_gives_the_write_back_and_a_later_one_is_its_error() {
    let (file, device) = in_memory();
    let refuses = |_: &File, _, _| Err(io::Error::from(io::ErrorKind::InvalidInput));
    assert!(splice_at(&device, Sector(0), PAGE, &mut { refuses }).is_none());
    let mut calls = 0;
    let mut ends = |target: &File, offset, _| {
        calls += 1;
        if calls == 1 { target.write_at(&[5; 700], offset) } else { Ok(0) }
    };
    let error = splice_at(&device, Sector(0), PAGE, &mut ends).unwrap().unwrap_err();
    assert_eq!((error.sector, error.length), (Sector(0), PAGE));
    assert_eq!(error.io_error().unwrap().kind(), io::ErrorKind::WriteZero);
    // The sectors are free again.
    splice_at(&device, Sector(0), PAGE, &mut of(9, 4096)).unwrap().unwrap();
    assert!(found(&file, 0, PAGE) == [9; 4096]);
    assert_eq!(device.statistics().errors, 1);
}

#[test]
fn what_cannot_be_taken_now_stays_where_it_is() {
    let refused = |device: &dyn BlockDevice, sector, length| {
        let mut moves = |_: &File, _, _| panic!("it was moved");
        assert!(splice_at(device, sector, length, &mut moves).is_none());
        assert!(splice_target(device, sector, length).is_none());
    };
    let (_, device) = in_memory();
    // Parts of pages, and what is behind the end.
    refused(&device, Sector(1), PAGE);
    refused(&device, Sector(0), 512);
    refused(&device, Sector(64 * 8), PAGE);
    refused(&MemoryDevice::new(1 << 20), Sector(0), PAGE);
    let stacked = Linear::new(vec![Arc::new(device)]).unwrap();
    refused(&stacked, Sector(0), PAGE);
}

#[test]
fn a_closed_device_takes_nothing() {
    let (_, device) = in_memory();
    device.close();
    assert!(splice_at(&device, Sector(0), PAGE, &mut of(1, 4096)).is_none());
    assert!(write_all_at(&device, Sector(0), &[1; 512]).is_err());
}

#[test]
fn parts_of_sectors_are_refused() {
    let (_, device) = in_memory();
    let error = splice_at(&device, Sector(0), 100, &mut of(1, 100)).unwrap().unwrap_err();
    assert_eq!(error.length, 100);
}

/// A driver that ends a request when it is told to.
struct Slow {
    file: File,
    told: Mutex<Receiver<()>>,
}

impl Driver for Slow {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        "slow"
    }

    fn capacity(&self) -> Sector {
        Sector(64)
    }

    fn open_queue(self: &Arc<Self>, _: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, _: &mut Request) -> Option<Result<(), Failure>> {
        self.told.lock().recv().unwrap();
        Some(Ok(()))
    }

    fn splice_target(&self, _: Sector, _: u64) -> Option<&File> {
        Some(&self.file)
    }
}

#[test]
fn a_splice_waits_for_no_other_request() {
    let (file, _device) = in_memory();
    let (tell, told) = mpsc::channel();
    let driver = Slow { file: file.try_clone().unwrap(), told: Mutex::new(told) };
    let leaf = Arc::new(Leaf::start(driver, QueueOptions::default()).unwrap());
    let splice = |sector, byte| splice_at(&*leaf, Sector(sector), PAGE, &mut of(byte, 4096));
    let (bio, waiter) = Bio::write(Sector(4), Buffer::zeroed(512)).waited();
    let device: Arc<dyn BlockDevice> = Arc::clone(&leaf) as _;
    Plug::new(&device).submit(bio);
    assert!(splice(0, 1).is_none());
    splice(8, 2).unwrap().unwrap();
    tell.send(()).unwrap();
    waiter.wait().result.unwrap();
    leaf.drain();
    splice(0, 3).unwrap().unwrap();
    assert!(found(&file, 0, PAGE) == [3; 4096] && found(&file, PAGE, PAGE) == [2; 4096]);
    let statistics = leaf.statistics();
    assert_eq!((statistics.bios, statistics.bytes_written), (3, 512 + 2 * PAGE));
    // It answers all before it ends.
    splice(0, 5).unwrap().unwrap();
}

#[test]
fn a_splice_that_panics_does_not_keep_its_sectors() {
    let (_, device) = in_memory();
    let panics = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let mut splice = |_: &File, _, _| -> io::Result<usize> { panic!("a defect of the caller") };
        let _ = splice_at(&device, Sector(0), PAGE, &mut splice);
    }));
    assert!(panics.is_err());
    device.drain();
    splice_at(&device, Sector(0), PAGE, &mut of(1, 4096)).unwrap().unwrap();
}
