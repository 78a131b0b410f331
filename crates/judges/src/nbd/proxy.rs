//! A wire to a server: it can be slow, and cut anywhere.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::Error;

/// A socket behind which the connections of a server are.
#[derive(Debug)]
pub struct Proxy {
    home: TempDir,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: PathBuf,
    /// The ends of all connections.
    ends: Mutex<Vec<UnixStream>>,
    /// Bytes until all connections are cut.
    left: AtomicU64,
    /// Whether nothing passes behind those bytes, instead of a cut.
    holds: AtomicBool,
    /// Microseconds that each piece takes.
    delay: AtomicU64,
    ended: AtomicBool,
}

impl Proxy {
    /// One to the server that listens on `server`, now or later.
    ///
    /// # Errors
    /// No socket can be made.
    pub fn new(server: &Path) -> Result<Self, Error> {
        let home = tempfile::Builder::new().prefix("nbd-").tempdir_in("/tmp");
        let home = home.map_err(Error::io("cannot make a directory in", Path::new("/tmp")))?;
        let socket = home.path().join("socket");
        let listener = UnixListener::bind(&socket).map_err(Error::io("cannot make", &socket))?;
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            ends: Mutex::default(),
            left: AtomicU64::new(u64::MAX),
            holds: AtomicBool::new(false),
            delay: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { continue };
                if accepting.ended.load(Ordering::SeqCst) {
                    return;
                }
                // A server that is gone: the client is left as one that was cut.
                let Ok(server) = UnixStream::connect(&accepting.server) else { continue };
                accepting.connect(client, server);
            }
        });
        Ok(Self { home, shared })
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.home.path().join("socket")
    }

    /// The URI of an export through it, with further parameters.
    #[must_use]
    pub fn uri(&self, export: &str, parameters: &[&str]) -> String {
        super::server::uri(&self.socket(), export, parameters)
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// Cuts all connections when so many more bytes have passed: in the middle of a message, most
    /// often.
    pub fn cut_after(&self, bytes: u64) {
        self.shared.left.store(bytes, Ordering::SeqCst);
    }

    /// Lets so many more bytes pass, and none behind them, though nothing is cut.
    pub fn hold_after(&self, bytes: u64) {
        self.shared.holds.store(true, Ordering::SeqCst);
        self.cut_after(bytes);
    }

    /// Makes each piece that passes take so long.
    pub fn delay(&self, delay: Duration) {
        let delay = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.shared.delay.store(delay, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.shared.cut();
        // The thread that accepts looks at it with the next connection.
        let _ = UnixStream::connect(self.socket());
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: UnixStream, server: UnixStream) {
        let clones =
            [client.try_clone(), server.try_clone(), client.try_clone(), server.try_clone()];
        let [Ok(to_client), Ok(to_server), Ok(one), Ok(other)] = clones else { return };
        self.ends().extend([one, other]);
        for (from, to) in [(client, to_server), (server, to_client)] {
            let shared = Arc::clone(self);
            thread::spawn(move || shared.pass(&from, &to));
        }
    }

    /// Passes on what comes, until one end closes.
    fn pass(&self, mut from: &UnixStream, mut to: &UnixStream) {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let length = match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let delay = self.delay.load(Ordering::SeqCst);
            if delay > 0 {
                thread::sleep(Duration::from_micros(delay));
            }
            let take = |left: u64| {
                let rest = left.saturating_sub(length as u64);
                Some(if left == u64::MAX { left } else { rest })
            };
            let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
            let left = left.unwrap_or(u64::MAX);
            let is_last = left < length as u64;
            let passed = if is_last { usize::try_from(left).unwrap_or(0) } else { length };
            let sent = to.write_all(&bytes[..passed]);
            if is_last && !self.holds.load(Ordering::SeqCst) {
                self.left.store(u64::MAX, Ordering::SeqCst);
                self.cut();
            }
            if sent.is_err() {
                break;
            }
        }
        // The others learn of it by what they read and write.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    fn cut(&self) {
        for end in self.ends().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn ends(&self) -> std::sync::MutexGuard<'_, Vec<UnixStream>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
