//! The figure of the experiment on empty files.

use super::outcome::MetaOutcome;
use crate::report::number::counted;
use crate::report::plot::{Panels, estimated};
use crate::statistics::Spread;

/// Adds calls a second of each operation.
pub(crate) fn add(of: &MetaOutcome, panels: &mut Panels) {
    for speed in &of.operations {
        let chart = panels.bars(speed.operation.name(), "calls a second");
        let directories = counted(of.directories, "directory");
        let case = format!("{directories}, {}", counted(of.threads, "thread"));
        let mean = Spread::of(&speed.per_second).mean;
        chart.put(&of.target, &case, estimated(&speed.per_second, mean));
    }
}
