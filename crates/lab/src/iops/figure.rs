//! The figure of the experiment on I/Os a second.

use super::outcome::IopsOutcome;
use crate::report::plot::{Axis, Panels, rate};

/// Adds I/Os a second over the size of batches.
pub(crate) fn add(of: &IopsOutcome, panels: &mut Panels) {
    let (x, y) = (Axis::logarithmic("batch"), Axis::logarithmic("I/Os a second"));
    let name = format!("{} {} x{}", of.driver, of.access, of.threads);
    panels.lines("", x, y).put(&name, of.batch as f64, rate(&of.rate));
}
