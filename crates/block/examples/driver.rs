//! A driver of one's own, whose requests are done later by another thread: memory that is slow, and
//! at one place so slow that it never answers.
//!
//! ```text
//! cargo run -p undercroft-block --example driver
//! ```

use std::error::Error;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Duration;

use undercroft_block::{
    Completer, Completions, Driver, DriverQueue, Leaf, OpenError, Operation, QueueContext,
    QueueOptions, Reason, Request, RequestList, SECTOR_SIZE, Sector, Wait, flush, read_buffer,
    write_all_at,
};

const CAPACITY: Sector = Sector(2048);
/// Requests that start here are never done.
const STUCK: Sector = Sector(1000);

/// What goes to the thread: a request, and the index of the queue that it belongs to.
type Work = (usize, Request);

#[derive(Default)]
struct SlowMemory {
    /// How to reach the thread, and the thread; empty until the device starts.
    thread: OnceLock<(Mutex<Sender<Work>>, JoinHandle<()>)>,
}

impl Driver for SlowMemory {
    type Queue = SlowQueue;

    fn name(&self) -> &str {
        "slow memory"
    }

    fn capacity(&self) -> Sector {
        CAPACITY
    }

    /// Called once, with the way to hand in finished requests.
    fn attach(&self, completer: Completer) {
        let (work, requests) = channel::<Work>();
        let thread = std::thread::spawn(move || {
            let mut bytes = vec![0; (CAPACITY.0 * SECTOR_SIZE) as usize];
            let mut stuck = Vec::new();
            for (queue, mut request) in requests {
                if request.sector() == STUCK {
                    stuck.push(request);
                    continue;
                }
                std::thread::sleep(Duration::from_millis(1));
                transfer(&mut bytes, &mut request);
                let mut completions = Completions::default();
                completions.push(request, Ok(()));
                completer.complete(queue, &mut completions);
            }
        });
        let _ = self.thread.set((Mutex::new(work), thread));
    }

    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<SlowQueue, OpenError> {
        let (work, _) = self.thread.get().expect("attached before any queue is opened");
        let work = work.lock().expect("nothing panics while it is locked").clone();
        Ok(SlowQueue { index: context.index, work })
    }
}

impl Drop for SlowMemory {
    /// All queues are closed: without a sender of more work, the thread ends.
    fn drop(&mut self) {
        if let Some((work, thread)) = self.thread.take() {
            drop(work);
            let _ = thread.join();
        }
    }
}

/// Moves the bytes of `request`, which lies inside the device.
fn transfer(bytes: &mut [u8], request: &mut Request) {
    let start = (request.sector().0 * SECTOR_SIZE) as usize;
    let mut bytes = &mut bytes[start..start + request.length() as usize];
    match request.operation() {
        Operation::Read => {
            for piece in request.scatter() {
                let (here, rest) = bytes.split_at_mut(piece.len());
                piece.copy_from_slice(here);
                bytes = rest;
            }
        }
        Operation::Write => {
            for piece in request.gather() {
                let (here, rest) = bytes.split_at_mut(piece.len());
                here.copy_from_slice(piece);
                bytes = rest;
            }
        }
        Operation::Discard | Operation::WriteZeroes => bytes.fill(0),
        // Clones are not in the limits.
        Operation::Flush | Operation::CloneRange => {}
    }
}

struct SlowQueue {
    index: usize,
    work: Sender<Work>,
}

impl DriverQueue for SlowQueue {
    fn start(&mut self, requests: &mut RequestList, _completions: &mut Completions) {
        while let Some(request) = requests.pop() {
            // If the thread is gone the request is dropped, which fails it.
            let _ = self.work.send((self.index, request));
        }
    }

    // Nothing ends here, so there is nothing to collect, to wait for, or to be woken from.

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

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let time_limit = Some(Duration::from_secs(2));
    let options = QueueOptions { time_limit, ..QueueOptions::default() };
    let device = Leaf::start(SlowMemory::default(), options)?;
    write_all_at(&device, Sector(8), &[7; 4096])?;
    flush(&device)?;
    let bytes = read_buffer(&device, Sector(8), 4096)?;
    assert!(bytes.iter().all(|byte| *byte == 7), "it reads as it was written");

    let error = read_buffer(&device, STUCK, 4096).expect_err("the driver never answers");
    assert!(matches!(error.reason, Reason::TimedOut), "{error:?}");
    println!("{error}");
    // Waits for the requests under way and ends the threads; the stuck request goes with its
    // thread.
    drop(device);
    Ok(())
}
