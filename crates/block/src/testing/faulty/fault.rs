//! Faults, and their conditions.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::bio::{Bio, Operation};
use crate::testing::mix;
use crate::units::{Sector, overlap};

/// The bios that meet a fault, and its effect on them. Without conditions: all fail, with an I/O
/// error, and have no effect.
#[derive(Clone, Debug)]
pub struct Fault {
    operation: Option<Operation>,
    sectors: Range<Sector>,
    script: Option<Script>,
    when: When,
    pub(super) effect: Effect,
    pub(super) answer: Answer,
}

/// What happens to a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It does nothing.
    Nothing,
    /// It comes into effect and is answered later.
    Late(Duration),
    /// It comes into effect in some of its sectors.
    Torn { seed: u64 },
    /// It comes into effect so many sectors behind where it should.
    Misdirected { by: u64 },
}

/// The result for the submitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Error(io::ErrorKind),
    Success,
}

/// Which of the bios that match a fault meet it, counted from 0.
#[derive(Clone, Copy, Debug)]
enum When {
    Always,
    Nth(u64),
    From(u64),
    Random { seed: u64, one_in: u64 },
}

/// A test's own condition.
#[derive(Clone)]
struct Script(Arc<dyn Fn(&Bio) -> bool + Send + Sync>);

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function")
    }
}

impl Default for Fault {
    fn default() -> Self {
        Self {
            operation: None,
            sectors: Sector::ZERO..Sector(u64::MAX),
            script: None,
            when: When::Always,
            effect: Effect::Nothing,
            answer: Answer::Error(io::ErrorKind::Other),
        }
    }
}

impl Fault {
    /// Fails every bio.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only bios that do `operation`.
    #[must_use]
    pub fn on(self, operation: Operation) -> Self {
        Self { operation: Some(operation), ..self }
    }

    /// Only bios that touch one of `sectors`. Flushes touch none.
    #[must_use]
    pub fn at(self, sectors: Range<Sector>) -> Self {
        Self { sectors, ..self }
    }

    /// Only bios for which `script` says so. It is asked for each bio that matches otherwise, in
    /// the order of submission, before those are counted.
    #[must_use]
    pub fn when(self, script: impl Fn(&Bio) -> bool + Send + Sync + 'static) -> Self {
        Self { script: Some(Script(Arc::new(script))), ..self }
    }

    /// Only the `number`th of the bios that match otherwise, counted from 0.
    #[must_use]
    pub fn nth(self, number: u64) -> Self {
        Self { when: When::Nth(number), ..self }
    }

    /// The `number`th of the bios that match otherwise, counted from 0, and all later ones.
    #[must_use]
    pub fn from_nth(self, number: u64) -> Self {
        Self { when: When::From(number), ..self }
    }

    /// On average one in `one_in` of the bios that match otherwise; which ones is a function of
    /// `seed` and the order of submission. 0 = none.
    #[must_use]
    pub fn random(self, seed: u64, one_in: u64) -> Self {
        Self { when: When::Random { seed, one_in }, ..self }
    }

    /// With this error, for instance [`io::ErrorKind::StorageFull`].
    #[must_use]
    pub fn error(self, error: io::ErrorKind) -> Self {
        Self { answer: Answer::Error(error), ..self }
    }

    /// The submitter is told that the bio succeeded, in any case.
    #[must_use]
    pub fn silently(self) -> Self {
        Self { answer: Answer::Success, ..self }
    }

    /// The bio is carried out, and answered at least this much later.
    #[must_use]
    pub fn late(self, delay: Duration) -> Self {
        Self { effect: Effect::Late(delay), answer: Answer::Success, ..self }
    }

    /// The bio is done in some of its sectors only, from none to all, as `seed` and its number
    /// among those that match decide; then it fails, or seems not to
    /// ([`silently`](Self::silently)).
    #[must_use]
    pub fn torn(self, seed: u64) -> Self {
        Self { effect: Effect::Torn { seed }, ..self }
    }

    /// The bio is done `by` sectors behind where it should be, going on at the start of the device
    /// behind its end, and seems to have succeeded.
    #[must_use]
    pub fn misdirected(self, by: u64) -> Self {
        Self { effect: Effect::Misdirected { by }, answer: Answer::Success, ..self }
    }

    pub(super) fn matches(&self, bio: &Bio) -> bool {
        let all = self.sectors == (Sector::ZERO..Sector(u64::MAX));
        self.operation.is_none_or(|operation| operation == bio.operation())
            && (all || bio.end().is_some_and(|end| overlap(&self.sectors, &(bio.sector()..end))))
            && self.script.as_ref().is_none_or(|script| script.0(bio))
    }

    /// Whether the `number`th matching bio meets the fault.
    pub(super) fn strikes(&self, number: u64) -> bool {
        match self.when {
            When::Always => true,
            When::Nth(nth) => number == nth,
            When::From(first) => number >= first,
            When::Random { one_in: 0, .. } => false,
            When::Random { seed, one_in } => mix(seed ^ mix(number)).is_multiple_of(one_in),
        }
    }
}
