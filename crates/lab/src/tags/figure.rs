//! Figures of the experiments on tags.

use super::outcome::TagsOutcome;
use crate::report::plot::{Axis, Panels, Value, rate};

/// Adds I/Os a second and wake-ups a put over the depth.
pub(crate) fn add_depth(of: &TagsOutcome, panels: &mut Panels) {
    let (policy, depth) = (of.policy.to_string(), f64::from(of.depth));
    let (x, y) = (Axis::logarithmic("tags"), Axis::logarithmic("I/Os a second"));
    panels.lines("I/Os a second", x, y).put(&policy, depth, rate(&of.rate));
    let (x, y) = (Axis::logarithmic("tags"), Axis::linear("wake-ups for each tag given back"));
    panels.lines("Wake-ups", x, y).put(&policy, depth, Value::plain(of.wakes_per_put));
}

/// Adds I/Os a second by policy.
pub(crate) fn add_policy(of: &TagsOutcome, panels: &mut Panels) {
    let chart = panels.bars("", "I/Os a second");
    chart.put("I/Os a second", &of.policy.to_string(), rate(&of.rate));
}

/// Adds the latency of a reader, with shares and without.
pub(crate) fn add_reader(of: &TagsOutcome, panels: &mut Panels) {
    let shares = if of.fair { "fair shares" } else { "no shares" };
    let title = format!("{} reader", of.reader);
    let chart = panels.bars(&title, "mean latency in microseconds");
    chart.put(shares, &of.policy.to_string(), Value::plain(of.latency.mean));
}
