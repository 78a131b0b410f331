//! The driver of an export, and the device over it.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use undercroft_block::{
    Completions, Driver, DriverQueue, Failure, Leaf, Limits, OpenError, QueueContext, QueueOptions,
    Request, RequestList, Sector, Wait,
};

use super::error::ClientError;
use super::export_limits::ExportLimits;
use super::options::ClientOptions;
use super::session::handshake::{Dialer, ExportInfo};
use super::session::supervisor::Supervisor;
use super::state::{Phase, Shared};
use super::turn::waiter::{Ended, Waiter};
use crate::protocol::Uri;

/// Requests in flight in one hardware queue. Servers work on 16 at a time in each connection, and
/// more hide the way there and back.
const DEPTH: u32 = 128;

/// An export of a server as a device.
pub type NbdDevice = Leaf<NbdDriver>;

/// The connections of an [`NbdDevice`].
pub struct NbdDriver {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A hardware queue of an [`NbdDevice`]: its thread sends and receives.
pub struct NbdQueue {
    shared: Arc<Shared>,
    connection: usize,
    waiter: Arc<Waiter>,
    in_flight: usize,
    /// The last descriptor to [`expect`](DriverQueue::expect) something at, a duplicate of the one
    /// with this number.
    event: Option<(i32, Arc<OwnedFd>)>,
    expects: bool,
}

/// A request up to this length that its submitter waits for is done by that thread. A longer one may
/// be a part of one that was cut, and its parts are to be under way together.
const SHORT: u64 = 64 << 10;

impl NbdDriver {
    /// Opens the export that `uri` names, in the time of its [`ClientOptions::timeout`]. Nothing is tried
    /// twice here: a server that is not there is an error. Unless it is `read_only`, an undercroft that
    /// serves it lets nothing else change it.
    ///
    /// # Errors
    /// The export cannot be used, or is read-only and `read_only` is not set.
    pub fn open(uri: &Uri, read_only: bool) -> Result<Self, ClientError> {
        let options = ClientOptions::of(uri)?;
        let deadline = Instant::now() + options.timeout;
        let dialer = Dialer::new(uri.clone(), read_only)?;
        let mut first = dialer.open(deadline)?;
        let is_read_only = first.terms.is_read_only();
        if is_read_only && !read_only {
            return Err(ClientError::ReadOnly { uri: uri.to_string() });
        }
        let limits = ExportLimits::new(first.terms, read_only || is_read_only);
        let thread = |source| ClientError::Thread { uri: uri.to_string(), source };
        let ports = 0..limits.connections(options.connections);
        let watchers: Vec<_> =
            ports.map(|_| Waiter::new()).collect::<Result<_, _>>().map_err(thread)?;
        let shared = Arc::new(Shared::new(dialer, options, limits, &watchers));
        let failed = |source| ClientError::Handshake { uri: uri.to_string(), source };
        first.learn_zeroes(&limits, &shared.zeroes, deadline).map_err(failed)?;
        let connections = shared.dialer.join(first, &limits, options.connections, deadline)?;

        // Made before its threads, so that one that cannot start stops the others.
        let driver = Self { shared, threads: Mutex::default() };
        let mut supervisor = Supervisor::new(&driver.shared);
        supervisor.install(&mut driver.shared.state.lock(), connections).map_err(thread)?;
        driver.spawn("nbd-supervisor", move || supervisor.run()).map_err(thread)?;
        for (connection, waiter) in watchers.into_iter().enumerate() {
            let shared = Arc::clone(&driver.shared);
            driver
                .spawn("nbd-watcher", move || shared.watch(connection, &waiter))
                .map_err(thread)?;
        }
        Ok(driver)
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = Builder::new().name(name.to_owned()).spawn(run)?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Queues that suit the connections: one for each, unless there are fewer processors to submit.
    fn queue_options(&self, time_limit: Option<Duration>) -> QueueOptions {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        QueueOptions {
            hardware_queues: self.shared.turns.len().min(processors),
            depth: DEPTH,
            time_limit,
            ..QueueOptions::default()
        }
    }
}

/// Opens the export that `uri` names as a device. With a `time_limit`, requests that take longer
/// are answered with an error ([`QueueOptions::time_limit`]), beside the limit of the client
/// ([`ClientOptions::timeout`]).
///
/// # Errors
/// The export cannot be used, or is read-only and `read_only` is not set; or threads cannot be
/// started.
pub fn open(
    uri: &Uri,
    read_only: bool,
    time_limit: Option<Duration>,
) -> Result<NbdDevice, ClientError> {
    let driver = NbdDriver::open(uri, read_only)?;
    let options = driver.queue_options(time_limit);
    Leaf::start(driver, options).map_err(|error| ClientError::Thread {
        uri: uri.to_string(),
        source: io::Error::other(error),
    })
}

/// The exports that the server of `uri` lists, whichever `uri` names.
///
/// # Errors
/// The server cannot be reached, or does not list its exports.
pub fn list(uri: &Uri) -> Result<Vec<ExportInfo>, ClientError> {
    let deadline = Instant::now() + ClientOptions::of(uri)?.timeout;
    Dialer::new(uri.clone(), true)?.dial(deadline)?.list(deadline)
}

impl Driver for NbdDriver {
    type Queue = NbdQueue;

    fn name(&self) -> &str {
        &self.shared.name
    }

    fn capacity(&self) -> Sector {
        self.shared.limits.capacity()
    }

    fn limits(&self) -> Limits {
        self.shared.limits.limits()
    }

    fn is_read_only(&self) -> bool {
        self.shared.limits.read_only
    }

    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<NbdQueue, OpenError> {
        let thread = |source| OpenError::Thread { name: self.shared.name.clone(), source };
        Ok(NbdQueue {
            shared: Arc::clone(&self.shared),
            connection: context.index % self.shared.turns.len(),
            waiter: Waiter::new().map_err(thread)?,
            in_flight: 0,
            event: None,
            expects: false,
        })
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        if request.length() > SHORT {
            return None;
        }
        let (number, waiter) = here()?;
        let connection = self.shared.roomy(number % self.shared.turns.len());
        let mut ended = self.shared.begin(std::iter::once(request.take()), connection, &waiter);
        loop {
            // There is one request of this thread.
            if let Some(Ended { request: done, result, .. }) = ended.pop() {
                *request = done;
                return Some(result);
            }
            ended = self.shared.receive_in_turn(connection, &waiter, true);
        }
    }
}

/// A number for the calling thread, and its waiter for requests that it does itself.
fn here() -> Option<(usize, Arc<Waiter>)> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HERE: RefCell<Option<(usize, Arc<Waiter>)>> = const { RefCell::new(None) };
    }
    let find = |here: &RefCell<Option<(usize, Arc<Waiter>)>>| {
        let mut here = here.borrow_mut();
        if here.is_none() {
            // Without a descriptor the thread of the queue does them.
            *here = Some((NEXT.fetch_add(1, Ordering::Relaxed), Waiter::new().ok()?));
        }
        here.clone()
    };
    HERE.try_with(find).ok().flatten()
}

impl Drop for NbdDriver {
    /// Takes leave of the server. Nothing is in flight, unless the device was not used at all.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.phase = Phase::Closed;
        let links = std::mem::take(&mut state.links);
        self.shared.change.notify_all();
        drop(state);
        links.iter().for_each(|link| link.disconnect());
        self.shared.turns.iter().for_each(|turn| turn.close());
        for thread in self.threads.get_mut().drain(..) {
            let joined = thread.join();
            debug_assert!(joined.is_ok(), "a thread of the client panicked");
        }
    }
}

impl NbdQueue {
    /// Hands in what has ended.
    fn complete(&mut self, ended: Vec<Ended>, completions: &mut Completions) {
        self.in_flight -= ended.len();
        for Ended { request, result, .. } in ended {
            completions.push(request, result);
        }
    }
}

impl DriverQueue for NbdQueue {
    fn start(&mut self, requests: &mut RequestList, completions: &mut Completions) {
        self.in_flight += requests.len();
        let requests = std::iter::from_fn(|| requests.pop());
        let ended = self.shared.begin(requests, self.connection, &self.waiter);
        self.complete(ended, completions);
    }

    fn reap(&mut self, completions: &mut Completions, wait: Wait) -> io::Result<()> {
        let waits = wait != Wait::No && completions.is_empty();
        let ended = self.shared.receive_in_turn(self.connection, &self.waiter, waits);
        self.complete(ended, completions);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn waker(&self) -> Waker {
        Arc::clone(&self.waiter).into()
    }

    /// Others receive meanwhile.
    fn expect(&mut self, event: BorrowedFd<'_>) -> Option<Instant> {
        let number = event.as_raw_fd();
        if self.event.as_ref().is_none_or(|(known, _)| *known != number) {
            let copy = event.try_clone_to_owned().ok();
            self.event = copy.map(|copy| (number, Arc::new(copy)));
        }
        let copy = self.event.as_ref().map(|(_, copy)| Arc::clone(copy));
        let has_arrived = copy.is_none() || self.waiter.call_also(copy);
        self.shared.turns[self.connection].expect();
        self.expects = true;
        has_arrived.then(Instant::now)
    }

    fn ignore(&mut self) {
        if std::mem::take(&mut self.expects) {
            self.waiter.call_also(None);
            self.shared.turns[self.connection].ignore();
        }
    }
}

impl Drop for NbdQueue {
    /// What is in flight was answered at its time limit.
    fn drop(&mut self) {
        self.waiter.leave();
        self.shared.turns[self.connection].depart(&self.waiter, false);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use undercroft_block::{BlockDevice, MemoryDevice, write_all_at};

    use super::*;
    use crate::server::{Export, Listener, Server, Settings};

    /// Each thread uses one of the connections; the flush of the client's own may be on the other.
    #[test]
    fn writes_that_need_a_flush_do_not_wait_until_someone_looks() {
        const LENGTH: usize = SHORT as usize;
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let export = Export::new("disk", Arc::new(MemoryDevice::new(16 << 20)));
        let listener = Listener::unix(&socket).unwrap();
        let server = Server::start(vec![listener], vec![export], Settings::default()).unwrap();
        let uri =
            format!("nbd+unix:///disk?socket={}&x-connections=2&x-unflushed=1M", socket.display());
        let device = open(&uri.parse().unwrap(), false, None).unwrap();
        let device: Arc<dyn BlockDevice> = Arc::new(device);
        for _ in 0..4 {
            let device = Arc::clone(&device);
            let write = move || {
                for number in 0..128 {
                    let sector = Sector(number * SHORT / 512);
                    write_all_at(&*device, sector, &[7; LENGTH]).unwrap();
                }
            };
            thread::spawn(write).join().unwrap();
        }
        drop(device);
        server.stop().unwrap();
    }
}
