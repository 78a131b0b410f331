//! The outcome of one wake policy in one case.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measure::latency::Latency;
use crate::measure::rate::Rate;
use crate::statistics::CaseRates;

/// A wake policy of a set of tags, as the experiment names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// Two ever-growing counters for each set (2022).
    Counters,
    /// Batches woken from eight wait queues in turn (2014).
    #[serde(rename = "cyclic-8")]
    Cyclic8,
    /// The same with one wait queue.
    #[serde(rename = "cyclic-1")]
    Cyclic1,
    /// Each put wakes one waiter.
    WakeOne,
    /// Each put wakes every waiter: the herd.
    WakeAll,
}

impl PolicyName {
    /// Every policy, the default first.
    pub const ALL: [Self; 5] =
        [Self::Counters, Self::Cyclic8, Self::Cyclic1, Self::WakeOne, Self::WakeAll];
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Counters => "counters",
            Self::Cyclic8 => "cyclic-8",
            Self::Cyclic1 => "cyclic-1",
            Self::WakeOne => "wake-one",
            Self::WakeAll => "wake-all",
        })
    }
}

/// The waiter when there is no tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiters {
    /// The worker's thread, as a process that submits to a kernel does.
    #[default]
    Threads,
    /// A task for each I/O of the worker; the thread goes on with others.
    Tasks,
}

impl fmt::Display for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Threads => "threads",
            Self::Tasks => "tasks",
        })
    }
}

/// The outcome of one policy in one case, over all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TagsOutcome {
    /// The wake policy.
    pub policy: PolicyName,
    /// Number of workers, each a thread.
    pub workers: usize,
    /// I/Os that one worker keeps outstanding, as far as there are tags.
    pub outstanding: usize,
    /// The waiter for a tag.
    pub waiters: Waiters,
    /// Hardware queues that share the set.
    pub queues: usize,
    /// Number of tags.
    pub depth: u32,
    /// Whether the users of the set are held to fair shares.
    pub fair: bool,
    /// Which of two different workers this is about; empty where all are alike.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reader: String,
    /// I/Os a second and their cost.
    #[serde(flatten)]
    pub rate: Rate,
    /// Times that a waiter slept, for each tag that was had.
    pub sleeps_per_get: f64,
    /// Wake-ups that the policy granted, for each tag that was given back.
    pub wakes_per_put: f64,
    /// Wake-ups after which the waiter had a tag, for each tag that was given back.
    pub wakes_used_per_put: f64,
    /// From asking for a tag to the end of the I/O, in microseconds.
    pub latency: Latency,
}

impl TagsOutcome {
    /// What was done, and how often.
    pub(crate) fn title(&self, what: &str) -> String {
        format!("tags: {what}; {}", self.crowd())
    }

    /// Its title where it is about readers.
    pub(crate) fn title_of_readers(&self) -> String {
        format!(
            "tags: {} tags for a small and a large reader; {} runs of {} s",
            self.depth, self.rate.repeats, self.rate.seconds
        )
    }

    /// I/Os a second.
    pub(crate) fn rates(&self) -> CaseRates {
        let shares = if self.fair { ", fair" } else { "" };
        let kind = format!("tags, {} queues, {} workers", self.queues, self.workers);
        let case = format!("{kind}, depth {}, {}{shares} {}", self.depth, self.policy, self.reader);
        CaseRates::new(case.trim_end().to_owned(), self.rate.iops_of_runs.clone())
    }

    /// The workers, and the time, in words.
    pub(crate) fn crowd(&self) -> String {
        format!(
            "{} workers with {} outstanding each, waiting as {}, {} runs of {} s",
            self.workers, self.outstanding, self.waiters, self.rate.repeats, self.rate.seconds
        )
    }
}
