//! Reads that tasks wait for.

use super::stand::{BLOCK, NOW, close, live, make, open, unlink};
use futures_executor::block_on;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use undercroft_block::stack::{Delay, Slowness};
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, Operation};
use undercroft_judges::random::Random;
use undercroft_xfs::{Error, OpenFile, Volume};

const LATENCY: Duration = Duration::from_millis(5);

fn late(device: &Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    Arc::new(Delay::new(Slowness { latency: LATENCY, bandwidth: None }, Arc::clone(device)))
}

/// One thread has as many reads in flight as it begins.
#[test]
fn reads_begin_without_waiting_for_those_before() {
    let (device, volume) = open(64 << 20);
    let model: Vec<u8> = (0..500 * BLOCK).map(|at| (at / 777) as u8).collect();
    let file = make(&volume, "file").unwrap();
    file.write(0, &model, NOW).unwrap();
    let number = file.number();
    drop(file);
    close(&device, &volume);

    let count = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&count);
    let counted = Fault::new().on(Operation::Read).when(move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        false
    });
    // Counts what is submitted, not what was answered.
    let device: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(late(&device), [counted]));
    let volume = Arc::new(Volume::open(device).unwrap());
    let file = OpenFile::open(&volume, number).unwrap();
    let mut random = Random::new(9);
    let before = count.load(Ordering::Relaxed);
    let mut flight = VecDeque::new();
    for _ in 0..200 {
        let at = random.below(model.len() as u64) as usize;
        let len = 1 + random.below(3 * BLOCK as u64) as usize;
        flight.push_back((at, len, file.begin_read(at as u64, len).unwrap()));
    }
    assert_eq!(count.load(Ordering::Relaxed) - before, 200, "all are on their way");
    for (at, len, ticket) in flight {
        let bytes = block_on(ticket).unwrap();
        assert!(bytes == model[at..model.len().min(at + len)], "{len} bytes at {at}");
    }
    assert!(block_on(file.begin_read(model.len() as u64, 5).unwrap()).unwrap().is_empty());
}

/// What was dirty, stored, preallocated or a hole when the read began is what it gives, whatever
/// becomes of the file, and of its blocks.
#[test]
fn the_bytes_are_those_of_the_beginning() {
    let device = super::stand::device(64 << 20);
    let volume = live(&late(&device));
    for round in 1..=20_u8 {
        let file = make(&volume, "file").unwrap();
        let mut model = vec![round; 8 * BLOCK];
        file.write_direct(0, &Arc::new(model.clone()), 0..8 * BLOCK, NOW).unwrap();
        file.truncate(12 * BLOCK as u64, NOW).unwrap();
        model.resize(12 * BLOCK, 0);
        let dirty = vec![round + 100; BLOCK + 5];
        file.write(3 * BLOCK as u64 + 7, &dirty, NOW).unwrap();
        model[3 * BLOCK + 7..4 * BLOCK + 12].copy_from_slice(&dirty);
        let ticket = file.begin_read(5, 20 * BLOCK).unwrap();
        let abandoned = file.begin_read(0, BLOCK).unwrap();

        file.write_direct(0, &Arc::new(vec![255; 2 * BLOCK]), 0..2 * BLOCK, NOW).unwrap();
        file.truncate(0, NOW).unwrap();
        unlink(&volume, "file").unwrap();
        drop((file, abandoned));
        volume.sync().unwrap();
        let other = make(&volume, "other").unwrap();
        other.write_direct(0, &Arc::new(vec![254; 64 * BLOCK]), 0..64 * BLOCK, NOW).unwrap();
        drop(other);
        unlink(&volume, "other").unwrap();
        assert!(block_on(ticket).unwrap() == model[5..], "round {round}");
    }
    volume.close().unwrap();
    super::stand::check_clean(&device);
}

#[test]
fn a_ticket_tells_the_error_of_the_device() {
    let (device, volume) = open(64 << 20);
    let file = make(&volume, "file").unwrap();
    file.write(0, &[1; 3 * BLOCK], NOW).unwrap();
    let number = file.number();
    drop(file);
    close(&device, &volume);
    let broken = Fault::new().on(Operation::Read).when(|bio| bio.length() == BLOCK as u64 * 3);
    let faulty: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(device, [broken]));
    let volume = Arc::new(Volume::open(faulty).unwrap());
    let file = OpenFile::open(&volume, number).unwrap();
    assert_eq!(block_on(file.begin_read(0, BLOCK).unwrap()).unwrap(), [1; BLOCK]);
    let ticket = file.begin_read(0, 3 * BLOCK).unwrap();
    assert!(matches!(block_on(ticket), Err(Error::Device(_))));
    let root = OpenFile::open(&volume, volume.geometry().root_inode).unwrap();
    assert!(matches!(root.begin_read(1 << 20, 1), Err(Error::WrongKind { .. })));
    // Also without a byte to be filled.
    assert!(matches!(root.read(0, &mut []), Err(Error::WrongKind { .. })));
    assert_eq!(file.read(0, &mut []).unwrap(), 0);
}

/// The error of a request is that of all reads in it; a read that is alone has its own.
#[test]
fn a_read_that_failed_beside_others_is_tried_alone() {
    let (device, volume) = open(64 << 20);
    let file = make(&volume, "file").unwrap();
    file.write(0, &[1; 8 * BLOCK], NOW).unwrap();
    let number = file.number();
    drop(file);
    close(&device, &volume);
    let is_data = |bio: &undercroft_block::Bio| bio.length() == BLOCK as u64 + 512;
    let once = || Fault::new().on(Operation::Read).when(is_data).nth(0);
    let read = |volume: &Arc<Volume>| {
        let file = OpenFile::open(volume, number).unwrap();
        block_on(file.begin_read(2 * BLOCK as u64, BLOCK + 1).unwrap())
    };
    let faulty: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(Arc::clone(&device), [once()]));
    assert_eq!(read(&Arc::new(Volume::open(faulty).unwrap())).unwrap(), [1; BLOCK + 1]);
    // Where others may have the blocks by then it is not.
    let faulty: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(Arc::clone(&device), [once()]));
    let volume = live(&faulty);
    assert!(matches!(read(&volume), Err(Error::Device(_))));
    volume.close().unwrap();
}
