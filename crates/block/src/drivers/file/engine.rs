//! Which way a file device moves bytes, and what is said when it cannot be the one it should be.

use std::fmt;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

/// How a file device moves bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// By how the file is opened: io_uring for direct I/O, if the system allows it, else threads.
    /// Through the page cache a transfer is mostly a copy, which a ring does in the one thread that
    /// enters it and threads do in parallel; that this makes threads faster was not measured.
    #[default]
    Auto,
    /// io_uring, or an error where it is not allowed.
    Uring,
    /// Threads with blocking system calls.
    Threads,
    /// For bulk writes to a regular file: large ones go through the page cache and, on io_uring,
    /// around it at the same time, as each has room. As `Auto` where the system has no io_uring or
    /// the file system does not say how it does direct I/O, and when only one way is wanted.
    Mixed,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Uring => "io_uring",
            Self::Threads => "threads",
            Self::Mixed => "mixed",
        })
    }
}

/// Why threads are used where io_uring would be better. Its text is one line with the reason and
/// the remedy.
#[derive(Debug)]
pub struct Fallback {
    error: io::Error,
}

impl Fallback {
    /// `error` if it means that this system does not offer io_uring, not that the use of it was
    /// wrong.
    pub(super) fn from_error(error: io::Error) -> Result<Self, io::Error> {
        let refused = match Errno::from_io_error(&error) {
            Some(errno) => {
                matches!(errno, Errno::PERM | Errno::NOSYS | Errno::ACCESS | Errno::NOMEM)
            }
            None => error.kind() == io::ErrorKind::Unsupported,
        };
        if refused { Ok(Self { error }) } else { Err(error) }
    }

    /// What the system answered.
    #[must_use]
    pub fn error(&self) -> &io::Error {
        &self.error
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = match Errno::from_io_error(&self.error) {
            Some(Errno::NOMEM) => "raise the limit on locked memory (ulimit -l) to have it",
            Some(Errno::PERM | Errno::ACCESS) => {
                "allow it in the sandbox or by the sysctl kernel.io_uring_disabled to have it"
            }
            _ => "it needs Linux 5.11 or newer",
        };
        write!(f, "io_uring is not available ({}), using threads instead; {remedy}", self.error)
    }
}

static ANNOUNCER: OnceLock<fn(&Fallback)> = OnceLock::new();
static ANNOUNCED: AtomicBool = AtomicBool::new(false);

/// Has `announcer` told of the first device of this process that falls back from io_uring to
/// threads; of others it is not. A program sets it at its start; later calls do nothing.
pub fn announce_fallback(announcer: fn(&Fallback)) {
    let _ = ANNOUNCER.set(announcer);
}

/// Tells of `fallback`, once.
pub(super) fn announce(fallback: &Fallback) {
    if let Some(announcer) = ANNOUNCER.get()
        && !ANNOUNCED.swap(true, Ordering::Relaxed)
    {
        announcer(fallback);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_lead_to_threads_and_other_errors_do_not() {
        for errno in [Errno::PERM, Errno::NOSYS, Errno::ACCESS, Errno::NOMEM] {
            let fallback = Fallback::from_error(errno.into()).unwrap();
            let line = fallback.to_string();
            assert!(
                line.contains("using threads") && line.contains("needs")
                    || line.contains("to have it")
            );
            assert!(!line.contains('\n'));
        }
        assert!(Fallback::from_error(io::ErrorKind::Unsupported.into()).is_ok());
        assert!(Fallback::from_error(Errno::BADF.into()).is_err());
    }
}
