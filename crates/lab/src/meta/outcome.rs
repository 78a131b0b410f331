//! The outcome of the experiment on empty files.

use serde::{Deserialize, Serialize};

use crate::report::number::counted;
use crate::statistics::CaseRates;

/// The operations on every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// It is created.
    Create,
    /// Its metadata is read by its name.
    Stat,
    /// It is deleted.
    Delete,
}

impl Operation {
    /// All, in the order in which they are done.
    pub const ALL: [Self; 3] = [Self::Create, Self::Stat, Self::Delete];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Delete => "delete",
        }
    }
}

/// How fast one operation was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// The operation.
    pub operation: Operation,
    /// Calls a second in each round.
    pub per_second: Vec<f64>,
    /// Calls a second in each round when the sync behind them counts, too.
    pub durable_per_second: Vec<f64>,
    /// CPU time of the process for each call and its part of the sync, in nanoseconds.
    pub cpu_ns_per_call: f64,
}

/// One place with one number of threads and directories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetaOutcome {
    /// `undercroft`, or the type of the mounted file system.
    pub target: String,
    /// Threads.
    pub threads: usize,
    /// Directories that the files were spread over.
    pub directories: usize,
    /// Files.
    pub files: usize,
    /// Rounds.
    pub rounds: usize,
    /// Each operation.
    pub operations: Vec<Speed>,
}

impl MetaOutcome {
    /// What was done, and how often.
    pub(crate) fn title(&self) -> String {
        format!(
            "meta: {} empty files, created, looked at and deleted; {} rounds",
            self.files, self.rounds
        )
    }

    /// Calls a second of each operation.
    pub(crate) fn rates(&self) -> Vec<CaseRates> {
        let where_and_who =
            [counted(self.directories, "directory"), counted(self.threads, "thread")].join(", ");
        let case = |name: &str| format!("meta, {}, {name}, {where_and_who}", self.target);
        let speeds = self.operations.iter();
        let rates = speeds
            .map(|speed| CaseRates::new(case(speed.operation.name()), speed.per_second.clone()));
        rates.collect()
    }
}
