//! A server: its listeners, its connections, its end.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use thiserror::Error;
use undercroft_block::{BlockError, flush};

use super::answer::Outbox;
use super::connection::handshake::Handshake;
use super::connection::poll::Wake;
use super::connection::quota::Quota;
use super::connection::stream::{self, Stream};
use super::connection::{Connection, Listener, Tls};
use super::export::Export;
use super::pipe::{self, Pipes, READ_ROOM, WRITE_ROOM};
use super::request::execute::Executor;
use crate::protocol::MAX_STRING;

/// How long a server pauses when it cannot accept, as without descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Limits of a server, and what it does beside answering.
#[derive(Clone)]
pub struct Settings {
    /// Connections at a time; more are closed as they come.
    pub connections: usize,
    /// Memory for the requests of one connection that are not answered. A single request may have
    /// more.
    pub memory: usize,
    /// A connection ends when nothing comes or goes for so long; none: it may wait for ever.
    pub idle: Option<Duration>,
    /// Time for clients to take their answers when the server stops.
    pub grace: Duration,
    /// Certificates; none: no encryption.
    pub tls: Option<Tls>,
    /// Where it is told of connections that ended in disorder.
    pub log: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for Settings {
    /// 128 connections of 64 MiB, no idle time, 10 seconds of grace; tells of nothing.
    fn default() -> Self {
        Self {
            connections: 128,
            memory: 64 << 20,
            idle: None,
            grace: Duration::from_secs(10),
            tls: None,
            log: Arc::new(|_| ()),
        }
    }
}

/// Why a server could not start, or did not end as it should.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The operating system refused a thread or a descriptor.
    #[error("cannot start a server")]
    Start(#[source] io::Error),
    /// The protocol has no room for the name of an export.
    #[error("the name of an export has {length} bytes; NBD has names of {MAX_STRING} at most")]
    Name {
        /// Its length in bytes.
        length: usize,
    },
    /// A device did not make durable what it had answered.
    #[error("the last flush of export {export:?} failed: what was not flushed before may be lost")]
    Flush {
        /// The name of the export.
        export: String,
        /// Why.
        #[source]
        source: BlockError,
    },
}

/// A server at work. To end it, [`stop`](Self::stop); dropping it does the same without a word on
/// errors.
pub struct Server {
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// What the threads of a server share.
struct Shared {
    exports: Vec<Arc<Export>>,
    settings: Settings,
    /// Whether a client that is gone costs no more than an error, however bytes are sent to it.
    survives_sigpipe: bool,
    stops: AtomicBool,
    acceptor: Wake,
    connections: Mutex<Connections>,
    ended: Condvar,
}

#[derive(Default)]
struct Connections {
    next: u64,
    /// To wake and to cut off.
    open: HashMap<u64, (Arc<Wake>, Arc<OwnedFd>)>,
}

impl Server {
    /// Serves `exports` to the clients of `listeners`.
    ///
    /// # Errors
    /// When the operating system refuses a thread or a descriptor, or the name of an export is too long.
    pub fn start(
        listeners: Vec<Listener>,
        exports: Vec<Export>,
        settings: Settings,
    ) -> Result<Self, ServerError> {
        if let Some(length) =
            exports.iter().map(|export| export.name.len()).find(|l| *l > MAX_STRING)
        {
            return Err(ServerError::Name { length });
        }
        let shared = Arc::new(Shared {
            exports: exports.into_iter().map(Arc::new).collect(),
            settings,
            survives_sigpipe: pipe::survives_sigpipe(),
            stops: AtomicBool::new(false),
            acceptor: Wake::new().map_err(ServerError::Start)?,
            connections: Mutex::default(),
            ended: Condvar::new(),
        });
        let acceptor = if listeners.is_empty() {
            None
        } else {
            let shared = Arc::clone(&shared);
            let accept = move || shared.accept(&listeners);
            let thread = thread::Builder::new().name("nbd-accept".into()).spawn(accept);
            Some(thread.map_err(ServerError::Start)?)
        };
        Ok(Self { shared, acceptor })
    }

    /// Serves one client in this thread, until it ends.
    ///
    /// # Errors
    /// When the operating system refuses a descriptor.
    pub fn serve(&self, socket: OwnedFd) -> Result<(), ServerError> {
        match self.shared.enlist(socket) {
            Ok(Some((number, wake, socket))) => self.shared.serve(number, &wake, &socket),
            Ok(None) => {}
            Err(error) => return Err(ServerError::Start(error)),
        }
        Ok(())
    }

    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.lock().open.len()
    }

    /// Stops: takes no more clients and requests, answers those that it has, and flushes the
    /// devices.
    ///
    /// # Errors
    /// When a device cannot be flushed.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ServerError> {
        if self.shared.stops.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.shared.acceptor.ring();
        if let Some(acceptor) = self.acceptor.take() {
            // Its panic was told by its thread.
            let _ = acceptor.join();
        }
        self.shared.wait_for_connections();
        for export in self.shared.exports.iter().filter(|export| !export.read_only) {
            flush(&*export.device)
                .map_err(|source| ServerError::Flush { export: export.name.clone(), source })?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("exports", &self.shared.exports).finish_non_exhaustive()
    }
}

impl Shared {
    /// Accepts until the server stops.
    fn accept(self: &Arc<Self>, listeners: &[Listener]) {
        while !self.stops.load(Ordering::SeqCst) {
            let mut all: Vec<_> =
                listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
            all.push(self.acceptor.poll_fd());
            if poll(&mut all, None).is_err_and(|error| error != Errno::INTR) {
                return (self.settings.log)("cannot wait for clients any more");
            }
            let ready: Vec<bool> = all.iter().map(|one| !one.revents().is_empty()).collect();
            for (listener, _) in listeners.iter().zip(ready).filter(|(_, ready)| *ready) {
                self.take(listener);
            }
        }
    }

    /// Takes one client, with a thread of its own.
    fn take(self: &Arc<Self>, listener: &Listener) {
        let started = listener.accept().and_then(|socket| {
            let Some((number, wake, socket)) = self.enlist(socket)? else { return Ok(()) };
            let shared = Arc::clone(self);
            let serve = move || shared.serve(number, &wake, &socket);
            match thread::Builder::new().name(format!("nbd-{number}")).spawn(serve) {
                Ok(_) => Ok(()),
                Err(error) => {
                    self.strike(number);
                    Err(error)
                }
            }
        });
        if let Err(error) = started
            && error.kind() != io::ErrorKind::ConnectionAborted
        {
            (self.settings.log)(&format!("cannot take a client: {error}"));
            thread::sleep(PAUSE);
        }
    }

    /// Counts a connection, unless there are too many.
    #[expect(clippy::type_complexity, reason = "its number, and how to wake and reach it")]
    fn enlist(&self, socket: OwnedFd) -> io::Result<Option<(u64, Arc<Wake>, Arc<OwnedFd>)>> {
        let (wake, socket) = (Arc::new(Wake::new()?), Arc::new(socket));
        let mut connections = self.connections.lock();
        if connections.open.len() >= self.settings.connections {
            drop(connections);
            (self.settings.log)(&format!(
                "a client is turned away: there are {} connections",
                self.settings.connections
            ));
            return Ok(None);
        }
        connections.next += 1;
        let number = connections.next;
        connections.open.insert(number, (Arc::clone(&wake), Arc::clone(&socket)));
        Ok(Some((number, wake, socket)))
    }

    fn strike(&self, number: u64) {
        self.connections.lock().open.remove(&number);
        self.ended.notify_all();
    }

    /// Serves a connection, from greeting to end.
    fn serve(&self, number: u64, wake: &Arc<Wake>, socket: &Arc<OwnedFd>) {
        struct Strike<'h>(&'h Shared, u64);
        impl Drop for Strike<'_> {
            fn drop(&mut self) {
                self.0.strike(self.1);
            }
        }
        let _strike = Strike(self, number);
        let stream = Stream::Plain(Arc::clone(socket));
        let mut handshake = Handshake::new(stream, wake, &self.stops);
        let end = match handshake.run(&self.exports, self.settings.tls.as_ref()) {
            Err(end) => {
                handshake.stream.close();
                end
            }
            Ok(session) => {
                let Handshake { stream, input, .. } = handshake;
                let memory = self.settings.memory;
                let (wake, writer) = (Arc::clone(wake), Arc::clone(&session.writer));
                let outbox = Outbox::new(stream.direct(), wake, Quota::new(memory), writer);
                let outbox = Arc::new(outbox);
                let pipes =
                    |may: bool, room| (may && !stream.is_encrypted()).then(|| Pipes::of(room));
                let read_pipes = pipes(self.survives_sigpipe, READ_ROOM);
                // What comes by TCP is in more pieces, and won nothing or lost.
                let write_pipes = pipes(stream::is_local(socket), WRITE_ROOM);
                let answers = Arc::clone(&outbox);
                let executor = Executor::new(session, answers, memory, read_pipes, write_pipes);
                let (stops, idle) = (&self.stops, self.settings.idle);
                Connection::new(stream, input, executor, outbox, stops, idle).run()
            }
        };
        // Requests that the device still has keep the descriptor.
        let _ = shutdown(socket, Shutdown::Both);
        if !end.is_orderly() {
            (self.settings.log)(&format!("connection {number} ended: {end}"));
        }
    }

    /// Waits until all connections have ended; cuts off those of clients that do not take their
    /// answers.
    fn wait_for_connections(&self) {
        let mut connections = self.connections.lock();
        connections.open.values().for_each(|(wake, _)| wake.ring());
        let limit = Instant::now() + self.settings.grace;
        while !connections.open.is_empty() {
            if self.ended.wait_until(&mut connections, limit).timed_out() {
                break;
            }
        }
        for (wake, socket) in connections.open.values() {
            // It may be closed this moment.
            let _ = shutdown(socket, Shutdown::Both);
            wake.ring();
        }
        while !connections.open.is_empty() {
            self.ended.wait(&mut connections);
        }
    }
}
