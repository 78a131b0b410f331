//! Mirrors whose legs fail, and legs that come back.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};

use super::*;
use crate::bio::FileRange;
use crate::drivers::{FileDevice, FileOptions, MemoryDevice};
use crate::testing::{Fault, FaultyDevice};
use crate::{Batch, Bio, Buffer, Plug, flush, read_buffer, read_exact_at, write_all_at};

const SECTORS: u64 = 8192;

fn memory() -> Arc<dyn BlockDevice> {
    Arc::new(MemoryDevice::new(SECTORS * SECTOR_SIZE))
}

fn faulty(faults: impl IntoIterator<Item = Fault>) -> (Arc<dyn BlockDevice>, Arc<FaultyDevice>) {
    let device = Arc::new(FaultyDevice::new(memory(), faults));
    (Arc::clone(&device) as _, device)
}

fn states(mirror: &Mirror) -> Vec<LegState> {
    mirror.status().into_iter().map(|status| status.state).collect()
}

fn contents(device: &dyn BlockDevice) -> Buffer {
    read_buffer(device, Sector(0), (SECTORS * SECTOR_SIZE) as usize).unwrap()
}

/// The events of `mirror` from now on, as lines.
fn events(mirror: &Mirror) -> Arc<Mutex<Vec<String>>> {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    mirror.observe(move |event| sink.lock().push(event.to_string()));
    events
}

fn go_on(_: ResyncProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn writes_reach_all_legs_and_reads_are_spread() {
    let legs = [memory(), memory(), memory()];
    let mirror: Arc<dyn BlockDevice> = Arc::new(Mirror::new(legs.to_vec()).unwrap());
    assert_eq!(mirror.name(), "mirror(memory,memory,memory)");
    write_all_at(&*mirror, Sector(5), &[7; 4096]).unwrap();
    flush(&*mirror).unwrap();
    for leg in &legs {
        assert_eq!(leg.statistics().flushes, 1);
        let mut bytes = [0; 4096];
        read_exact_at(&**leg, Sector(5), &mut bytes).unwrap();
        assert_eq!(bytes, [7; 4096]);
    }
    let before: Vec<u64> = legs.iter().map(|leg| leg.statistics().bytes_read).collect();
    let batch = Batch::new();
    let plug = Plug::new(&mirror);
    for number in 0..30 {
        let read = Bio::read(Sector(number * 64), Buffer::zeroed(4096));
        plug.submit(read.in_batch(&batch));
    }
    batch.wait().unwrap();
    for (leg, before) in legs.iter().zip(before) {
        assert_eq!(leg.statistics().bytes_read - before, 10 * 4096);
    }
}

#[test]
fn a_failed_read_is_repeated_on_another_leg() {
    let (bad, device) = faulty([Fault::new().on(Operation::Read)]);
    let mirror = Mirror::new(vec![bad, memory()]).unwrap();
    let events = events(&mirror);
    write_all_at(&mirror, Sector(0), &[1; 8192]).unwrap();
    for sector in [0, 7, 3] {
        assert_eq!(read_buffer(&mirror, Sector(sector), 512).unwrap()[..], [1; 512]);
    }
    let failed = device.injected();
    assert!(failed > 0);
    assert_eq!(mirror.status()[0].read_errors, failed);
    assert_eq!(states(&mirror), [LegState::Live; 2], "it still holds the contents");
    let line = &events.lock()[0];
    assert_eq!(
        *line,
        "memory could not be read, another leg is: \
         read of 512 bytes at sector 0 of memory failed: other error"
    );
}

#[test]
fn a_read_that_no_leg_can_do_fails_once_with_its_addresses() {
    let fault = || Fault::new().on(Operation::Read).at(Sector(9)..Sector(10));
    let legs = vec![faulty([fault()]).0, faulty([fault()]).0];
    let mirror: Arc<dyn BlockDevice> = Arc::new(Mirror::new(legs).unwrap());
    let window = crate::Window::new(mirror, Sector(8), Sector(8)).unwrap();
    let error = read_buffer(&window, Sector(0), 1024).unwrap_err();
    assert_eq!((error.sector, error.length), (Sector(0), 1024));
    assert_eq!(read_buffer(&window, Sector(2), 512).unwrap().len(), 512);
}

#[test]
fn a_leg_that_fails_a_write_is_dropped_and_the_last_one_never() {
    let no_space = || Fault::new().on(Operation::Write).error(io::ErrorKind::StorageFull);
    let (first, _) = faulty([no_space().nth(1)]);
    let (second, _) = faulty([no_space().from_nth(2)]);
    let mirror = Mirror::new(vec![first, second]).unwrap();
    let events = events(&mirror);
    write_all_at(&mirror, Sector(0), &[1; 512]).unwrap();
    assert_eq!(states(&mirror), [LegState::Live; 2]);
    write_all_at(&mirror, Sector(1), &[2; 512]).unwrap();
    assert_eq!(states(&mirror), [LegState::Stale, LegState::Live]);
    assert!(mirror.status()[0].error.as_ref().unwrap().is_no_space());
    assert!(write_all_at(&mirror, Sector(2), &[3; 512]).unwrap_err().is_no_space());
    assert_eq!(states(&mirror), [LegState::Stale, LegState::Live]);
    for _ in 0..4 {
        assert_eq!(read_buffer(&mirror, Sector(1), 512).unwrap()[..], [2; 512]);
    }
    assert_eq!(events.lock().len(), 1);
    assert!(events.lock()[0].starts_with("memory was dropped from its mirror: write of 512 bytes"));
}

#[test]
fn a_leg_that_fails_a_flush_or_zeroes_is_dropped() {
    for operation in [Operation::Flush, Operation::WriteZeroes, Operation::Discard] {
        let mirror = Mirror::new(vec![memory(), faulty([Fault::new().on(operation)]).0]).unwrap();
        let bio = match operation {
            Operation::Flush => Bio::flush(),
            Operation::Discard => Bio::discard(Sector(0), 4096),
            _ => Bio::write_zeroes(Sector(0), 4096),
        };
        let (bio, waiter) = bio.waited();
        crate::plug::submit_directly(&mirror, bio);
        waiter.wait().result.unwrap();
        assert_eq!(states(&mirror), [LegState::Live, LegState::Stale]);
    }
}

/// A file in memory.
fn in_memory(name: &str) -> std::fs::File {
    std::fs::File::from(memfd_create(name, MemfdFlags::CLOEXEC).unwrap())
}

#[test]
fn a_clone_is_refused_and_drops_no_leg() {
    let leg = || -> Arc<dyn BlockDevice> {
        let file = in_memory("leg");
        file.set_len(64 << 10).unwrap();
        Arc::new(FileDevice::from_file(file, "leg", &FileOptions::default()).unwrap())
    };
    let legs = [leg(), leg()];
    assert!(legs[0].limits().clones_ranges);
    let mirror = Arc::new(Mirror::new(legs.to_vec()).unwrap());
    let source = FileRange { file: Arc::new(in_memory("source")), offset: 0 };
    let (bio, waiter) = Bio::clone_range(Sector(8), 4096, source).waited();
    let device: Arc<dyn BlockDevice> = mirror.clone();
    Plug::new(&device).submit(bio);
    assert!(waiter.wait().result.unwrap_err().cannot_clone());
    assert_eq!(states(&mirror), [LegState::Live, LegState::Live]);
}

#[test]
fn two_writes_that_fail_on_different_legs_leave_one_leg() {
    let (first, _) = faulty([Fault::new().at(Sector(0)..Sector(1))]);
    let (second, _) = faulty([Fault::new().at(Sector(9)..Sector(10))]);
    let mirror: Arc<dyn BlockDevice> = Arc::new(Mirror::new(vec![first, second]).unwrap());
    let plug = Plug::new(&mirror);
    let waiters = [0, 9].map(|sector| {
        let (bio, waiter) = Bio::write(Sector(sector), Buffer::zeroed(512)).waited();
        plug.submit(bio);
        waiter
    });
    plug.flush();
    let failed = waiters.into_iter().map(crate::Waiter::wait);
    let failed = failed.filter(|completion| completion.result.is_err()).count();
    assert_eq!(failed, 1, "one drops a leg, the other one has none to rely on then");
}

#[test]
fn what_overlaps_is_done_in_order_also_when_a_read_is_repeated() {
    let (bad, _) = faulty([Fault::new().on(Operation::Read)]);
    let mirror: Arc<dyn BlockDevice> = Arc::new(Mirror::new(vec![bad, memory()]).unwrap());
    let plug = Plug::new(&mirror);
    let batch = Batch::new();
    let mut waiters = Vec::new();
    for round in 1..=100 {
        plug.submit(Bio::write(Sector(0), Buffer::copy_of(&[round; 1024])).in_batch(&batch));
        let (read, waiter) = Bio::read(Sector(1), Buffer::zeroed(512)).waited();
        plug.submit(read);
        waiters.push((round, waiter));
    }
    plug.submit(Bio::flush().in_batch(&batch));
    for (round, waiter) in waiters {
        assert_eq!(waiter.wait().into_buffer().unwrap()[..], [round; 512]);
    }
    batch.wait().unwrap();
    mirror.drain();
}

#[test]
fn a_stale_leg_is_filled_and_used() {
    let legs = [memory(), memory()];
    let random: Vec<u8> = (0..SECTORS * SECTOR_SIZE).map(|byte| (byte * 7 / 3) as u8).collect();
    write_all_at(&*legs[0], Sector(0), &random).unwrap();
    let mirror = Mirror::with_stale(legs.to_vec(), &[1]).unwrap();
    let events = events(&mirror);
    assert_eq!(read_buffer(&mirror, Sector(77), 512).unwrap()[..], random[77 * 512..][..512]);
    let mut steps = Vec::new();
    mirror
        .resynchronise(1, &mut |progress| {
            steps.push(progress.done);
            assert_eq!(progress.total, 4 << 20);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(steps, [1 << 20, 2 << 20, 3 << 20, 4 << 20]);
    assert_eq!(states(&mirror), [LegState::Live; 2]);
    assert!(contents(&*legs[1])[..] == random[..]);
    assert_eq!(*events.lock(), ["memory is up to date in its mirror"]);
    assert!(matches!(
        mirror.resynchronise(1, &mut go_on),
        Err(ResyncError::NotStale { leg: 1, state: LegState::Live })
    ));
    assert!(matches!(mirror.resynchronise(2, &mut go_on), Err(ResyncError::NoLeg(2))));
}

#[test]
fn writes_go_on_while_a_leg_is_filled() {
    let legs = [memory(), memory(), memory()];
    let mirror = Arc::new(Mirror::with_stale(legs.to_vec(), &[2]).unwrap());
    let device: Arc<dyn BlockDevice> = Arc::clone(&mirror) as _;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..3_u64 {
            let (device, stop) = (&device, &stop);
            scope.spawn(move || {
                let plug = Plug::new(device);
                let batch = Batch::new();
                for round in 0.. {
                    let random = crate::testing::mix(writer << 32 | round);
                    let sector = Sector(random % (SECTORS - 8));
                    let bytes = Buffer::copy_of(&[(random >> 20) as u8; 4096]);
                    plug.submit(Bio::write(sector, bytes).in_batch(&batch));
                    if round % 16 == 0 {
                        batch.wait().unwrap();
                    }
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
                batch.wait().unwrap();
            });
        }
        mirror.resynchronise(2, &mut go_on).unwrap();
        stop.store(true, Ordering::Relaxed);
    });
    mirror.drain();
    assert_eq!(states(&mirror), [LegState::Live; 3]);
    let first = contents(&*legs[0]);
    assert!(legs[1..].iter().all(|leg| contents(&**leg)[..] == first[..]));
}

#[test]
fn filling_a_leg_may_fail_or_be_stopped() {
    let (bad, _) = faulty([Fault::new().on(Operation::Write).from_nth(2)]);
    let mirror = Mirror::with_stale(vec![memory(), bad], &[1]).unwrap();
    let stopped = mirror.resynchronise(1, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(ResyncError::Stopped)));
    assert_eq!(states(&mirror), [LegState::Live, LegState::Stale]);
    let failed = mirror.resynchronise(1, &mut go_on);
    assert!(matches!(failed, Err(ResyncError::Write(_))));
    assert_eq!(states(&mirror), [LegState::Live, LegState::Stale]);
    write_all_at(&mirror, Sector(0), &[1; 512]).unwrap();

    let (unreadable, _) = faulty([Fault::new().on(Operation::Read).at(Sector(9)..Sector(10))]);
    let mirror = Mirror::with_stale(vec![memory(), unreadable, memory()], &[2]).unwrap();
    mirror.resynchronise(2, &mut go_on).unwrap();
    assert_eq!(states(&mirror), [LegState::Live; 3]);
}

#[test]
fn a_leg_that_is_filled_may_be_dropped_by_a_write_from_above() {
    let (bad, _) = faulty([Fault::new().on(Operation::Write).at(Sector(0)..Sector(1)).nth(1)]);
    let mirror = Mirror::with_stale(vec![memory(), bad], &[1]).unwrap();
    let result = mirror.resynchronise(1, &mut |_| {
        write_all_at(&mirror, Sector(0), &[1; 512]).unwrap();
        ControlFlow::Continue(())
    });
    assert!(matches!(result, Err(ResyncError::Dropped)));
    assert_eq!(states(&mirror), [LegState::Live, LegState::Stale]);
}

#[test]
fn impossible_mirrors_are_refused() {
    assert!(matches!(Mirror::new(Vec::new()), Err(StackError::NoLegs)));
    let many = (0..33).map(|_| memory()).collect();
    assert!(matches!(Mirror::new(many), Err(StackError::TooManyLegs { count: 33, most: 32 })));
    assert!(matches!(Mirror::with_stale(vec![memory()], &[0]), Err(StackError::AllStale)));
    let short = || Arc::new(MemoryDevice::new(4096)) as Arc<dyn BlockDevice>;
    let message = Mirror::with_stale(vec![memory(), short()], &[1]).err().unwrap().to_string();
    assert!(
        message.starts_with("memory has 4096 bytes, the other legs of the mirror"),
        "{message}"
    );
    // What the short leg has is all there is: the long one can hold it.
    let mirror = Mirror::with_stale(vec![memory(), short()], &[0]).unwrap();
    assert_eq!(mirror.capacity(), Sector(8));
}
