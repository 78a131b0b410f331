//! The cost of one way of holding requests back.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measure::latency::Latency;
use crate::measure::rate::Rate;
use crate::statistics::CaseRates;

/// How requests are held back and sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Every leaf holds requests back; unplugging takes the lock of every leaf (before 2008).
    Locked,
    /// The same; unplugging first tests whether the leaf is plugged (Patocka's patch).
    TestFirst,
    /// The submitting thread holds requests back, for all leaves, without a lock (since 2011).
    ThreadPlug,
}

impl Variant {
    /// Every variant, in the order of their years.
    pub const ALL: [Self; 3] = [Self::Locked, Self::TestFirst, Self::ThreadPlug];
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Locked => "locked",
            Self::TestFirst => "test-first",
            Self::ThreadPlug => "thread-plug",
        })
    }
}

/// The outcome of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnplugOutcome {
    /// The variant.
    pub variant: Variant,
    /// Leaves under the one device.
    pub leaves: usize,
    /// Threads of the mix.
    pub threads: usize,
    /// Time that a leaf takes for a request, in microseconds.
    pub service_us: f64,
    /// I/Os a second and their cost.
    #[serde(flatten)]
    pub rate: Rate,
    /// Calls that unplugged the device, for each I/O.
    pub unplugs_per_io: f64,
    /// Times that a lock of a leaf's staging was taken, for each I/O.
    pub locks_per_io: f64,
    /// Locks taken when the device was unplugged while no leaf held anything, for each call.
    pub locks_per_idle_unplug: f64,
    /// From submission to completion of the I/Os that were waited for, in microseconds.
    pub latency: Latency,
}

impl UnplugOutcome {
    /// What was done, and how often.
    pub(crate) fn title(&self) -> String {
        format!(
            "unplug: an OLTP mix on {} leaves; {} threads, {} runs of {} s",
            self.leaves, self.threads, self.rate.repeats, self.rate.seconds
        )
    }

    /// I/Os a second.
    pub(crate) fn rates(&self) -> CaseRates {
        let case = format!("unplug, {}, {} us a request", self.variant, self.service_us);
        CaseRates::new(case, self.rate.iops_of_runs.clone())
    }
}
