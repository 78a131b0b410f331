//! Drivers that drop requests instead of ending them, and drivers that panic: every bio is
//! answered, tags come back, and devices close.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::{Wake, Waker};
use std::thread::Thread;

use crate::remote::{Handed, ends, remote};
use parking_lot::Mutex;
use undercroft_block::stack::{Mirror, Stripe};
use undercroft_block::{
    Batch, Bio, BlockDevice, BlockError, Buffer, CompletionQueue, Completions, Drive, Driver,
    DriverQueue, Failure, Leaf, MemoryDevice, OpenError, Plug, PlugThreshold, QueueContext,
    QueueOptions, Reason, Request, RequestList, Sector, Synchronous, Wait, read_buffer,
    write_all_at,
};

fn read(sector: u64) -> Bio {
    Bio::read(Sector(sector), Buffer::zeroed(512))
}

/// Submits each bio in a request of its own.
fn submit(device: &Arc<dyn BlockDevice>, bios: impl IntoIterator<Item = Bio>) {
    let plug = Plug::with_threshold(device, PlugThreshold { bios: 1, bytes: u64::MAX });
    bios.into_iter().for_each(|bio| plug.submit(bio));
}

fn assert_dropped(error: &BlockError, device: &str) {
    assert_eq!(&*error.device, device);
    assert!(matches!(error.reason, Reason::Dropped), "{error:?}");
}

#[test]
fn dropped_requests_are_answered_while_others_go_on() {
    ends(|| {
        for drive in [Drive::Threads(1), Drive::Threads(3)] {
            let options = QueueOptions { depth: 4, drive, ..QueueOptions::default() };
            let (leaf, remote) = remote("remote", options);
            let device: Arc<dyn BlockDevice> = Arc::new(leaf);
            let driver = std::thread::spawn(move || {
                for (number, handed) in (0..300).zip(remote.requests.iter()) {
                    match number % 3 {
                        0 => drop(handed),
                        _ => remote.end(handed, Ok(())),
                    }
                }
            });
            let failed: usize = std::thread::scope(|scope| {
                let running = [0, 1, 2].map(|thread| {
                    let device = &device;
                    scope.spawn(move || {
                        // Tags that did not come back would stop the others.
                        let claim = (thread == 0).then(|| device.claim().unwrap());
                        let queue = CompletionQueue::new();
                        let places = (0..100).map(|place| (thread * 100 + place) * 8);
                        submit(device, places.map(|sector| read(sector).in_queue(&queue, sector)));
                        let mut failed = 0;
                        for _ in 0..100 {
                            let completion = queue.wait().completion;
                            if let Err(error) = completion.result {
                                assert_dropped(&error, "remote");
                                failed += 1;
                            }
                            assert!(completion.buffer.is_some(), "the memory comes back");
                        }
                        assert!(queue.poll().is_none(), "each is answered once");
                        drop(claim);
                        failed
                    })
                });
                running.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(failed, 100);
            assert_eq!(device.statistics().errors, 100);
            driver.join().unwrap();
        }
    });
}

#[test]
fn a_device_closes_although_its_driver_drops_everything() {
    ends(|| {
        for claimed in [false, true] {
            let (leaf, remote) = remote("remote", QueueOptions::default());
            let device: Arc<dyn BlockDevice> = Arc::new(leaf);
            let claim = claimed.then(|| device.claim().unwrap());
            let queue = CompletionQueue::new();
            submit(&device, (0..10).map(|number| read(number * 8).in_queue(&queue, number)));
            let runtime = std::thread::spawn(move || {
                let held: Vec<Handed> = (0..10).map(|_| remote.take()).collect();
                drop((held, remote));
            });
            drop((claim, device));
            for _ in 0..10 {
                assert_dropped(&queue.wait().completion.result.unwrap_err(), "remote");
            }
            runtime.join().unwrap();
        }
    });
}

/// As the thread of the driver unwinds it drops the request that it works on, and with its end of
/// the channel all that wait there.
#[test]
fn a_driver_thread_that_panics_fails_what_it_had() {
    ends(|| {
        let (leaf, remote) = remote("remote", QueueOptions::default());
        let device: Arc<dyn BlockDevice> = Arc::new(leaf);
        let driver = std::thread::spawn(move || {
            remote.end(remote.take(), Ok(()));
            let _held = remote.take();
            panic!("a defect of the driver");
        });
        let queue = CompletionQueue::new();
        submit(&device, (0..20).map(|number| read(number * 8).in_queue(&queue, number)));
        let results = (0..20).map(|_| queue.wait().completion.result);
        let errors: Vec<BlockError> = results.filter_map(Result::err).collect();
        assert_eq!(errors.len(), 19);
        errors.iter().for_each(|error| assert_dropped(error, "remote"));
        assert!(driver.join().is_err());
        assert_dropped(&read_buffer(&*device, Sector(0), 512).unwrap_err(), "remote");
    });
}

#[test]
fn a_receiver_may_drop_requests_submit_and_drop_the_device() {
    ends(|| {
        let (leaf, remote) = remote("remote", QueueOptions::default());
        let device: Arc<dyn BlockDevice> = Arc::new(leaf);
        let held = Arc::new(Mutex::new(Vec::new()));
        let (sender, results) = mpsc::channel();
        let told = |bio: Bio| {
            let sender = sender.clone();
            bio.on_complete(move |completion| sender.send(completion.result).unwrap())
        };
        let (stock, other, after) = (Arc::clone(&held), Arc::clone(&device), told(read(80)));
        let first = read(0).on_complete(move |_| {
            stock.lock().clear();
            submit(&other, [after]);
        });
        submit(&device, [first, told(read(8)), told(read(16))]);
        let first = remote.take();
        held.lock().extend([remote.take(), remote.take()]);
        remote.end(first, Ok(()));
        for _ in 0..2 {
            assert_dropped(&results.recv().unwrap().unwrap_err(), "remote");
        }
        drop(remote.take());
        assert_dropped(&results.recv().unwrap().unwrap_err(), "remote");

        // The last handle goes in the answer of a request that was dropped, while another is held.
        let (last, ended) = (Arc::clone(&device), sender.clone());
        let dropping = read(0).on_complete(move |completion| {
            drop(last);
            ended.send(completion.result).unwrap();
        });
        submit(&device, [dropping, told(read(8))]);
        let requests = [remote.take(), remote.take()];
        drop(device);
        drop(requests);
        for _ in 0..2 {
            assert_dropped(&results.recv().unwrap().unwrap_err(), "remote");
        }
    });
}

/// Drops its requests while it is called.
struct Careless;

impl Driver for Careless {
    type Queue = Self;

    fn name(&self) -> &str {
        "careless"
    }

    fn capacity(&self) -> Sector {
        Sector(1 << 20)
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self, OpenError> {
        Ok(Self)
    }
}

impl DriverQueue for Careless {
    fn start(&mut self, requests: &mut RequestList, _completions: &mut Completions) {
        while let Some(request) = requests.pop() {
            assert!(request.sector() != Sector(800), "a defect of the driver");
            drop(request);
        }
    }

    fn reap(&mut self, _completions: &mut Completions, _wait: Wait) -> io::Result<()> {
        Ok(())
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

/// Receivers run where no call of the driver is under way, so they may submit.
#[test]
fn requests_dropped_in_a_call_of_the_driver_are_answered_outside_of_it() {
    ends(|| {
        for claimed in [false, true] {
            let leaf = Leaf::start(Careless, QueueOptions::default()).unwrap();
            let device: Arc<dyn BlockDevice> = Arc::new(leaf);
            let claim = claimed.then(|| device.claim().unwrap());
            let queue = CompletionQueue::new();
            for number in 0..50 {
                let (other, next) = (Arc::clone(&device), read(8).in_queue(&queue, number));
                submit(&device, [read(0).on_complete(move |_| submit(&other, [next]))]);
            }
            for _ in 0..50 {
                assert_dropped(&queue.wait().completion.result.unwrap_err(), "careless");
            }
            drop(claim);
        }
    });
}

#[test]
fn a_driver_that_panics_in_a_thread_of_the_queue_leaves_no_waiter() {
    ends(|| {
        for threads in [1, 2] {
            let drive = Drive::Threads(threads);
            let options = QueueOptions { drive, depth: 2, ..QueueOptions::default() };
            let leaf = Leaf::start(Careless, options).unwrap();
            let device: Arc<dyn BlockDevice> = Arc::new(leaf);
            let queue = CompletionQueue::new();
            let bios = (0..200).map(|number| {
                let sector = if number % 10 == 1 { 800 } else { number * 8 };
                read(sector).in_queue(&queue, number)
            });
            submit(&device, bios);
            for _ in 0..200 {
                let error = queue.wait().completion.result.unwrap_err();
                assert_eq!(&*error.device, "careless");
                assert!(matches!(error.reason, Reason::Dropped | Reason::Broken), "{error:?}");
            }
            let error = write_all_at(&*device, Sector(0), &[1; 512]).unwrap_err();
            assert!(matches!(error.reason, Reason::Broken), "{error:?}");
            device.close();
        }
    });
}

/// A driver with a thread that ends its requests through a channel, and counts its requests: wrong,
/// when that thread ends.
struct Counting;

struct CountingQueue {
    in_flight: usize,
    work: Sender<Request>,
    ended: Receiver<Request>,
    thread: Arc<Unpark>,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Driver for Counting {
    type Queue = CountingQueue;

    fn name(&self) -> &str {
        "counting"
    }

    fn capacity(&self) -> Sector {
        Sector(1 << 20)
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<CountingQueue, OpenError> {
        let (work, requests) = mpsc::channel::<Request>();
        let (done, ended) = mpsc::channel();
        let thread = Arc::new(Unpark(std::thread::current()));
        let waker = Waker::from(Arc::clone(&thread));
        std::thread::spawn(move || {
            for request in requests {
                if request.sector() == Sector(800) {
                    return;
                }
                if done.send(request).is_err() {
                    return;
                }
                waker.wake_by_ref();
            }
        });
        Ok(CountingQueue { in_flight: 0, work, ended, thread })
    }
}

impl DriverQueue for CountingQueue {
    fn start(&mut self, requests: &mut RequestList, _completions: &mut Completions) {
        while let Some(request) = requests.pop() {
            self.in_flight += 1;
            drop(self.work.send(request));
        }
    }

    fn reap(&mut self, completions: &mut Completions, wait: Wait) -> io::Result<()> {
        if wait == Wait::Forever {
            std::thread::park();
        }
        for request in self.ended.try_iter() {
            self.in_flight -= 1;
            completions.push(request, Ok(()));
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.thread))
    }
}

#[test]
fn a_driver_that_counts_dropped_requests_stops_no_thread() {
    ends(|| {
        for claimed in [false, true] {
            let options = QueueOptions { depth: 2, ..QueueOptions::default() };
            let leaf = Leaf::start(Counting, options).unwrap();
            let device: Arc<dyn BlockDevice> = Arc::new(leaf);
            let claim = claimed.then(|| device.claim().unwrap());
            let queue = CompletionQueue::new();
            // Behind the one that ends the thread of the driver come more than there are tags.
            let sector = |number| if number == 3 { 800 } else { number * 8 };
            submit(&device, (0..12).map(|number| read(sector(number)).in_queue(&queue, number)));
            for _ in 0..12 {
                let finished = queue.wait();
                match finished.completion.result {
                    Ok(()) => assert!(finished.cookie < 3),
                    Err(error) => assert_dropped(&error, "counting"),
                }
            }
            drop(claim);
        }
    });
}

#[test]
fn a_mirror_goes_on_without_a_leg_that_drops_requests() {
    ends(|| {
        let (leaf, remote) = remote("remote", QueueOptions::default());
        let sound: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(512 << 20));
        write_all_at(&*sound, Sector(0), &[7; 4096]).unwrap();
        let driver = std::thread::spawn(move || remote.requests.iter().for_each(drop));
        let legs = [Arc::new(leaf) as Arc<dyn BlockDevice>, sound];
        let mirror: Arc<dyn BlockDevice> = Arc::new(Mirror::new(legs.into()).unwrap());
        for _ in 0..10 {
            assert_eq!(read_buffer(&*mirror, Sector(0), 4096).unwrap()[..], [7; 4096]);
        }
        write_all_at(&*mirror, Sector(8), &[8; 4096]).unwrap();
        assert_eq!(read_buffer(&*mirror, Sector(8), 4096).unwrap()[..], [8; 4096]);
        drop(mirror);
        driver.join().unwrap();
    });
}

#[test]
fn a_stripe_names_the_leg_that_dropped_a_part() {
    ends(|| {
        let (leaf, remote) = remote("remote", QueueOptions::default());
        let sound: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(512 << 20));
        let driver = std::thread::spawn(move || remote.requests.iter().for_each(drop));
        let legs: Vec<Arc<dyn BlockDevice>> = vec![sound, Arc::new(leaf)];
        let stripe: Arc<dyn BlockDevice> = Arc::new(Stripe::new(4096, legs).unwrap());
        let (bio, waiter) = Bio::read(Sector(0), Buffer::zeroed(64 << 10)).waited();
        let batch = Batch::new();
        submit(&stripe, [bio, Bio::write(Sector(800), Buffer::zeroed(8192)).in_batch(&batch)]);
        let completion = waiter.wait();
        let error = completion.result.unwrap_err();
        assert_dropped(&error, "remote");
        assert_eq!((error.sector, error.length), (Sector(0), 64 << 10));
        assert_eq!(completion.buffer.map(|buffer| buffer.len()), Some(64 << 10));
        assert_dropped(&batch.wait().unwrap_err(), "remote");
        drop(stripe);
        driver.join().unwrap();
    });
}

/// Panics in the thread of the submitter.
struct Panicking;

impl Driver for Panicking {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        "panicking"
    }

    fn capacity(&self) -> Sector {
        Sector(1 << 20)
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, _request: &mut Request) -> Option<Result<(), Failure>> {
        panic!("a defect of the driver");
    }
}

#[test]
fn a_driver_that_panics_in_a_submitter_answers_it_before_the_device_is_gone() {
    ends(|| {
        let options = QueueOptions { drive: Drive::Inline, ..QueueOptions::default() };
        let device: Arc<dyn BlockDevice> = Arc::new(Leaf::start(Panicking, options).unwrap());
        let (sender, results) = mpsc::channel();
        let bio = read(0).on_complete(move |completion| sender.send(completion.result).unwrap());
        let other = Arc::clone(&device);
        assert!(std::thread::spawn(move || submit(&other, [bio])).join().is_err());
        drop(device);
        assert_dropped(&results.try_recv().unwrap().unwrap_err(), "panicking");
    });
}
