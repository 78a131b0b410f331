//! Speed of the machine itself beside an experiment.

use serde::{Deserialize, Serialize};

/// Times of a loop that is always the same, taken behind a step of a report. It is the last record of
/// its step: where it stands, the step is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationOutcome {
    /// The step.
    pub step: String,
    /// Nanoseconds a round in each run.
    pub ns_of_runs: Vec<f64>,
}
