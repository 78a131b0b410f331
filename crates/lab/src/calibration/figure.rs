//! The figure of the machine's own speed.

use super::outcome::CalibrationOutcome;
use crate::report::plot::{Panels, Value};

/// Adds the time of a round in each run.
pub(crate) fn add(of: &CalibrationOutcome, panels: &mut Panels) {
    let chart = panels.bars("", "nanoseconds a round of the fixed loop");
    for (turn, value) in of.ns_of_runs.iter().enumerate() {
        chart.put(&of.step, &format!("run {}", turn + 1), Value::plain(*value));
    }
}
