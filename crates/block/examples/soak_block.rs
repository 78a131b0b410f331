//! Many small operations on a driver that fails, delays, reorders and refuses at random, through
//! every way that a queue is driven: each bio must be answered exactly once.
//!
//! ```text
//! cargo xtask soak block --operations 100000000
//! ```

use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use undercroft_block::experiments::OverlapOrder;
use undercroft_block::{
    Bio, BlockDevice, Buffer, CompletionQueue, Completions, Drive, Driver, DriverQueue, Failure,
    Finished, Leaf, OpenError, Operation, Plug, PlugThreshold, QueueContext, QueueOptions, Reason,
    Request, RequestList, Sector, Wait,
};

/// Sectors of the device: few, so that requests often overlap.
const SECTORS: u64 = 1 << 14;
/// Bios of one thread in flight at most.
const WINDOW: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let [operations, seed] = arguments[..] else { return Err("soak_block OPERATIONS SEED".into()) };
    let setups = setups();
    let share = operations.div_ceil(setups.len() as u64);
    let mut answered = Tally::default();
    for (number, setup) in setups.iter().enumerate() {
        let start = Instant::now();
        let tally = soak(setup, share, seed + number as u64)?;
        println!(
            "{:<44} {} bios, {} failed, {:.1} s",
            setup.name,
            tally.answered,
            tally.failed,
            start.elapsed().as_secs_f64()
        );
        answered.answered += tally.answered;
        answered.failed += tally.failed;
    }
    println!("all: {} bios answered once, {} of them failed", answered.answered, answered.failed);
    Ok(())
}

/// One way to drive a device.
struct Setup {
    name: &'static str,
    options: QueueOptions,
    /// Threads that claim a queue, and threads that do not.
    threads: (u64, u64),
}

fn setups() -> Vec<Setup> {
    let free = QueueOptions {
        order: OverlapOrder::LeftToSubmitters,
        depth: 48,
        ..QueueOptions::default()
    };
    let kept = QueueOptions { order: OverlapOrder::Kept, ..free.clone() };
    let few = QueueOptions { depth: 5, ..kept.clone() };
    let timed = QueueOptions { time_limit: Some(Duration::from_micros(20)), ..kept.clone() };
    let many = QueueOptions { hardware_queues: 2, drive: Drive::Threads(2), ..kept.clone() };
    let setup = |name, options, threads| Setup { name, options, threads };
    vec![
        setup("a claim, order left to submitters", free.clone(), (1, 0)),
        setup("two claims, order left to submitters", free, (2, 0)),
        setup("two claims, order kept", kept.clone(), (2, 0)),
        setup("a thread of the queue", kept, (0, 2)),
        setup("two queues of two threads", many, (0, 2)),
        setup("claims and others with few tags", few, (2, 1)),
        setup("with a time limit", timed, (1, 1)),
    ]
}

#[derive(Default)]
struct Tally {
    answered: u64,
    failed: u64,
}

fn soak(setup: &Setup, operations: u64, seed: u64) -> Result<Tally, OpenError> {
    let leaf = Leaf::start(Erratic { seed }, setup.options.clone())?;
    let device: Arc<dyn BlockDevice> = Arc::new(leaf);
    let (claims, others) = setup.threads;
    let share = operations.div_ceil(claims + others);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..claims + others)
            .map(|thread| {
                let device = &device;
                let random = Random(seed.wrapping_mul(31).wrapping_add(thread));
                scope.spawn(move || submit(device, thread < claims, share, random))
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Tally>| {
            thread.join().expect("a thread found an error and reported it")
        };
        running.into_iter().map(join).collect()
    });
    let tally = tallies.iter().fold(Tally::default(), |sum, one| Tally {
        answered: sum.answered + one.answered,
        failed: sum.failed + one.failed,
    });
    device.drain();
    let passed = device.statistics();
    assert_eq!(passed.bios, tally.answered, "bios submitted and answered");
    Ok(tally)
}

/// Keeps bios in flight until `operations` were answered.
fn submit(
    device: &Arc<dyn BlockDevice>,
    claims: bool,
    operations: u64,
    mut random: Random,
) -> Tally {
    let claim = claims.then(|| device.claim().expect("a queue of the driver needs nothing"));
    let queue = CompletionQueue::new();
    let plug = Plug::with_threshold(device, PlugThreshold { bios: 32, bytes: 1 << 20 });
    let mut places: Vec<Place> = (0..WINDOW).map(|_| Place::default()).collect();
    let mut free: Vec<usize> = (0..WINDOW).collect();
    let mut submitted = 0;
    let mut tally = Tally::default();
    while tally.answered < operations {
        let batch = 1 + random.below(32);
        for _ in 0..batch.min(operations - submitted) {
            let Some(place) = free.pop() else { break };
            plug.submit(places[place].bio(&mut random).in_queue(&queue, places[place].name(place)));
            submitted += 1;
        }
        let mut answer = |one: Finished| {
            let place = (one.cookie % WINDOW as u64) as usize;
            assert_eq!(one.cookie, places[place].name(place), "an answer that nobody waits for");
            assert!(places[place].in_flight, "a second answer");
            tally.answered += 1;
            tally.failed += u64::from(one.completion.result.is_err());
            places[place].done(one);
            free.push(place);
        };
        if queue.poll_each(&mut answer) == 0 {
            answer(queue.wait());
        }
    }
    assert_eq!(free.len(), WINDOW, "every bio was answered");
    drop(plug);
    drop(claim);
    assert!(queue.poll().is_none(), "no bio was answered twice");
    tally
}

/// A place for one bio in flight, and its memory.
#[derive(Default)]
struct Place {
    uses: u64,
    in_flight: bool,
    buffer: Option<Buffer>,
}

impl Place {
    /// What the bio in this place is called: changes with every use.
    fn name(&self, place: usize) -> u64 {
        self.uses * WINDOW as u64 + place as u64
    }

    fn bio(&mut self, random: &mut Random) -> Bio {
        self.uses += 1;
        self.in_flight = true;
        let sector = Sector(random.below(SECTORS));
        match random.below(32) {
            0 => Bio::flush(),
            1 => Bio::write_zeroes(sector, 512 * (1 + random.below(64))),
            2..8 => Bio::write(sector, undercroft_block::Segment::zeroes()),
            _ => Bio::read(sector, self.buffer.take().unwrap_or_else(|| Buffer::zeroed(512))),
        }
    }

    fn done(&mut self, finished: Finished) {
        self.in_flight = false;
        if finished.completion.operation == Operation::Read {
            self.buffer = finished.completion.buffer;
            let late = finished
                .completion
                .result
                .is_err_and(|error| matches!(error.reason, Reason::TimedOut));
            assert!(self.buffer.is_some() || late, "a read gives its buffer back");
        }
    }
}

/// xorshift64*: good enough, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.max(1);
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A driver that does nothing, erratically.
struct Erratic {
    seed: u64,
}

struct ErraticQueue {
    started: Vec<Request>,
    room: usize,
    random: Random,
}

impl Driver for Erratic {
    type Queue = ErraticQueue;

    fn name(&self) -> &str {
        "erratic"
    }

    fn capacity(&self) -> Sector {
        Sector(SECTORS)
    }

    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<ErraticQueue, OpenError> {
        let random = Random(self.seed.wrapping_add(context.index as u64 + 1));
        Ok(ErraticQueue { started: Vec::new(), room: 1, random })
    }
}

impl ErraticQueue {
    /// How a request ends: mostly well, at times in the middle, at times not at all.
    fn result(&mut self, request: &Request) -> Result<(), Failure> {
        match self.random.below(16) {
            0 => Err(io::Error::from(io::ErrorKind::Other).into()),
            1 => {
                let done = self.random.below(request.length() + 1);
                Err(Failure {
                    done,
                    reason: Reason::from(io::Error::from(io::ErrorKind::StorageFull)),
                })
            }
            _ => Ok(()),
        }
    }
}

impl DriverQueue for ErraticQueue {
    fn start(&mut self, requests: &mut RequestList, completions: &mut Completions) {
        self.room = 1 + self.random.below(32) as usize;
        while self.started.len() < self.room
            && let Some(request) = requests.pop()
        {
            if self.random.below(4) == 0 {
                let result = self.result(&request);
                completions.push(request, result);
            } else {
                self.started.push(request);
            }
        }
    }

    fn reap(&mut self, completions: &mut Completions, wait: Wait) -> io::Result<()> {
        let some = u64::from(wait != Wait::No);
        let count = some + self.random.below(8);
        for _ in 0..count.min(self.started.len() as u64) {
            let index = self.random.below(self.started.len() as u64) as usize;
            let request = self.started.swap_remove(index);
            let result = self.result(&request);
            completions.push(request, result);
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.started.len()
    }

    fn waker(&self) -> Waker {
        // It never waits.
        Waker::noop().clone()
    }

    fn cancel(&mut self, tag: u32) {
        // Half of them can be stopped: they end next.
        if self.random.below(2) == 0
            && let Some(index) = self.started.iter().position(|request| request.tag() == tag)
        {
            let last = self.started.len() - 1;
            self.started.swap(index, last);
        }
    }
}
