//! Requests that a driver does not end in time: they are answered at their limit, their memory and
//! tags stay away until the driver lets go, and no thread waits for an answer that may never come.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use crate::remote::{Handed, ends, remote};
use parking_lot::Mutex;
use undercroft_block::experiments::OverlapOrder;
use undercroft_block::stack::{Mirror, Stripe};
use undercroft_block::{
    Bio, BlockDevice, BlockError, Buffer, BufferPool, Completion, CompletionQueue, Drive, Driver,
    Failure, Leaf, MemoryDevice, OpenError, Operation, Plug, PlugThreshold, QueueContext,
    QueueOptions, Reason, Request, Sector, Synchronous, flush, read_buffer, write_all_at,
};

const LIMIT: Duration = Duration::from_millis(50);

fn limited(depth: u32) -> QueueOptions {
    QueueOptions { depth, time_limit: Some(LIMIT), ..QueueOptions::default() }
}

fn read(sector: u64) -> Bio {
    Bio::read(Sector(sector), Buffer::zeroed(512))
}

fn write(sector: u64, byte: u8) -> Bio {
    Bio::write(Sector(sector), Buffer::copy_of(&[byte; 512]))
}

/// Submits each bio in a request of its own.
fn submit(device: &Arc<dyn BlockDevice>, bios: impl IntoIterator<Item = Bio>) {
    let plug = Plug::with_threshold(device, PlugThreshold { bios: 1, bytes: u64::MAX });
    bios.into_iter().for_each(|bio| plug.submit(bio));
}

fn assert_timed_out(error: &BlockError, device: &str) {
    assert_eq!(&*error.device, device);
    assert!(matches!(error.reason, Reason::TimedOut), "{error:?}");
}

/// A channel of completions, and the receiver that sends a bio's there.
fn told() -> (impl Fn(Bio) -> Bio, Receiver<Completion>) {
    let (sender, receiver) = mpsc::channel();
    let told = move |bio: Bio| {
        let sender = sender.clone();
        bio.on_complete(move |completion| drop(sender.send(completion)))
    };
    (told, receiver)
}

/// The waiter need not be in a call of this crate, even if it has claimed the device.
#[test]
fn an_answer_that_is_late_changes_nothing() {
    ends(|| {
        for claimed in [false, true] {
            let (leaf, remote) = remote("remote", limited(2));
            let device: Arc<dyn BlockDevice> = Arc::new(leaf);
            let claim = claimed.then(|| device.claim().unwrap());
            let (told, answers) = told();
            let start = Instant::now();
            submit(&device, [told(read(0))]);
            let mut late = remote.take();
            let completion = answers.recv().unwrap();
            assert!(start.elapsed() >= LIMIT);
            assert_timed_out(&completion.result.unwrap_err(), "remote");
            assert!(completion.buffer.is_none(), "the driver may still write it");

            // The tag is with the driver: others get the other one, one after the other.
            for sector in 1..5 {
                submit(&device, [told(read(sector * 8))]);
                let handed = remote.take();
                assert_ne!(handed.1.tag(), late.1.tag());
                late.1.scatter().for_each(|piece| piece.fill(sector as u8));
                remote.end(handed, Ok(()));
                let buffer = answers.recv().unwrap().into_buffer().unwrap();
                assert!(buffer.iter().all(|byte| *byte == 0), "memory of another request");
            }
            let tag = late.1.tag();
            remote.end(late, Ok(()));
            submit(&device, [told(read(0)), told(read(8))]);
            let again = [remote.take(), remote.take()];
            assert!(again.iter().any(|(_, request)| request.tag() == tag), "it comes back");
            again.into_iter().for_each(|handed| remote.end(handed, Ok(())));
            for _ in 0..2 {
                assert!(answers.recv().unwrap().result.is_ok());
            }
            assert!(answers.try_recv().is_err(), "each is answered once");
            let statistics = device.statistics();
            assert_eq!((statistics.errors, statistics.requests), (1, 7));
            drop(claim);
        }
    });
}

#[test]
fn memory_goes_back_when_the_driver_lets_go() {
    ends(|| {
        let pool = BufferPool::new(1 << 20);
        let (leaf, remote) = remote("remote", limited(4));
        let device: Arc<dyn BlockDevice> = Arc::new(leaf);
        let (told, answers) = told();
        let bios = [0, 8].map(|sector| told(Bio::read(Sector(sector), pool.get(4096))));
        submit(&device, bios);
        let late = [remote.take(), remote.take()];
        for _ in 0..2 {
            assert_timed_out(&answers.recv().unwrap().result.unwrap_err(), "remote");
        }
        assert_eq!(pool.bytes_in_use(), 2 * 4096);
        let [ended, dropped] = late;
        remote.end(ended, Ok(()));
        drop(dropped);
        // Through the queue, so that requests let go before are dealt with.
        device.drain();
        drop((device, remote));
        while pool.bytes_in_use() > 0 {
            std::thread::yield_now();
        }
        assert!(answers.try_recv().is_err(), "each is answered once");
    });
}

/// From then on submitters get errors; when the driver lets go they get through again.
#[test]
fn submitters_get_errors_while_all_tags_are_late() {
    ends(|| {
        let small = QueueOptions { queue_bytes: 1024, ..limited(2) };
        let several = QueueOptions { hardware_queues: 2, ..limited(2) };
        for (options, claimed) in [(small.clone(), false), (small, true), (several, true)] {
            let (leaf, remote) = remote("remote", options);
            let device: Arc<dyn BlockDevice> = Arc::new(leaf);
            std::thread::scope(|scope| {
                for thread in 0..3 {
                    let device = &device;
                    scope.spawn(move || {
                        let claim = (claimed && thread == 0).then(|| device.claim().unwrap());
                        let queue = CompletionQueue::new();
                        let places = (0..20).map(|place| (thread * 20 + place) * 8);
                        submit(device, places.map(|sector| read(sector).in_queue(&queue, sector)));
                        for _ in 0..20 {
                            assert_timed_out(
                                &queue.wait().completion.result.unwrap_err(),
                                "remote",
                            );
                        }
                        drop(claim);
                    });
                }
            });
            let late: Vec<Handed> = remote.requests.try_iter().collect();
            assert!(!late.is_empty());
            late.into_iter().for_each(|handed| remote.end(handed, Ok(())));
            let ending = scope_end(&device, &remote);
            assert!(ending.result.is_ok(), "{ending:?}");
        }
    });
}

/// Submits a read, ends its request, and returns the answer.
fn scope_end(device: &Arc<dyn BlockDevice>, remote: &crate::remote::Remote) -> Completion {
    let (told, answers) = told();
    submit(device, [told(read(0))]);
    remote.end(remote.take(), Ok(()));
    answers.recv().unwrap()
}

#[test]
fn a_device_closes_although_requests_never_come_back() {
    ends(|| {
        for (claimed, closes) in [(false, false), (false, true), (true, false), (true, true)] {
            let (leaf, remote) = remote("remote", limited(2));
            let device: Arc<dyn BlockDevice> = Arc::new(leaf);
            let claim = claimed.then(|| device.claim().unwrap());
            let (told, answers) = told();
            submit(&device, [told(read(0)), told(write(8, 1))]);
            let never = [remote.take(), remote.take()];
            if closes {
                device.close();
            }
            drop((claim, device));
            for _ in 0..2 {
                assert_timed_out(&answers.recv().unwrap().result.unwrap_err(), "remote");
            }
            drop((never, remote));
            assert!(answers.try_recv().is_err(), "each is answered once");
        }
    });
}

/// Sectors that a late write may still change are changed by no other request.
#[test]
fn what_overlaps_with_a_late_write_waits_for_it_and_fails_in_time() {
    ends(|| {
        let (leaf, remote) = remote("remote", limited(8));
        let device: Arc<dyn BlockDevice> = Arc::new(leaf);
        let (told, answers) = told();
        submit(&device, [told(write(0, 1))]);
        let late = remote.take();
        assert_timed_out(&answers.recv().unwrap().result.unwrap_err(), "remote");
        submit(&device, [told(write(0, 2)), told(read(0)), told(Bio::flush())]);
        submit(&device, [told(write(8, 3))]);
        let other = remote.take();
        assert_eq!(other.1.sector(), Sector(8), "those that do not overlap go on");
        remote.end(other, Ok(()));
        let completions: Vec<Completion> = (0..4).map(|_| answers.recv().unwrap()).collect();
        for completion in completions {
            match completion.sector {
                Sector(8) => assert!(completion.result.is_ok()),
                _ => assert_timed_out(&completion.result.unwrap_err(), "remote"),
            }
        }
        assert!(remote.requests.try_recv().is_err(), "none of them was started");
        remote.end(late, Ok(()));
        submit(&device, [told(write(0, 4)), told(Bio::flush())]);
        remote.end(remote.take(), Ok(()));
        remote.end(remote.take(), Ok(()));
        for _ in 0..2 {
            assert!(answers.recv().unwrap().result.is_ok());
        }
    });
}

/// A driver whose calls block until the test lets them go on.
struct Blocking {
    entered: Mutex<Sender<Sector>>,
    go_on: Arc<Mutex<Receiver<()>>>,
}

impl Driver for Blocking {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        "blocking"
    }

    fn capacity(&self) -> Sector {
        Sector(1 << 20)
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        let _ = self.entered.lock().send(request.sector());
        // Goes on for good when the other end is gone.
        let _ = self.go_on.lock().recv();
        request.scatter().for_each(|piece| piece.fill(9));
        Some(Ok(()))
    }
}

fn blocking(options: QueueOptions) -> (Arc<dyn BlockDevice>, Receiver<Sector>, Sender<()>) {
    let (entered, seen) = mpsc::channel();
    let (sender, go_on) = mpsc::channel();
    let driver = Blocking { entered: Mutex::new(entered), go_on: Arc::new(Mutex::new(go_on)) };
    (Arc::new(Leaf::start(driver, options).unwrap()), seen, sender)
}

/// All workers are stuck: what waits for them is answered, and so is what comes later.
#[test]
fn a_blocking_call_that_does_not_end_holds_no_other_up() {
    ends(|| {
        for order in [OverlapOrder::Kept, OverlapOrder::LeftToSubmitters] {
            let drive = Drive::Threads(2);
            let options = QueueOptions { drive, order, queue_bytes: 1024, ..limited(8) };
            let (device, _seen, go_on) = blocking(options);
            let (told, answers) = told();
            submit(&device, (0..20).map(|number| told(read(number * 8))));
            for _ in 0..20 {
                assert_timed_out(&answers.recv().unwrap().result.unwrap_err(), "blocking");
            }
            assert_timed_out(&read_buffer(&*device, Sector(0), 512).unwrap_err(), "blocking");
            assert_timed_out(&flush(&*device).unwrap_err(), "blocking");
            device.close();
            drop(device);
            assert!(answers.try_recv().is_err(), "each is answered once");
            drop(go_on);
        }
    });
}

/// The thread is in the driver for its own requests, and others wait for them.
#[test]
fn a_claim_that_is_stuck_in_the_driver_is_answered_to_others() {
    ends(|| {
        let (device, seen, go_on) = blocking(limited(8));
        let (told, answers) = told();
        let stuck = {
            let device = Arc::clone(&device);
            let bio = told(read(0));
            std::thread::spawn(move || {
                let _claim = device.claim().unwrap();
                submit(&device, [bio]);
            })
        };
        assert_eq!(seen.recv().unwrap(), Sector(0));
        assert_timed_out(&answers.recv().unwrap().result.unwrap_err(), "blocking");
        drop(go_on);
        stuck.join().unwrap();
        assert_eq!(read_buffer(&*device, Sector(8), 512).unwrap()[..], [9; 512]);
    });
}

/// A submitter that does its requests itself gets its answer when it is back; others before.
#[test]
fn an_inline_device_has_a_time_limit_too() {
    ends(|| {
        let options = QueueOptions { drive: Drive::Inline, ..limited(8) };
        let (device, seen, go_on) = blocking(options);
        let (told, answers) = told();
        let stuck = {
            let device = Arc::clone(&device);
            let bio = told(read(0));
            std::thread::spawn(move || submit(&device, [bio]))
        };
        assert_eq!(seen.recv().unwrap(), Sector(0));
        assert_timed_out(&answers.recv().unwrap().result.unwrap_err(), "blocking");
        drop(go_on);
        stuck.join().unwrap();
        assert!(answers.try_recv().is_err(), "each is answered once");
    });
}

#[test]
fn a_mirror_reads_from_another_leg_what_one_does_not_give_in_time() {
    ends(|| {
        let (leaf, remote) = remote("remote", limited(4));
        let sound: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(512 << 20));
        let contents: Vec<u8> = (0..64 << 10).map(|index| (index / 512) as u8).collect();
        write_all_at(&*sound, Sector(0), &contents).unwrap();
        let mirrors = [Arc::new(leaf) as Arc<dyn BlockDevice>, sound];
        let mirror: Arc<dyn BlockDevice> = Arc::new(Mirror::new(mirrors.into()).unwrap());
        // The parts of one read come from both: some into its own memory, some into other memory.
        let other: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(512 << 20));
        let stripe: Arc<dyn BlockDevice> =
            Arc::new(Stripe::new(4096, vec![mirror, other]).unwrap());
        let mut late: Vec<Handed> = Vec::new();
        let mut found = read_buffer(&*stripe, Sector(0), 128 << 10).unwrap();
        late.extend(remote.requests.try_iter());
        assert!(!late.is_empty(), "the leg was asked");
        for (_, request) in &mut late {
            request.scatter().for_each(|piece| piece.fill(0xee));
        }
        for (index, chunk) in found.chunks(4096).enumerate() {
            let expected = match index % 2 {
                0 => &contents[index / 2 * 4096..][..4096],
                _ => &[0; 4096],
            };
            assert!(chunk == expected, "chunk {index}");
        }
        found.fill(1);
        late.into_iter().for_each(|handed| remote.end(handed, Ok(())));

        // A write that one leg does not do in time drops the leg.
        let (bio, waiter) = Bio::write(Sector(0), Buffer::copy_of(&[5; 512])).waited();
        submit(&stripe, [bio]);
        let completion = waiter.wait();
        assert!(completion.result.is_ok(), "{completion:?}");
        assert_eq!(completion.operation, Operation::Write);
        assert_eq!(read_buffer(&*stripe, Sector(0), 512).unwrap()[..], [5; 512]);
        drop((stripe, remote));
    });
}

/// A part whose memory is with the late driver: the whole has no memory to give back.
#[test]
fn a_read_in_parts_of_which_one_is_late_gives_no_memory_back() {
    ends(|| {
        let (leaf, remote) = remote("remote", limited(4));
        let sound: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(512 << 20));
        let legs = vec![sound, Arc::new(leaf) as Arc<dyn BlockDevice>];
        let stripe: Arc<dyn BlockDevice> = Arc::new(Stripe::new(4096, legs).unwrap());
        let (told, answers) = told();
        submit(&stripe, [told(Bio::read(Sector(0), Buffer::zeroed(32 << 10)))]);
        let mut late = remote.take();
        let completion = answers.recv().unwrap();
        assert!(completion.buffer.is_none());
        let error = completion.result.unwrap_err();
        assert_timed_out(&error, "remote");
        assert_eq!((error.sector, error.length), (Sector(0), 32 << 10));
        late.1.scatter().for_each(|piece| piece.fill(0xee));
        remote.end(late, Ok(()));
    });
}
