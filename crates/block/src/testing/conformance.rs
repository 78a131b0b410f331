//! The checks that every device passes, whatever it does inside.
//!
//! A device's tests call [`check`] with a function that makes fresh devices. A failed check panics,
//! as an assertion in a test does. [`replay`] alone is for property tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mix;
use crate::{
    Batch, Bio, BlockDevice, BlockError, Buffer, Layer, Operation, Plug, Reason, SECTOR_SIZE,
    Sector, Segment, SegmentList, Waiter, flush, read_buffer, read_exact_at, write_all_at,
};

/// Makes a device of the given number of sectors that reads as zeroes.
pub type MakeDevice<'a> = &'a dyn Fn(Sector) -> Arc<dyn BlockDevice>;

/// Bytes of one sector in memory.
const SECTOR: usize = SECTOR_SIZE as usize;

/// One step of a random history, for [`replay`]. Ranges beyond the device are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write `sectors` sectors of `byte` to `sector` on.
    Write {
        /// First sector.
        sector: u64,
        /// Number of sectors.
        sectors: u64,
        /// What every byte becomes.
        byte: u8,
    },
    /// Read, and compare with what the steps before wrote.
    Read {
        /// First sector.
        sector: u64,
        /// Number of sectors.
        sectors: u64,
    },
    /// Write zeroes.
    WriteZeroes {
        /// First sector.
        sector: u64,
        /// Number of sectors.
        sectors: u64,
    },
    /// Submit a flush bio.
    Flush,
    /// Hand over what the plug staged.
    Unplug,
}

/// Runs every check.
///
/// # Panics
/// When the device breaks its contract.
pub fn check(make: MakeDevice<'_>) {
    a_new_device_reads_as_zeroes(make);
    for seed in 0..16 {
        replay(&make(Sector(256)), &random_steps(seed, 400, 256));
    }
    neighbours_leave_as_one_request(make);
    the_last_of_overlapping_writes_wins(make);
    zeroes_and_discards_spare_their_neighbours(make);
    what_is_out_of_range_fails_alone(make);
    partial_sectors_are_refused(make);
    flush_and_forced_unit_access_answer(make);
    dropping_the_plug_submits(make);
    chains_of_callbacks_stay_flat(make);
    threads_do_not_disturb_each_other(make);
    one_large_bio_is_served(make);
}

/// Applies `steps` through one plug and compares every read, and the end, with a plain array.
/// Reads wait until all steps are submitted, so they also check the order of overlapping bios.
///
/// # Panics
/// When a read differs or an operation fails.
pub fn replay(device: &Arc<dyn BlockDevice>, steps: &[Step]) {
    let sectors = device.capacity().0;
    let mut model = vec![0; bytes(sectors)];
    let plug = Plug::new(device);
    let batch = Batch::new();
    let mut reads: Vec<(Waiter, Vec<u8>)> = Vec::new();
    let cut = |sector: u64, count: u64| {
        let start = sector.min(sectors);
        (start, (start + count).min(sectors))
    };
    for step in steps {
        match *step {
            Step::Write { sector, sectors, byte } => {
                let (start, end) = cut(sector, sectors);
                model[bytes(start)..bytes(end)].fill(byte);
                plug.submit(Bio::write(Sector(start), filled(end - start, byte)).in_batch(&batch));
            }
            Step::Read { sector, sectors } => {
                let (start, end) = cut(sector, sectors);
                let buffer = Buffer::copy_of(&vec![0xee; bytes(end - start)]);
                let (bio, waiter) = Bio::read(Sector(start), buffer).waited();
                plug.submit(bio);
                reads.push((waiter, model[bytes(start)..bytes(end)].to_vec()));
            }
            Step::WriteZeroes { sector, sectors } => {
                let (start, end) = cut(sector, sectors);
                model[bytes(start)..bytes(end)].fill(0);
                let length = bytes(end - start) as u64;
                plug.submit(Bio::write_zeroes(Sector(start), length).in_batch(&batch));
            }
            Step::Flush => plug.submit(Bio::flush().in_batch(&batch)),
            Step::Unplug => plug.flush(),
        }
    }
    for (waiter, expected) in reads {
        let found = waiter.wait().into_buffer().expect("a read inside the device");
        assert!(found[..] == expected[..], "a read differs from what was written before it");
    }
    batch.wait().expect("operations inside the device");
    let found = read_buffer(&**device, Sector(0), model.len()).expect("a read of all");
    assert!(found[..] == model[..], "the contents differ from what was written");
}

/// `count` steps on a device of `sectors` sectors, the same for the same seed.
fn random_steps(seed: u64, count: u64, sectors: u64) -> Vec<Step> {
    let step = |index| {
        let random = mix(seed ^ mix(index));
        let (sector, byte) = ((random >> 8) % sectors, random as u8);
        let sectors = 1 + (random >> 32) % 9;
        match (random >> 48) % 16 {
            0 => Step::Flush,
            1 => Step::Unplug,
            2 | 3 => Step::WriteZeroes { sector, sectors },
            4..=7 => Step::Read { sector, sectors },
            _ => Step::Write { sector, sectors, byte },
        }
    };
    (0..count).map(step).collect()
}

/// Bytes of `sectors` sectors of a device that fits in memory.
fn bytes(sectors: u64) -> usize {
    sectors as usize * SECTOR
}

/// `sectors` sectors of `byte`, cut into two segments that are not aligned.
fn filled(sectors: u64, byte: u8) -> SegmentList {
    let length = bytes(sectors);
    let mut buffer = Buffer::zeroed(length);
    buffer.fill(byte);
    let buffer = Arc::new(buffer);
    let middle = length / 3;
    [Segment::new(&buffer, 0..middle), Segment::new(&buffer, middle..length)].into_iter().collect()
}

/// Reads `sectors` sectors, which must all hold one byte each, and returns these.
fn read_fill(device: &dyn BlockDevice, sector: u64, sectors: u64) -> Vec<u8> {
    let buffer = read_buffer(device, Sector(sector), bytes(sectors)).expect("a read");
    buffer
        .chunks(SECTOR)
        .map(|bytes| {
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a sector holds mixed contents");
            bytes[0]
        })
        .collect()
}

fn is_leaf(device: &dyn BlockDevice) -> bool {
    matches!(device.layer(), Layer::Leaf(_))
}

fn a_new_device_reads_as_zeroes(make: MakeDevice<'_>) {
    let device = make(Sector(64));
    assert_eq!(device.capacity(), Sector(64));
    assert!(read_fill(&*device, 0, 64).iter().all(|&byte| byte == 0));
}

fn neighbours_leave_as_one_request(make: MakeDevice<'_>) {
    let device = make(Sector(64));
    let before = device.statistics();
    let batch = Batch::new();
    let plug = Plug::new(&device);
    for sector in [3, 1, 2, 0, 10, 12, 11] {
        plug.submit(Bio::write(Sector(sector), filled(1, sector as u8 + 1)).in_batch(&batch));
    }
    batch.wait().expect("writes");
    let passed = device.statistics() - before;
    if is_leaf(&*device) {
        assert_eq!((passed.bios, passed.bytes_written), (7, 7 * SECTOR_SIZE));
        let fits = device.limits().max_segments >= 8 && device.limits().memory_alignment == 1;
        assert!(!fits || passed.requests == 2, "{} requests for 2 runs", passed.requests);
    } else {
        // Stacked devices may cut bios, and write what they hold more than once.
        assert!(passed.bios >= 7 && passed.bytes_written >= 7 * SECTOR_SIZE, "{passed:?}");
        assert!(passed.requests < passed.bios, "nothing was merged: {passed:?}");
    }
    assert_eq!(read_fill(&*device, 0, 5), [1, 2, 3, 4, 0]);
    assert_eq!(read_fill(&*device, 10, 3), [11, 12, 13]);
}

fn the_last_of_overlapping_writes_wins(make: MakeDevice<'_>) {
    let device = make(Sector(64));
    let batch = Batch::new();
    let plug = Plug::new(&device);
    for round in 1..=100 {
        plug.submit(Bio::write(Sector(0), filled(8, round)).in_batch(&batch));
        plug.submit(Bio::write(Sector(4), filled(8, round + 100)).in_batch(&batch));
    }
    batch.wait().expect("writes");
    assert_eq!(read_fill(&*device, 0, 12), [[100; 4], [200; 4], [200; 4]].concat());
}

fn zeroes_and_discards_spare_their_neighbours(make: MakeDevice<'_>) {
    let device = make(Sector(64));
    write_all_at(&*device, Sector(0), &vec![7; bytes(64)]).expect("a write");
    let batch = Batch::new();
    let plug = Plug::new(&device);
    plug.submit(Bio::write_zeroes(Sector(3), 20 * SECTOR_SIZE).in_batch(&batch));
    plug.submit(Bio::discard(Sector(33), 20 * SECTOR_SIZE).in_batch(&batch));
    batch.wait().expect("zeroes and discard");
    assert_eq!(read_fill(&*device, 0, 33), [&[7; 3][..], &[0; 20], &[7; 10]].concat());
    assert_eq!(read_fill(&*device, 53, 11), [7; 11]);
}

fn what_is_out_of_range_fails_alone(make: MakeDevice<'_>) {
    let device = make(Sector(64));
    let [inside, across, beyond, far] = [Batch::new(), Batch::new(), Batch::new(), Batch::new()];
    let plug = Plug::new(&device);
    plug.submit(Bio::write(Sector(60), filled(2, 1)).in_batch(&inside));
    plug.submit(Bio::write(Sector(62), filled(4, 2)).in_batch(&across));
    plug.submit(Bio::write(Sector(66), filled(1, 3)).in_batch(&beyond));
    plug.submit(Bio::read(Sector(u64::MAX - 1), Buffer::zeroed(SECTOR)).in_batch(&far));
    plug.flush();
    inside.wait().expect("a write inside the device");
    for (batch, sector, length) in [(across, 62, 4 * SECTOR_SIZE), (beyond, 66, SECTOR_SIZE)] {
        let error = batch.wait().expect_err("a write beyond the device");
        assert!(matches!(error.reason, Reason::OutOfRange { capacity: Sector(64) }));
        let place = (error.operation, error.sector, error.length);
        assert_eq!(place, (Operation::Write, Sector(sector), length));
    }
    far.wait().expect_err("a read beyond every device");
    assert_eq!(read_fill(&*device, 60, 4), [1, 1, 0, 0]);
}

fn partial_sectors_are_refused(make: MakeDevice<'_>) {
    let device = make(Sector(64));
    let refused = |result: Result<(), BlockError>| {
        let error = result.expect_err("a partial sector");
        assert!(matches!(error.reason, Reason::Misaligned { .. }));
    };
    refused(write_all_at(&*device, Sector(0), &[1; 100]));
    refused(read_exact_at(&*device, Sector(0), &mut [0; 513]));
    write_all_at(&*device, Sector(0), &[]).expect("a write of nothing");
    assert_eq!(read_fill(&*device, 0, 1), [0]);
}

fn flush_and_forced_unit_access_answer(make: MakeDevice<'_>) {
    let device = make(Sector(64));
    let batch = Batch::new();
    let plug = Plug::new(&device);
    let write = Bio::write(Sector(5), filled(1, 9)).force_unit_access();
    plug.submit(write.in_batch(&batch));
    plug.submit(Bio::flush().in_batch(&batch));
    batch.wait().expect("a write and a flush");
    let before = device.statistics().flushes;
    flush(&*device).expect("a flush");
    let flushes = device.statistics().flushes - before;
    assert!(if is_leaf(&*device) { flushes == 1 } else { flushes >= 1 }, "{flushes} flushes");
    assert_eq!(read_fill(&*device, 5, 1), [9]);
}

fn dropping_the_plug_submits(make: MakeDevice<'_>) {
    let device = make(Sector(64));
    let answers = Arc::new(AtomicU64::new(0));
    {
        let outer = Plug::new(&device);
        {
            let inner = Plug::new(&device);
            for sector in [5, 9, 13] {
                let answers = Arc::clone(&answers);
                inner.submit(Bio::write(Sector(sector), filled(1, 4)).on_complete(move |answer| {
                    assert!(answer.result.is_ok());
                    answers.fetch_add(1, Ordering::Relaxed);
                }));
            }
        }
        assert_eq!(device.statistics().bios, 0, "an inner plug joins the outer one");
        drop(outer);
    }
    device.drain();
    assert_eq!(answers.load(Ordering::Relaxed), 3, "every bio is answered once");
    assert_eq!(read_fill(&*device, 9, 1), [4]);
}

/// Each callback submits the next bio; a device that answers in `submit` must not nest them.
fn chains_of_callbacks_stay_flat(make: MakeDevice<'_>) {
    /// A read whose completion submits the next of `left` reads, and the last one `end`.
    fn link(device: Arc<dyn BlockDevice>, left: u32, end: Bio) -> Bio {
        Bio::read(Sector(0), Buffer::zeroed(SECTOR)).on_complete(move |answer| {
            answer.result.expect("a read");
            let plug = Plug::new(&device);
            plug.submit(if left == 0 { end } else { link(device, left - 1, end) });
        })
    }
    let device = make(Sector(64));
    let batch = Batch::new();
    let first = link(Arc::clone(&device), 20_000, Bio::flush().in_batch(&batch));
    Plug::new(&device).submit(first);
    batch.wait().expect("a chain of reads");
}

fn threads_do_not_disturb_each_other(make: MakeDevice<'_>) {
    const THREADS: u64 = 4;
    const SECTORS: u64 = 128;
    let device = make(Sector(THREADS * SECTORS));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let device = &device;
            scope.spawn(move || {
                let batch = Batch::new();
                let plug = Plug::new(device);
                for index in 0..SECTORS {
                    let sector = thread * SECTORS + (index * 37) % SECTORS;
                    plug.submit(
                        Bio::write(Sector(sector), filled(1, thread as u8 + 1)).in_batch(&batch),
                    );
                }
                batch.wait().expect("writes of one thread");
            });
        }
    });
    for thread in 0..THREADS {
        let found = read_fill(&*device, thread * SECTORS, SECTORS);
        assert!(found.iter().all(|&byte| u64::from(byte) == thread + 1));
    }
}

/// More bytes and more pieces than the limits say: such a bio travels alone.
fn one_large_bio_is_served(make: MakeDevice<'_>) {
    const SECTORS: u64 = 8192;
    let device = make(Sector(SECTORS));
    let sector = Arc::new(Buffer::copy_of(&[5; SECTOR]));
    let pieces: SegmentList = (0..SECTORS).map(|_| Segment::new(&sector, 0..SECTOR)).collect();
    let batch = Batch::new();
    Plug::new(&device).submit(Bio::write(Sector(0), pieces).in_batch(&batch));
    batch.wait().expect("a large write");
    assert!(read_fill(&*device, 0, SECTORS).iter().all(|&byte| byte == 5));
}
