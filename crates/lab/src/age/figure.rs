//! The figure of free space that was made.

use super::AgeOutcome;
use crate::report::plot::{Axis, Panels, Value};

/// Adds the free extents by length.
pub(crate) fn add(of: &AgeOutcome, panels: &mut Panels) {
    let (x, y) = (Axis::logarithmic("blocks"), Axis::logarithmic("free extents as long"));
    let chart = panels.lines("", x, y);
    for line in &of.free {
        chart.put(of.map.name(), line.from as f64, Value::plain(line.count as f64));
    }
}
