//! Plots: pictures of records.

mod chart;
mod svg;

use crate::outcome::Outcome;
use crate::rate::Rate;
use crate::record::{Record, sections};

use chart::{Chart, Kind, Value};

/// A picture of `records` in SVG, one chart for each experiment of each session.
#[must_use]
pub fn plot(records: &[Record]) -> String {
    let charts: Vec<Chart> = sections(records).map(chart_of).collect();
    svg::render(&charts)
}

fn chart_of(section: &[Record]) -> Chart {
    let session = &section[0].session;
    let mut chart = Chart {
        title: section[0].outcome.title(),
        note: format!("undercroft {}; {}", session.version, session.machine.summary()),
        kind: Kind::Bars,
        categories_title: "wake policy".to_owned(),
        categories: Vec::new(),
        values_title: "thousand I/Os a second".to_owned(),
        series: Vec::new(),
    };
    for record in section {
        match &record.outcome {
            Outcome::TagsDepth(tags) | Outcome::TagsShared(tags) => {
                chart.kind = Kind::Lines;
                chart.categories_title = "tags".to_owned();
                chart.put(&tags.policy.to_string(), &tags.depth.to_string(), rate(&tags.rate));
            }
            Outcome::TagsHerd(tags) | Outcome::TagsVariability(tags) => {
                chart.put("mean of the runs", &tags.policy.to_string(), rate(&tags.rate));
            }
            Outcome::TagsFairness(tags) => {
                chart.values_title = "mean latency in microseconds".to_owned();
                let shares = if tags.fair { "fair shares" } else { "no shares" };
                let value = Value { mean: tags.latency.mean, deviation: 0.0 };
                chart.put(&format!("{}, {shares}", tags.reader), &tags.policy.to_string(), value);
            }
            Outcome::Iops(iops) => {
                chart.categories_title = "batch".to_owned();
                let series = format!("{} {} x {}", iops.driver, iops.access, iops.threads);
                chart.put(&series, &iops.batch.to_string(), rate(&iops.rate));
            }
            Outcome::Affinity(affinity) => {
                chart.categories_title =
                    "placement of application, queueing, completion".to_owned();
                chart.values_title = "CPU microseconds an I/O".to_owned();
                let series = format!("{}, {}", affinity.workload, affinity.mechanism);
                let value = Value { mean: affinity.rate.cpu_ns_per_io / 1e3, deviation: 0.0 };
                chart.put(&series, &affinity.placement.to_string(), value);
            }
            Outcome::Fsync(fsync) => {
                chart.categories_title = "threads".to_owned();
                chart.values_title = "thousand files a second".to_owned();
                let series = format!("{}, mode {}", fsync.target, fsync.mode);
                let deviation = fsync.files_per_second * fsync.coefficient_of_variation / 1e3;
                let value = Value { mean: fsync.files_per_second / 1e3, deviation };
                chart.put(&series, &fsync.threads.to_string(), value);
            }
            Outcome::Unplug(unplug) => {
                chart.categories_title = "variant".to_owned();
                let series = format!("{} us a request", unplug.service_us);
                chart.put(&series, &unplug.variant.to_string(), rate(&unplug.rate));
            }
        }
    }
    chart
}

/// Thousands of I/Os a second.
fn rate(rate: &Rate) -> Value {
    Value { mean: rate.iops / 1e3, deviation: rate.stddev / 1e3 }
}
