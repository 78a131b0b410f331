//! A driver whose requests are in the hands of the test: handed over a channel, ended, kept or
//! dropped by the receiver.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use undercroft_block::{
    Completer, Completions, Driver, DriverQueue, Failure, Leaf, OpenError, QueueContext,
    QueueOptions, Request, RequestList, Sector, Wait,
};

/// Much longer than any of these tests takes on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `test` in a thread of its own, and fails if that does not end.
pub(crate) fn ends(test: impl FnOnce() + Send + 'static) {
    let (alive, ended) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let _alive = alive;
        test();
    });
    assert_eq!(ended.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected), "it hangs");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// A request and the number of the hardware queue that it came through.
pub(crate) type Handed = (usize, Request);

/// A driver that hands its requests over and forgets them.
pub(crate) struct RemoteDriver {
    name: String,
    requests: Mutex<Sender<Handed>>,
    completer: Arc<OnceLock<Completer>>,
}

/// The other end.
pub(crate) struct Remote {
    pub(crate) requests: Receiver<Handed>,
    completer: Arc<OnceLock<Completer>>,
}

/// A device of this name, and what takes its requests.
pub(crate) fn remote(name: &str, options: QueueOptions) -> (Leaf<RemoteDriver>, Remote) {
    let (sender, requests) = mpsc::channel();
    let completer = Arc::default();
    let driver = RemoteDriver {
        name: name.to_owned(),
        requests: Mutex::new(sender),
        completer: Arc::clone(&completer),
    };
    (Leaf::start(driver, options).unwrap(), Remote { requests, completer })
}

impl Remote {
    /// The next request.
    pub(crate) fn take(&self) -> Handed {
        self.requests.recv_timeout(PATIENCE).expect("a request")
    }

    /// Ends a request.
    pub(crate) fn end(&self, (queue, request): Handed, result: Result<(), Failure>) {
        let mut completions = Completions::default();
        completions.push(request, result);
        self.completer.get().unwrap().complete(queue, &mut completions);
    }
}

impl Driver for RemoteDriver {
    type Queue = RemoteQueue;

    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        Sector(1 << 20)
    }

    fn attach(&self, completer: Completer) {
        assert!(self.completer.set(completer).is_ok(), "attached once");
    }

    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<RemoteQueue, OpenError> {
        Ok(RemoteQueue { index: context.index, requests: self.requests.lock().clone() })
    }
}

pub(crate) struct RemoteQueue {
    index: usize,
    requests: Sender<Handed>,
}

impl DriverQueue for RemoteQueue {
    fn start(&mut self, requests: &mut RequestList, _completions: &mut Completions) {
        while let Some(request) = requests.pop() {
            // The channel is closed: the request is dropped.
            drop(self.requests.send((self.index, request)));
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
