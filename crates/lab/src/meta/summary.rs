//! The summary of the rounds of a case.

use super::case::Case;
use super::generator::{Phase, Round};
use super::outcome::{MetaOutcome, Operation, Speed};

/// The outcome of a case.
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
