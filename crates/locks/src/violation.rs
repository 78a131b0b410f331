//! The message about a lock that is wanted out of order, and how the thread is stopped.

use std::fmt;
use std::io::Write;
use std::sync::OnceLock;

use crate::held::{Held, Mode};
use crate::relock;

static NAMES: OnceLock<&'static [&'static str]> = OnceLock::new();

/// Gives names to ranks, for messages: the first to rank 0, and so on. Names given first stay.
pub fn name_ranks(names: &'static [&'static str]) {
    if crate::CHECKED {
        NAMES.get_or_init(|| names);
    }
}

/// Why a thread must not wait for a lock while it holds another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// It is the same lock.
    Twice,
    /// The other has a higher rank.
    Rank,
    /// The other has the same rank, and not a smaller key.
    Key,
}

impl Rule {
    fn remedy(self) -> &'static str {
        match self {
            Self::Twice => "a lock is not taken twice, not even shared",
            Self::Rank => "locks are taken in the order of their ranks, the lowest first",
            Self::Key => "locks of one rank are taken with ascending keys (with_key)",
        }
    }
}

/// Stops the thread: it wants a lock that it must not wait for while it holds the other.
#[track_caller]
pub(crate) fn refuse(rule: Rule, wanted: &Held, other: &Held) {
    let message = format!(
        "lock order: {wanted} wanted at {} while the {} is held: {}",
        wanted.place,
        other.taken(),
        rule.remedy(),
    );
    if std::thread::panicking() {
        // A second panic would end the process and hide the first. A wait out of order needs
        // another thread to become a deadlock; where the lock is already this thread's own, it
        // would hang alone.
        let certain = wanted.mode == Mode::Exclusive || other.mode == Mode::Exclusive;
        if rule != Rule::Twice || !certain {
            return;
        }
    } else if !relock::is_at(wanted.place) {
        panic!("{message}");
    }
    // Straight to the stream: a test that captures output would lose it.
    let _ = writeln!(std::io::stderr(), "{message}\nno panic can stop this here: abort");
    std::process::abort();
}

impl Held {
    /// The lock and where it was taken.
    pub(crate) fn taken(&self) -> String {
        format!("{self} taken at {}", self.place)
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.mode {
            Mode::Shared => "shared lock",
            Mode::Exclusive => "exclusive lock",
        })?;
        write!(f, " of rank {}", self.rank)?;
        if let Some(name) = NAMES.get().and_then(|names| names.get(usize::from(self.rank))) {
            write!(f, " ({name})")?;
        }
        if let Some(key) = self.key {
            write!(f, ", key {key},")?;
        }
        Ok(())
    }
}
