//! The engine by which a file device moves bytes, and the message when the wanted one cannot be
//! used.

use std::fmt;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

/// How a file device moves bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// By how the file is opened: io_uring, if the system allows it, for direct I/O and for files
    /// that are only read, whose reads all wait for the disk together; else threads. A write
    /// through the page cache is mostly a copy, which a ring does in the one thread that enters it
    /// and threads do in parallel.
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
    /// For servers: as `Auto`, but large writes of whole pages go around the page cache, on io_uring
    /// and from the memory they are in, if it has nothing of their range. So data that comes to stay
    /// takes no memory of the system, and what is rewritten again and again stays in it. As `Auto`
    /// where the system has no io_uring or does not tell what its page cache has (before Linux 6.5),
    /// where the file system does not say how it does direct I/O, and when only one way is wanted.
    Around,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Uring => "io_uring",
            Self::Threads => "threads",
            Self::Mixed => "mixed",
            Self::Around => "around",
        })
    }
}

/// The engine or option that a device does without, and the reason. Its text is one line with the
/// reason and the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fallback {
    /// It uses threads where io_uring would be better; this is what the system answered.
    Threads(io::Error),
    /// The device of this name waits for interrupts where completions were to be asked for.
    Interrupts(String),
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
        if refused { Ok(Self::Threads(error)) } else { Err(error) }
    }

    /// Whether a fallback of this kind was told of.
    fn announced(&self) -> &'static AtomicBool {
        static THREADS: AtomicBool = AtomicBool::new(false);
        static INTERRUPTS: AtomicBool = AtomicBool::new(false);
        match self {
            Self::Threads(_) => &THREADS,
            Self::Interrupts(_) => &INTERRUPTS,
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self {
            Self::Threads(error) => error,
            Self::Interrupts(name) => {
                return write!(
                    f,
                    "the disk of {name} has no queues to poll, waiting for interrupts instead; \
                     open it without polling, or give its driver such queues (for NVMe \
                     nvme.poll_queues=1 on the kernel's command line)"
                );
            }
        };
        let remedy = match Errno::from_io_error(error) {
            Some(Errno::NOMEM) => "raise the limit on locked memory (ulimit -l) to have it",
            Some(Errno::PERM | Errno::ACCESS) => {
                "allow it in the sandbox or by the sysctl kernel.io_uring_disabled to have it"
            }
            _ => "it needs Linux 5.11 or newer",
        };
        write!(f, "io_uring is not available ({error}), using threads instead; {remedy}")
    }
}

static ANNOUNCER: OnceLock<fn(&Fallback)> = OnceLock::new();

/// Has `announcer` told of the first device of this process that falls back in each of the ways; of
/// others it is not. A program sets it at its start; later calls do nothing.
pub fn announce_fallback(announcer: fn(&Fallback)) {
    let _ = ANNOUNCER.set(announcer);
}

/// Tells of `fallback`, once.
pub(super) fn announce(fallback: &Fallback) {
    if let Some(announcer) = ANNOUNCER.get()
        && !fallback.announced().swap(true, Ordering::Relaxed)
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
        let line = Fallback::Interrupts("image".to_owned()).to_string();
        assert!(line.contains("disk of image") && !line.contains(['\n', '\t']), "{line}");
        assert!(Fallback::from_error(io::ErrorKind::Unsupported.into()).is_ok());
        assert!(Fallback::from_error(Errno::BADF.into()).is_err());
    }
}
