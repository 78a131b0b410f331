//! Standard output, whose failures are told from all others.
//!
//! Commands write while they read volumes, and name their subject in an error. When standard output
//! failed, the error names it alone.

use std::io::{self, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard output was closed when the program started.
static CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    CLOSED.store(rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err(), Ordering::Relaxed);
}

/// Looks before the standard library begins, which opens /dev/null where it finds nothing: what a
/// command prints would be lost without a word.
#[used]
#[allow(unsafe_code, reason = "the only place before `main`; `look` needs nothing to be set up")]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Standard output without a buffer; it remembers its first failure.
pub(crate) struct StandardOutput {
    stream: StdoutLock<'static>,
    failure: Option<io::Error>,
}

impl StandardOutput {
    pub(crate) fn new() -> Self {
        Self { stream: io::stdout().lock(), failure: None }
    }

    /// Why it failed, if it did.
    pub(crate) const fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            // Not a failure: it is tried again.
            if kind != io::ErrorKind::Interrupted {
                self.failure.get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if CLOSED.load(Ordering::Relaxed) {
            Err(rustix::io::Errno::BADF.into())
        } else {
            self.stream.write(bytes)
        };
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stream.flush();
        self.note(flushed)
    }
}
