//! The figure of the experiment on affinity.

use super::outcome::AffinityOutcome;
use crate::report::plot::{Panels, Value, estimated};

/// Adds the rate, the latency and the cost of an I/O by placement.
pub(crate) fn add(of: &AffinityOutcome, panels: &mut Panels) {
    let (mechanism, placement) = (of.mechanism.to_string(), of.placement.to_string());
    let mut put = |what: &str, axis: &str, value: Value| {
        let chart = panels.bars(&format!("{} reads: {what}", of.workload), axis);
        chart.put(&mechanism, &placement, value);
    };
    let rate = &of.rate;
    let thousands: Vec<f64> = rate.iops_of_runs.iter().map(|iops| iops / 1e3).collect();
    put("rate", "thousand I/Os a second", estimated(&thousands, rate.iops / 1e3));
    put("latency", "mean latency in microseconds", Value::plain(of.latency_seconds * 1e6));
    let cost: Vec<f64> = rate.cpu_ns_of_runs.iter().map(|ns| ns / 1e3).collect();
    put("cost", "CPU microseconds an I/O", estimated(&cost, rate.cpu_ns_per_io / 1e3));
}
