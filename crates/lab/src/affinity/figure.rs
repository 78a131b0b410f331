//! The figure of the experiment on affinity.

use super::outcome::AffinityOutcome;
use crate::report::plot::{Panels, Value};

/// Adds the cost of an I/O by placement.
pub(crate) fn add(of: &AffinityOutcome, panels: &mut Panels) {
    let chart = panels.bars(&format!("{} reads", of.workload), "CPU microseconds an I/O");
    let value = Value::plain(of.rate.cpu_ns_per_io / 1e3);
    chart.put(&of.mechanism.to_string(), &of.placement.to_string(), value);
}
