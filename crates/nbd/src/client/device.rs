//! The driver of an export, and the device over it.

use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use undercroft_block::{
    Completer, Completions, Driver, DriverQueue, Leaf, Limits, OpenError, QueueContext,
    QueueOptions, RequestList, Sector, Wait,
};

use super::error::ClientError;
use super::facts::Facts;
use super::handshake::{Dialer, ExportInfo};
use super::keeper::{Keeper, STEP_LIMIT, run_errands};
use super::options::ClientOptions;
use super::state::{Phase, Shared};
use super::threads;
use crate::protocol::Uri;

/// Requests in flight in one hardware queue. Servers work on 16 at a time in each connection, and
/// more hide the way there and back.
const DEPTH: u32 = 128;

/// An export of a server as a device.
pub type NbdDevice = Leaf<NbdDriver>;

/// The connections of an [`NbdDevice`].
pub struct NbdDriver {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A hardware queue of an [`NbdDevice`]: it only begins requests, which end in threads of the
/// driver.
pub struct NbdQueue {
    shared: Arc<Shared>,
    index: usize,
}

impl NbdDriver {
    /// Opens the export that `uri` names. Nothing is tried twice here: a server that is not there is
    /// an error.
    ///
    /// # Errors
    /// The export cannot be used, or is read-only and `read_only` is not set.
    pub fn open(uri: &Uri, read_only: bool) -> Result<Self, ClientError> {
        let options = ClientOptions::of(uri)?;
        let limit = options.timeout.min(STEP_LIMIT);
        let dialer = Dialer::new(uri.clone())?;
        let mut first = dialer.open(limit)?;
        let is_read_only = first.terms.is_read_only();
        if is_read_only && !read_only {
            return Err(ClientError::ReadOnly { uri: uri.to_string() });
        }
        let facts = Facts::new(first.terms, read_only || is_read_only);
        let shared = Arc::new(Shared::new(dialer, options, facts));
        let failed = |source| ClientError::Handshake { uri: uri.to_string(), source };
        first.learn_zeroes(&facts, &shared.zeroes).map_err(failed)?;
        let connections = shared.dialer.join(first, &facts, options.connections, limit)?;

        let thread = |source| ClientError::Thread { uri: uri.to_string(), source };
        // Made before its threads, so that one that cannot start stops the others.
        let driver = Self { shared, threads: Mutex::default() };
        let mut keeper = Keeper::new(&driver.shared);
        keeper.install(&mut driver.shared.state.lock(), connections).map_err(thread)?;
        driver.spawn("nbd-keeper", move || keeper.run()).map_err(thread)?;
        let shared = Arc::clone(&driver.shared);
        driver.spawn("nbd-errands", move || run_errands(&shared)).map_err(thread)?;
        Ok(driver)
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = threads::spawn(name, run)?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Queues that suit the connections: one for each.
    fn queue_options(&self, time_limit: Option<Duration>) -> QueueOptions {
        let connections = self.shared.facts.connections(self.shared.options.connections);
        QueueOptions {
            hardware_queues: connections,
            depth: DEPTH,
            max_depth: DEPTH,
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
    let limit = ClientOptions::of(uri)?.timeout.min(STEP_LIMIT);
    Dialer::new(uri.clone())?.dial(limit)?.list()
}

impl Driver for NbdDriver {
    type Queue = NbdQueue;

    fn name(&self) -> &str {
        &self.shared.name
    }

    fn capacity(&self) -> Sector {
        self.shared.facts.capacity()
    }

    fn limits(&self) -> Limits {
        self.shared.facts.limits()
    }

    fn is_read_only(&self) -> bool {
        self.shared.facts.read_only
    }

    fn attach(&self, completer: Completer) {
        // Called once.
        let _ = self.shared.completer.set(completer);
    }

    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<NbdQueue, OpenError> {
        Ok(NbdQueue { shared: Arc::clone(&self.shared), index: context.index })
    }
}

impl Drop for NbdDriver {
    /// Takes leave of the server. Nothing is in flight, unless the device was not used at all.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.phase = Phase::Closed;
        let links = std::mem::take(&mut state.links);
        self.shared.change.notify_all();
        self.shared.errand.notify_all();
        drop(state);
        links.iter().for_each(|link| link.disconnect());
        // A receiver may drop the device with its last answer. The threads end by themselves then.
        if threads::is_own() {
            return;
        }
        for thread in self.threads.get_mut().drain(..) {
            let joined = thread.join();
            debug_assert!(joined.is_ok(), "a thread of the client panicked");
        }
    }
}

impl DriverQueue for NbdQueue {
    fn start(&mut self, requests: &mut RequestList, completions: &mut Completions) {
        let requests = std::iter::from_fn(|| requests.pop());
        self.shared.begin(requests, self.index, completions);
    }

    // Requests end in the threads that receive, so there is nothing to collect or to wait for.

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
