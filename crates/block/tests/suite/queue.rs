//! The contract of the queue of a leaf: tags, claims, time limits, closing, placement. On the null device, whose speed can be chosen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use undercroft_block::experiments::{
    CompletionPlace, OverlapOrder, Placement, QueuePlace, Redirect,
};
use undercroft_block::{
    Batch, Bio, BlockDevice, Buffer, CompletionQueue, CpuSet, Drive, Leaf, Limits, MemoryDriver,
    NullDevice, NullOptions, Operation, Plug, PlugThreshold, QueueOptions, Reason, SECTOR_SIZE,
    Sector, Topology, read_buffer, write_all_at,
};

/// Long enough that nothing ends by itself while a test runs.
const NEVER: Duration = Duration::from_secs(1000);

fn null(service_time: Duration, queue: QueueOptions) -> Arc<NullDevice> {
    let null = NullOptions { service_time, ..NullOptions::default() };
    Arc::new(NullDevice::null(null, queue).unwrap())
}

fn read(sector: u64) -> Bio {
    Bio::read(Sector(sector), Buffer::zeroed(512))
}

/// Submits each bio in a request of its own.
fn submit(device: &Arc<dyn BlockDevice>, bios: impl IntoIterator<Item = Bio>) {
    let plug = Plug::with_threshold(device, PlugThreshold { bios: 1, bytes: u64::MAX });
    bios.into_iter().for_each(|bio| plug.submit(bio));
}

#[test]
fn a_claimed_queue_runs_to_completion_in_its_thread() {
    let device: Arc<dyn BlockDevice> = null(Duration::ZERO, QueueOptions::default());
    let claim = device.claim().unwrap();
    assert_eq!(claim.len(), 1);
    assert!(device.claim().unwrap().is_empty(), "one for each thread");
    let thread = std::thread::current().id();
    let (queue, here) = (CompletionQueue::new(), Arc::new(AtomicU64::new(0)));
    for number in 0..100 {
        let here = Arc::clone(&here);
        let told = read(number * 8).on_complete(move |_| {
            here.fetch_add(u64::from(std::thread::current().id() == thread), Ordering::Relaxed);
        });
        submit(&device, [read(number * 8).in_queue(&queue, number), told]);
        assert_eq!(queue.poll().unwrap().cookie, number, "answered before submitting returned");
    }
    assert_eq!(here.load(Ordering::Relaxed), 100);
    drop(claim);
    let statistics = device.statistics();
    assert_eq!((statistics.bios, statistics.queued_local), (200, 200), "kept after the claim");
    assert_eq!(device.latencies().read.count(), 200);
}

#[test]
fn waiting_drives_claimed_queues() {
    let device: Arc<dyn BlockDevice> = null(Duration::from_millis(2), QueueOptions::default());
    let other: Arc<dyn BlockDevice> = null(Duration::from_millis(1), QueueOptions::default());
    let _claims = [device.claim().unwrap(), other.claim().unwrap()];
    let (batch, queue) = (Batch::new(), CompletionQueue::new());
    submit(&device, (0..20).map(|sector| read(sector * 8).in_batch(&batch)));
    submit(&other, (0..20).map(|sector| read(sector * 8).in_batch(&batch)));
    batch.wait().unwrap();
    submit(&device, [read(0).in_queue(&queue, 7)]);
    assert_eq!(queue.wait().cookie, 7);
    let (bio, waiter) = read(8).waited();
    submit(&other, [bio]);
    assert!(waiter.wait().result.is_ok());
}

#[test]
fn who_sleeps_for_several_claims_is_woken_by_others_too() {
    let never: [Arc<dyn BlockDevice>; 2] =
        [(); 2].map(|()| null(NEVER, QueueOptions::default()) as _);
    let _claims = never.each_ref().map(|device| device.claim().unwrap());
    let stuck = CompletionQueue::new();
    for device in &never {
        submit(device, [read(0).in_queue(&stuck, 0)]);
    }
    // Answered in a thread of its own, while this one sleeps for its two queues.
    let other: Arc<dyn BlockDevice> = null(Duration::from_micros(50), QueueOptions::default());
    for _ in 0..200 {
        let (bio, waiter) = read(0).waited();
        submit(&other, [bio]);
        assert!(waiter.wait().result.is_ok());
    }
    let closers = never.each_ref().map(|device| {
        let device = Arc::clone(device);
        std::thread::spawn(move || device.close())
    });
    for _ in 0..2 {
        let error = stuck.wait().completion.result.unwrap_err();
        assert_eq!((error.operation, error.sector), (Operation::Read, Sector(0)));
    }
    closers.into_iter().for_each(|closer| closer.join().unwrap());
}

#[test]
fn more_requests_than_tags_wait_for_them() {
    for drive in [Drive::Threads(1), Drive::Threads(3)] {
        let options = QueueOptions { depth: 2, drive, ..QueueOptions::default() };
        let device: Arc<dyn BlockDevice> = null(Duration::from_micros(50), options);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let device = &device;
                scope.spawn(move || {
                    let claim = (thread > 0).then(|| device.claim().unwrap());
                    let batch = Batch::new();
                    let plug = Plug::new(device);
                    for index in 0..64 {
                        plug.submit(read((thread * 1000 + index) * 16).in_batch(&batch));
                    }
                    batch.wait().unwrap();
                    drop(plug);
                    drop(claim);
                });
            }
        });
        assert_eq!(device.statistics().requests, 3 * 64);
    }
}

#[test]
fn a_receiver_may_submit_when_there_is_no_tag() {
    /// A read whose completion submits two more, `depth` times over.
    fn tree(device: &Arc<dyn BlockDevice>, batch: &Batch, depth: u32, sector: u64) -> Bio {
        let (device, tree_batch) = (Arc::clone(device), batch.clone());
        let held = Bio::flush().in_batch(batch);
        read(sector * 8).on_complete(move |_| {
            if depth > 0 {
                let next = [2 * sector, 2 * sector + 1];
                submit(&device, next.map(|next| tree(&device, &tree_batch, depth - 1, next)));
            }
            submit(&device, [held]);
        })
    }
    for claimed in [false, true] {
        let options = QueueOptions { depth: 1, ..QueueOptions::default() };
        let device: Arc<dyn BlockDevice> = null(Duration::from_micros(1), options);
        let claim = claimed.then(|| device.claim().unwrap());
        let batch = Batch::new();
        submit(&device, [tree(&device, &batch, 6, 1)]);
        batch.wait().unwrap();
        device.drain();
        assert_eq!(device.statistics().flushes, 127);
        drop(claim);
    }
}

#[test]
fn overlapping_requests_of_claims_keep_their_order() {
    let options = QueueOptions::default();
    let device: Arc<dyn BlockDevice> =
        Arc::new(Leaf::start(MemoryDriver::new(1 << 20), options).unwrap());
    let turn = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for own in 0..2_u64 {
            let (device, turn) = (&device, &turn);
            scope.spawn(move || {
                let _claim = device.claim().unwrap();
                for round in 0..50 {
                    while turn.load(Ordering::Acquire) != 2 * round + own {
                        std::thread::yield_now();
                    }
                    let byte = (2 * round + own) as u8;
                    let (bio, waiter) =
                        Bio::write(Sector(0), Buffer::copy_of(&[byte; 512])).waited();
                    submit(device, [bio]);
                    turn.fetch_add(1, Ordering::Release);
                    assert!(waiter.wait().result.is_ok());
                }
            });
        }
    });
    assert_eq!(read_buffer(&*device, Sector(0), 512).unwrap()[..], [99; 512]);
}

#[test]
fn a_request_that_takes_too_long_is_stopped_and_answered_once() {
    let options =
        QueueOptions { time_limit: Some(Duration::from_millis(5)), ..QueueOptions::default() };
    let completion_cpus = CpuSet::only(Topology::of_machine().online().iter().next().unwrap());
    for cpus in [CpuSet::default(), completion_cpus] {
        for claimed in [false, true] {
            let null = NullOptions {
                service_time: NEVER,
                completion_cpus: cpus.clone(),
                ..NullOptions::default()
            };
            let device: Arc<dyn BlockDevice> =
                Arc::new(NullDevice::null(null, options.clone()).unwrap());
            let claim = claimed.then(|| device.claim().unwrap());
            let queue = CompletionQueue::new();
            submit(&device, (0..10).map(|number| read(number * 8).in_queue(&queue, number)));
            for _ in 0..10 {
                let error = queue.wait().completion.result.unwrap_err();
                assert!(matches!(error.reason, Reason::TimedOut), "{error:?}");
                assert_eq!((error.operation, error.length), (Operation::Read, 512));
            }
            assert!(queue.poll().is_none());
            assert_eq!(device.statistics().errors, 10);
            drop(claim);
        }
    }
}

/// The limit is that of each request: there are many times as many as it would have room for, one
/// behind the other.
#[test]
fn a_time_limit_leaves_those_in_time_alone() {
    let limit = Duration::from_millis(250);
    let options = QueueOptions {
        time_limit: Some(limit),
        depth: 1,
        hardware_queues: 1,
        ..QueueOptions::default()
    };
    let device: Arc<dyn BlockDevice> = null(Duration::from_millis(5), options);
    let (batch, start) = (Batch::new(), Instant::now());
    submit(&device, (0..100).map(|sector| read(sector * 8).in_batch(&batch)));
    batch.wait().unwrap();
    assert!(start.elapsed() >= 100 * Duration::from_millis(5), "all took longer than the limit");
    assert_eq!(device.statistics().errors, 0);
}

#[test]
fn closing_answers_everything_and_refuses_the_rest() {
    let options = QueueOptions { depth: 4, ..QueueOptions::default() };
    let leaf = null(NEVER, options);
    let device: Arc<dyn BlockDevice> = Arc::clone(&leaf) as _;
    let queue = CompletionQueue::new();
    // Some are in the driver, some wait for a tag, one waits for a write, one for all of them.
    submit(&device, (0..8).map(|number| read(number * 8).in_queue(&queue, number)));
    let write = |number| Bio::write(Sector(800), Buffer::zeroed(512)).in_queue(&queue, number);
    submit(&device, [write(8), write(9), Bio::flush().in_queue(&queue, 10)]);
    leaf.close();
    let mut cookies: Vec<u64> = (0..11)
        .map(|_| {
            let finished = queue.poll().unwrap();
            let error = finished.completion.result.unwrap_err();
            let about = (error.operation, error.sector, error.length);
            let expected = match finished.cookie {
                number @ 0..8 => (Operation::Read, Sector(number * 8), 512),
                8 | 9 => (Operation::Write, Sector(800), 512),
                _ => (Operation::Flush, Sector(0), 0),
            };
            assert_eq!((&*error.device, about), ("null", expected));
            // Of the first four, those that the driver had by then were stopped.
            let stopped = matches!(error.reason, Reason::Io(_)) && finished.cookie < 4;
            assert!(stopped || matches!(error.reason, Reason::Closed), "{error:?}");
            finished.cookie
        })
        .collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..11).collect::<Vec<_>>());
    submit(&device, [read(0).in_queue(&queue, 11)]);
    let error = queue.poll().unwrap().completion.result.unwrap_err();
    assert!(matches!(error.reason, Reason::Closed), "{error:?}");
    let about = (&*error.device, error.operation, error.sector, error.length);
    assert_eq!(about, ("null", Operation::Read, Sector(0), 512));
    assert!(queue.poll().is_none(), "each is answered once");
    leaf.close();
}

/// The thread that claimed a queue is in the middle of its own requests when another one closes the
/// device.
#[test]
fn closing_stops_what_a_claim_has_in_flight() {
    let options = QueueOptions { depth: 4, ..QueueOptions::default() };
    let device: Arc<dyn BlockDevice> = null(NEVER, options);
    let claim = device.claim().unwrap();
    let queue = CompletionQueue::new();
    let closer = Arc::clone(&device);
    let closing = std::thread::spawn(move || {
        while closer.statistics().queued_local < 4 {
            std::thread::yield_now();
        }
        closer.close();
    });
    // More than there are tags: submitting waits, and drives the queue until it is closed.
    submit(&device, (0..8).map(|number| read(number * 8).in_queue(&queue, number)));
    let mut cookies: Vec<u64> = (0..8)
        .map(|_| {
            let finished = queue.wait();
            let error = finished.completion.result.unwrap_err();
            let about = (&*error.device, error.operation, error.sector, error.length);
            assert_eq!(about, ("null", Operation::Read, Sector(finished.cookie * 8), 512));
            finished.cookie
        })
        .collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..8).collect::<Vec<_>>());
    assert!(queue.poll().is_none(), "each is answered once");
    drop(claim);
    closing.join().unwrap();
}

#[test]
fn counters_tell_where_requests_were_started_and_answered() {
    let cpus: Vec<u32> = Topology::of_machine().online().iter().collect();
    let [first, last] = [cpus[0], cpus[cpus.len() - 1]];
    let options = QueueOptions {
        hardware_queues: cpus.len(),
        thread_cpus: cpus.iter().map(|cpu| CpuSet::only(*cpu)).collect(),
        order: OverlapOrder::LeftToSubmitters,
        ..QueueOptions::default()
    };
    let run = |queue: u32, completion: CompletionPlace, redirect| {
        let null = NullOptions { completion_cpus: CpuSet::only(last), ..NullOptions::default() };
        let device: Arc<dyn BlockDevice> =
            Arc::new(NullDevice::null(null, options.clone()).unwrap());
        let queue = QueuePlace::Cpus(CpuSet::only(queue));
        device.set_placement(&Placement { queue, completion, redirect });
        std::thread::scope(|scope| {
            let device = &device;
            scope.spawn(move || {
                CpuSet::only(first).pin_current_thread().unwrap();
                let batch = Batch::new();
                submit(device, (0..50).map(|sector| read(sector * 8).in_batch(&batch)));
                batch.wait().unwrap();
            });
        });
        device.drain();
        let counted = device.statistics();
        [
            counted.queued_local,
            counted.queued_remote,
            counted.completed_local,
            counted.completed_remote,
        ]
    };
    let at = |cpu| CompletionPlace::Cpus(CpuSet::only(cpu));
    let elsewhere = u64::from(first != last) * 50;
    for redirect in [Redirect::Threads, Redirect::RingMessage] {
        assert_eq!(run(first, at(last), redirect), [50, 0, 50, 0]);
        assert_eq!(run(first, CompletionPlace::Reaper, redirect), [50, 0, 50, 0]);
        let remote = [50 - elsewhere, elsewhere, 50 - elsewhere, elsewhere];
        assert_eq!(run(last, at(first), redirect), remote);
        assert_eq!(run(last, CompletionPlace::Submitter, redirect), remote);
    }
}

#[test]
fn bios_larger_than_a_request_are_split() {
    let limits = Limits { max_request_bytes: 8 * SECTOR_SIZE, ..Limits::default() };
    let null = NullOptions { limits, ..NullOptions::default() };
    let device: Arc<dyn BlockDevice> =
        Arc::new(NullDevice::null(null, QueueOptions::default()).unwrap());
    write_all_at(&*device, Sector(1), &[1; 20 * 512]).unwrap();
    assert_eq!(device.statistics().requests, 3);
    let (bio, waiter) = Bio::read(Sector(0), Buffer::copy_of(&[7; 33 * 512])).waited();
    submit(&device, [bio]);
    let buffer = waiter.wait().into_buffer().unwrap();
    assert_eq!(buffer[..], [7; 33 * 512], "put together again");
    let zeroes = Batch::new();
    submit(&device, [Bio::write_zeroes(Sector(0), 1 << 30).in_batch(&zeroes)]);
    zeroes.wait().unwrap();
    assert_eq!(device.statistics().requests, 3 + 5 + 1, "zeroes carry nothing");
}
