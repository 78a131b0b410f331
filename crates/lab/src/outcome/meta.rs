//! The outcome of the experiment on empty files.

use serde::{Deserialize, Serialize};

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
