//! A device that does nothing, at a chosen speed: it shows the cost of the layer itself, and the
//! effect of placement of completions.
//!
//! Without a service time requests end where they start. With one they end so much later: noticed
//! by the thread that drives the queue, or, like the interrupts of a disk, by threads bound to
//! chosen CPUs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::affinity::CpuSet;
use crate::driver::{Completer, Completions, Driver, DriverQueue, OpenError, QueueContext, Wait};
use crate::queue::{Leaf, QueueOptions};
use crate::request::{Failure, Request, RequestList};
use crate::units::{Limits, SECTOR_SIZE, Sector};

/// A device that stores nothing; reads leave their buffers as they are.
pub type NullDevice = Leaf<NullDriver>;

/// How a [`NullDevice`] behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NullOptions {
    /// Size in bytes, rounded down to whole sectors.
    pub bytes: u64,
    /// Time from the start of a request to its end.
    pub service_time: Duration,
    /// CPUs on which ends are noticed, in turn by tag; none: where the queue is driven.
    pub completion_cpus: CpuSet,
    /// What requests must look like.
    pub limits: Limits,
}

impl Default for NullOptions {
    /// A large device, as fast as possible.
    fn default() -> Self {
        Self {
            bytes: 1 << 50,
            service_time: Duration::ZERO,
            completion_cpus: CpuSet::default(),
            limits: Limits::default(),
        }
    }
}

/// The driver of a [`NullDevice`].
#[derive(Debug)]
pub struct NullDriver {
    options: NullOptions,
    /// Threads that notice ends, started when the leaf is.
    interrupts: OnceLock<Vec<Interrupt>>,
}

impl Leaf<NullDriver> {
    /// A device that behaves as `null` says.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn null(null: NullOptions, queue: QueueOptions) -> Result<Self, OpenError> {
        Self::start(NullDriver { options: null, interrupts: OnceLock::new() }, queue)
    }
}

impl NullDriver {
    fn interrupts(&self) -> &[Interrupt] {
        self.interrupts.get().map_or(&[], Vec::as_slice)
    }
}

impl Driver for NullDriver {
    type Queue = NullQueue;

    fn name(&self) -> &str {
        "null"
    }

    fn capacity(&self) -> Sector {
        Sector(self.options.bytes / SECTOR_SIZE)
    }

    fn limits(&self) -> Limits {
        self.options.limits
    }

    fn attach(&self, completer: Completer) {
        let start = |cpu| Interrupt::start(cpu, completer.clone());
        // Attached once; a thread that cannot be started shows when a queue is opened.
        let _ = self.interrupts.set(self.options.completion_cpus.iter().map_while(start).collect());
    }

    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<NullQueue, OpenError> {
        if self.interrupts().len() < self.options.completion_cpus.len() {
            let cpus = &self.options.completion_cpus;
            let source = io::Error::other(format!("no thread can be bound to each of {cpus}"));
            return Err(OpenError::Thread { name: "null".into(), source });
        }
        Ok(NullQueue {
            driver: Arc::clone(self),
            index: context.index,
            due: Due::default(),
            sleeper: Arc::new(Sleeper {
                woken: AtomicBool::new(false),
                thread: std::thread::current(),
            }),
        })
    }

    fn execute(&self, _request: &mut Request) -> Option<Result<(), Failure>> {
        if self.options.service_time > Duration::ZERO || !self.interrupts().is_empty() {
            return None;
        }
        Some(Ok(()))
    }
}

/// A queue of a [`NullDevice`].
#[derive(Debug)]
pub struct NullQueue {
    driver: Arc<NullDriver>,
    index: usize,
    due: Due,
    sleeper: Arc<Sleeper>,
}

/// Requests and their ends, in the order of those: the service time is the same for all.
#[derive(Debug, Default)]
struct Due {
    requests: VecDeque<(Instant, Request)>,
    /// Stopped early: fail at once.
    stopped: Vec<Request>,
}

impl Due {
    /// Moves requests that have ended to `completions`; returns when the next one does.
    fn collect(&mut self, completions: &mut Completions) -> Option<Instant> {
        for request in self.stopped.drain(..) {
            completions.push(request, Err(rustix::io::Errno::CANCELED.into()));
        }
        while let Some((end, _)) = self.requests.front() {
            let end = *end;
            if end > Instant::now() {
                return Some(end);
            }
            if let Some((_, request)) = self.requests.pop_front() {
                completions.push(request, Ok(()));
            }
        }
        None
    }

    fn stop(&mut self, is_it: impl Fn(&Request) -> bool) {
        if let Some(index) = self.requests.iter().position(|(_, request)| is_it(request)) {
            self.stopped.extend(self.requests.remove(index).map(|(_, request)| request));
        }
    }
}

#[derive(Debug)]
struct Sleeper {
    woken: AtomicBool,
    thread: Thread,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl DriverQueue for NullQueue {
    fn start(&mut self, requests: &mut RequestList, completions: &mut Completions) {
        let service_time = self.driver.options.service_time;
        let interrupts = self.driver.interrupts();
        if service_time == Duration::ZERO && interrupts.is_empty() {
            while let Some(request) = requests.pop() {
                completions.push(request, Ok(()));
            }
            return;
        }
        let end = Instant::now() + service_time;
        while let Some(request) = requests.pop() {
            match (request.tag() as usize).checked_rem(interrupts.len()) {
                Some(which) => interrupts[which].push(end, self.index, request),
                None => self.due.requests.push_back((end, request)),
            }
        }
    }

    fn reap(&mut self, completions: &mut Completions, wait: Wait) -> io::Result<()> {
        loop {
            let next = self.due.collect(completions);
            let woken = self.sleeper.woken.swap(false, Ordering::Acquire);
            let limit = match wait {
                Wait::No => return Ok(()),
                Wait::Forever => None,
                Wait::Until(limit) => Some(limit),
            };
            let now = Instant::now();
            if woken || !completions.is_empty() || limit.is_some_and(|limit| limit <= now) {
                return Ok(());
            }
            match next.into_iter().chain(limit).min() {
                Some(until) => std::thread::park_timeout(until.saturating_duration_since(now)),
                None => std::thread::park(),
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.due.requests.len() + self.due.stopped.len()
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.sleeper))
    }

    fn expect(&mut self, _event: BorrowedFd<'_>) -> Option<Instant> {
        let stopped = self.due.stopped.first().map(|_| Instant::now());
        stopped.or_else(|| self.due.requests.front().map(|(end, _)| *end))
    }

    /// Ends the request at once, as failed.
    fn cancel(&mut self, tag: u32) {
        let interrupts = self.driver.interrupts();
        match (tag as usize).checked_rem(interrupts.len()) {
            Some(which) => interrupts[which].stop(self.index, tag),
            None => self.due.stop(|request| request.tag() == tag),
        }
    }
}

/// A thread that notices ends, bound to a CPU.
#[derive(Debug)]
struct Interrupt {
    shared: Arc<InterruptShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct InterruptShared {
    state: Mutex<InterruptState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct InterruptState {
    /// By hardware queue.
    due: Vec<Due>,
    closed: bool,
}

impl InterruptState {
    fn due(&mut self, queue: usize) -> &mut Due {
        if self.due.len() <= queue {
            self.due.resize_with(queue + 1, Due::default);
        }
        &mut self.due[queue]
    }
}

impl Interrupt {
    /// A thread on `cpu`; `None` if there can be none.
    fn start(cpu: u32, completer: Completer) -> Option<Self> {
        let shared = Arc::new(InterruptShared { state: Mutex::default(), changed: Condvar::new() });
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let thread = {
            let shared = Arc::clone(&shared);
            move || {
                let pinned = CpuSet::only(cpu).pin_current_thread().is_ok();
                // The starter waits for it.
                let _ = sender.send(pinned);
                if pinned {
                    shared.work(&completer);
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("null-{cpu}")).spawn(thread).ok()?;
        let interrupt = Self { shared, thread: Some(thread) };
        receiver.recv().unwrap_or(false).then_some(interrupt)
    }

    fn push(&self, end: Instant, queue: usize, request: Request) {
        let mut state = self.shared.state.lock();
        state.due(queue).requests.push_back((end, request));
        drop(state);
        self.shared.changed.notify_one();
    }

    fn stop(&self, queue: usize, tag: u32) {
        let mut state = self.shared.state.lock();
        state.due(queue).stop(|request| request.tag() == tag);
        drop(state);
        self.shared.changed.notify_one();
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take()
            // The last handle of a device may be dropped by a receiver that runs there.
            && thread.thread().id() != std::thread::current().id()
        {
            let joined = thread.join();
            debug_assert!(joined.is_ok(), "the thread catches the panics of receivers");
        }
    }
}

impl InterruptShared {
    /// The life of the thread.
    fn work(&self, completer: &Completer) {
        let mut completions = Completions::default();
        let mut state = self.state.lock();
        loop {
            let mut next = None;
            let mut answered = false;
            for queue in 0..state.due.len() {
                let end = state.due[queue].collect(&mut completions);
                next = next.into_iter().chain(end).min();
                if !completions.is_empty() {
                    drop(state);
                    let answer = || completer.complete(queue, &mut completions);
                    // A panic of one receiver must not take the thread from the others.
                    let _ = catch_unwind(AssertUnwindSafe(answer));
                    state = self.state.lock();
                    answered = true;
                }
            }
            if answered {
                // Requests may have come or been stopped while this thread was not waiting.
                continue;
            }
            match next {
                Some(end) if end > Instant::now() => {
                    self.changed.wait_until(&mut state, end);
                }
                Some(_) => {}
                None if state.closed => return,
                None => self.changed.wait(&mut state),
            }
        }
    }
}
