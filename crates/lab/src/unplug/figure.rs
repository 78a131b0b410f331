//! The figure of the experiment on unplugging.

use super::outcome::UnplugOutcome;
use crate::report::plot::{Panels, rate};

/// Adds I/Os a second by variant.
pub(crate) fn add(of: &UnplugOutcome, panels: &mut Panels) {
    let title = format!("disks that answer after {} us", of.service_us);
    let chart = panels.bars(&title, "I/Os a second");
    chart.put("I/Os a second", &of.variant.to_string(), rate(&of.rate));
}
