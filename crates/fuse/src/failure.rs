//! Why a request fails, as the kernel is told, and the lines of the log about it.

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use rustix::io::Errno;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use undercroft_fs::{Error, ErrorKind};

/// Lines about failures that are printed at most: a damaged volume has many.
const MOST_LINES: usize = 1000;

/// Why a request fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The file system says so.
    Volume(Error),
    /// The protocol says so.
    Number(Errno),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Volume(error)
    }
}

impl From<Errno> for Failure {
    fn from(number: Errno) -> Self {
        Self::Number(number)
    }
}

/// Where lines of the log go.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

impl Log {
    /// Gives each line to `sink`, without its end.
    #[must_use]
    pub fn new(sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Adds a line.
    pub fn line(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

/// The failures of a mount that are no answers to what programs did: counted, and told once each.
#[derive(Debug)]
pub(crate) struct Failures {
    /// The volume, as messages call it.
    volume: String,
    log: Log,
    told: Mutex<FxHashSet<String>>,
    damage: AtomicU64,
    device: AtomicU64,
}

impl Failures {
    pub(crate) fn new(volume: String, log: Log) -> Self {
        let zero = AtomicU64::default;
        Self { volume, log, told: Mutex::default(), damage: zero(), device: zero() }
    }

    /// Requests that met damage.
    pub(crate) fn damage(&self) -> u64 {
        self.damage.load(Ordering::Relaxed)
    }

    /// Requests that failed with the device.
    pub(crate) fn device(&self) -> u64 {
        self.device.load(Ordering::Relaxed)
    }

    /// The log.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The number for the kernel. What speaks of the volume and not of the request is written to the
    /// log, with structure and place, once.
    pub(crate) fn number(&self, failure: &Failure) -> i32 {
        match failure {
            Failure::Number(number) => number.raw_os_error(),
            // A change that is refused since something failed before.
            Failure::Volume(Error::Poisoned(why)) => {
                self.end_of_changes(why);
                Errno::ROFS.raw_os_error()
            }
            Failure::Volume(error) => {
                self.note(error);
                error.kind().errno()
            }
        }
    }

    /// Counts an error and writes it to the log if it speaks of the volume.
    pub(crate) fn note(&self, error: &Error) {
        let count = match error.kind() {
            ErrorKind::Damaged => &self.damage,
            ErrorKind::Io => &self.device,
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.tell(&error.to_string());
    }

    /// Writes to the log why nothing can be changed any more, and what is to be done.
    pub(crate) fn end_of_changes(&self, why: &str) {
        self.tell(&format!(
            "{}: {why}; from now on it is read-only. Unmount it, see to the device, and mount it again: \
             its journal has all that was synced",
            self.volume
        ));
    }

    /// Writes a line to the log, unless it is there already.
    pub(crate) fn tell(&self, line: &str) {
        let mut told = self.told.lock();
        let count = told.len();
        if count > MOST_LINES || !told.insert(line.to_owned()) {
            return;
        }
        drop(told);
        if count == MOST_LINES {
            self.log.line("further failures are counted and not printed");
        } else {
            self.log.line(line);
        }
    }
}
