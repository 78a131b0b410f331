//! The figure of the experiment on mounted volumes.

use super::outcome::{MountOutcome, Step};
use crate::report::plot::{Panels, estimated};
use crate::statistics::Spread;

/// Adds seconds of each step, the mean of the disks.
pub(crate) fn add(of: &MountOutcome, panels: &mut Panels) {
    for step in Step::ALL {
        let runs = of.runs_of(step);
        let value = estimated(&runs, Spread::of(&runs).mean);
        panels.bars(step.name(), "seconds").put("seconds", &of.tunables.to_string(), value);
    }
}
