//! The figure of the experiment on fsync.

use super::outcome::FsyncOutcome;
use crate::report::plot::{Axis, Panels, estimated};

/// Adds files a second over the number of threads.
pub(crate) fn add(of: &FsyncOutcome, panels: &mut Panels) {
    let (x, y) = (Axis::logarithmic("threads"), Axis::logarithmic("files a second"));
    let name = format!("{}, mode {}", of.target, of.mode);
    let rates: Vec<f64> = of.iterations.iter().map(|one| one.files_per_second).collect();
    let value = estimated(&rates, of.files_per_second);
    panels.lines("", x, y).put(&name, of.threads as f64, value);
}
