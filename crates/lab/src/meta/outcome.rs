//! What the experiment on empty files found.

use serde::{Deserialize, Serialize};

use super::Case;
use super::generator::{Phase, Round};

/// What is done with every file.
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

/// What the rounds of a case come to.
pub(super) fn summary(target: String, case: Case, rounds: &[Round]) -> MetaOutcome {
    let Case { threads, directories, files } = case;
    let speed = |(index, operation)| {
        let phases: Vec<Phase> = rounds.iter().map(|round| round[index]).collect();
        let cpu: u64 = phases.iter().map(|phase| phase.cpu_ns).sum();
        Speed {
            operation,
            per_second: phases.iter().map(|of| files as f64 / of.calls.as_secs_f64()).collect(),
            durable_per_second: phases
                .iter()
                .map(|of| files as f64 / of.durable.as_secs_f64())
                .collect(),
            cpu_ns_per_call: cpu as f64 / (files * phases.len()).max(1) as f64,
        }
    };
    let operations = Operation::ALL.into_iter().enumerate().map(speed).collect();
    MetaOutcome { target, threads, directories, files, rounds: rounds.len(), operations }
}
