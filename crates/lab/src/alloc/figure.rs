//! Figures of the experiments on the allocator.

use super::outcome::{AllocOutcome, SearchOutcome};
use crate::report::plot::{Axis, Panels, Value};

/// Adds shares of extents by the greatest distance, those nearest first. The rest is in other groups.
pub(crate) fn add_distances(of: &AllocOutcome, panels: &mut Panels) {
    let Some(layout) = &of.layout else { return };
    let x = Axis::logarithmic("distance from the hint, as a part of the group");
    let y = Axis::linear("per cent of the extents within");
    let title = format!("{} free space", of.free_space);
    let chart = panels.lines(&title, x, y);
    let mut within = 0;
    for (power, count) in layout.distances_normalised.iter().enumerate().rev() {
        within += count;
        let percent = within as f64 * 100.0 / layout.actual.max(1) as f64;
        chart.put(&of.variant, 0.5_f64.powi(power as i32), Value::plain(percent));
    }
}

/// Adds allocations a second.
pub(crate) fn add_search(of: &SearchOutcome, panels: &mut Panels) {
    let chart = panels.bars(&of.free_space, "allocations a second");
    chart.put("allocations a second", &of.variant, Value::plain(of.per_second));
}

/// Adds the median, and 99 of 100 as the upper end.
pub(crate) fn add_growth(of: &SearchOutcome, panels: &mut Panels) {
    let title = "microseconds an allocation: the median, and 99 of 100";
    let (x, y) = (Axis::logarithmic("free extents"), Axis::logarithmic(title));
    let (middle, high) = (of.latency.p50, of.latency.p99);
    let value = Value { middle, low: middle, high };
    panels.lines("", x, y).put(&of.variant, of.free_extents as f64, value);
}
