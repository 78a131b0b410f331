//! Plots: pictures of records.

mod chart;
mod svg;

use crate::outcome::Outcome;
use crate::outcome::alloc::AllocOutcome;
use crate::outcome::meta::MetaOutcome;
use crate::rate::Rate;
use crate::record::{Record, sections};
use crate::spread::Spread;

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
            Outcome::Meta(meta) => put_operations(&mut chart, meta),
            Outcome::Unplug(unplug) => {
                chart.categories_title = "variant".to_owned();
                let series = format!("{} us a request", unplug.service_us);
                chart.put(&series, &unplug.variant.to_string(), rate(&unplug.rate));
            }
            Outcome::Age(_)
            | Outcome::Alloc(_)
            | Outcome::AllocSearch(_)
            | Outcome::AllocGrowth(_) => put_allocator(&mut chart, &record.outcome),
        }
    }
    chart
}

/// How fast operations on empty files were.
fn put_operations(chart: &mut Chart, meta: &MetaOutcome) {
    chart.categories_title = "operation, directories, threads".to_owned();
    chart.values_title = "thousand calls a second".to_owned();
    for speed in &meta.operations {
        let spread = Spread::of(&speed.per_second);
        let name = speed.operation.name();
        let case = format!("{name}, {}, {}", meta.directories, meta.threads);
        let value = Value { mean: spread.mean / 1e3, deviation: spread.stddev / 1e3 };
        chart.put(&meta.target, &case, value);
    }
}

/// The outcomes of the experiments on the allocator.
fn put_allocator(chart: &mut Chart, outcome: &Outcome) {
    match outcome {
        Outcome::Age(age) => {
            chart.categories_title = "length of a free extent in blocks, from".to_owned();
            chart.values_title = "free extents".to_owned();
            for line in &age.free {
                chart.put(age.map.name(), &line.from.to_string(), plain(line.count as f64));
            }
        }
        Outcome::Alloc(alloc) => {
            chart.kind = Kind::Lines;
            chart.categories_title = "part of the group between hint and extent".to_owned();
            chart.values_title = "per cent of the extents".to_owned();
            put_distances(chart, alloc);
        }
        Outcome::AllocSearch(search) => {
            chart.categories_title = "free space".to_owned();
            chart.values_title = "thousand allocations a second".to_owned();
            chart.put(&search.variant, &search.free_space, plain(search.per_second / 1e3));
        }
        Outcome::AllocGrowth(search) => {
            chart.kind = Kind::Lines;
            chart.categories_title = "free extents".to_owned();
            chart.values_title = "log10 of nanoseconds an allocation".to_owned();
            let nanoseconds = (search.latency.mean * 1e3).max(1.0);
            let extents = search.free_extents.to_string();
            chart.put(&search.variant, &extents, plain(nanoseconds.log10()));
        }
        _ => {}
    }
}

/// Shares of extents by distance, nearest first; those in another group last.
fn put_distances(chart: &mut Chart, alloc: &AllocOutcome) {
    let Some(layout) = &alloc.layout else { return };
    let series = format!("{}, {}", alloc.variant, alloc.free_space);
    let percent = |count: u64| plain(count as f64 * 100.0 / layout.actual.max(1) as f64);
    for (power, count) in layout.distances_normalised.iter().enumerate().rev() {
        chart.put(&series, &format!("2^-{power}"), percent(*count));
    }
    let switches = layout.first_switches + layout.later_switches;
    chart.put(&series, "other group", percent(switches));
}

/// A value that was not repeated.
fn plain(mean: f64) -> Value {
    Value { mean, deviation: 0.0 }
}

/// Thousands of I/Os a second.
fn rate(rate: &Rate) -> Value {
    Value { mean: rate.iops / 1e3, deviation: rate.stddev / 1e3 }
}
