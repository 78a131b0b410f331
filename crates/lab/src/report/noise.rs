//! How much a loop that is always the same varied while a report was made.

use crate::outcome::Outcome;
use crate::record::Record;
use crate::statistics::{Estimate, Spread};

/// Variation of the fixed loop from which figures are called doubtful.
const NOISY: f64 = 0.05;

/// The noise of a machine.
pub(crate) struct Noise {
    /// Nanoseconds of a round of the loop.
    mean: f64,
    /// Deviation over mean.
    variation: Estimate,
}

impl Noise {
    /// That of all steps; `None` if the loop did not run.
    pub(crate) fn of(records: &[Record]) -> Option<Self> {
        let loops = records.iter().filter_map(|record| match &record.outcome {
            Outcome::Calibration(of) => Some(of.ns_of_runs.as_slice()),
            _ => None,
        });
        let all: Vec<f64> = loops.flatten().copied().collect();
        let variation = Estimate::of_variation(&all)?;
        Some(Self { mean: Spread::of(&all).mean, variation })
    }

    /// Whether the machine was busy with other work.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.variation.middle > NOISY
    }

    pub(crate) fn text(&self) -> String {
        let Estimate { middle, low, high, .. } = self.variation;
        let mean = self.mean;
        format!(
            "A loop that is always the same ran behind each step: {mean:.2} ns a round, variation {:.1} % \
             [{:.1} to {:.1}].",
            100.0 * middle,
            100.0 * low,
            100.0 * high
        )
    }
}
