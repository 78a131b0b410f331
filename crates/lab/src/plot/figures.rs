//! Figures of records: what is shown of each experiment, and how.

use super::figure::{Axis, BarChart, Drawing, Figure, LineChart, Panel, Value};
use crate::outcome::Outcome;
use crate::outcome::affinity::AffinityOutcome;
use crate::outcome::alloc::{AllocOutcome, SearchOutcome};
use crate::outcome::fsync::FsyncOutcome;
use crate::outcome::meta::MetaOutcome;
use crate::outcome::mount::{MountOutcome, Step};
use crate::outcome::tags::TagsOutcome;
use crate::rate::Rate;
use crate::record::Record;
use crate::spread::Spread;
use crate::statistics::Estimate;
use crate::tables::number::counted;

/// The figure of one experiment in one session.
pub(crate) fn figure_of(section: &[Record]) -> Figure {
    let mut panels = Panels::default();
    for record in section {
        match &record.outcome {
            Outcome::TagsDepth(of) | Outcome::TagsShared(of) => put_depth(&mut panels, of),
            Outcome::TagsHerd(of) | Outcome::TagsVariability(of) => {
                let chart = panels.bars("", "I/Os a second");
                chart.put("I/Os a second", &of.policy.to_string(), rate(&of.rate));
            }
            Outcome::TagsFairness(of) => put_reader(&mut panels, of),
            Outcome::Iops(of) => {
                let axes = (Axis::logarithmic("batch"), Axis::logarithmic("I/Os a second"));
                let name = format!("{} {} x{}", of.driver, of.access, of.threads);
                panels.lines("", axes).put(&name, of.batch as f64, rate(&of.rate));
            }
            Outcome::Affinity(of) => put_placement(&mut panels, of),
            Outcome::Fsync(of) => put_threads(&mut panels, of),
            Outcome::Meta(of) => put_operations(&mut panels, of),
            Outcome::Mount(of) => put_steps(&mut panels, of),
            Outcome::Unplug(of) => {
                let title = format!("disks that answer after {} us", of.service_us);
                let chart = panels.bars(&title, "I/Os a second");
                chart.put("I/Os a second", &of.variant.to_string(), rate(&of.rate));
            }
            Outcome::Age(of) => {
                let axes = (Axis::logarithmic("blocks"), Axis::logarithmic("free extents as long"));
                let chart = panels.lines("", axes);
                for line in &of.free {
                    chart.put(of.map.name(), line.from as f64, Value::plain(line.count as f64));
                }
            }
            Outcome::Alloc(of) => put_distances(&mut panels, of),
            Outcome::AllocSearch(of) => {
                let chart = panels.bars(&of.free_space, "allocations a second");
                chart.put("allocations a second", &of.variant, Value::plain(of.per_second));
            }
            Outcome::AllocGrowth(of) => put_growth(&mut panels, of),
            Outcome::Calibration(of) => {
                let chart = panels.bars("", "nanoseconds a round of the fixed loop");
                for (turn, value) in of.ns_of_runs.iter().enumerate() {
                    chart.put(&of.step, &format!("run {}", turn + 1), Value::plain(*value));
                }
            }
        }
    }
    Figure { title: section[0].outcome.title(), panels: panels.into_list() }
}

/// Panels under construction, by their titles.
#[derive(Default)]
struct Panels {
    bars: Vec<(String, BarChart)>,
    lines: Vec<(String, LineChart)>,
}

impl Panels {
    /// The bars with this title.
    fn bars(&mut self, title: &str, axis: &str) -> &mut BarChart {
        titled(&mut self.bars, title, || BarChart::new(axis))
    }

    /// The lines with this title.
    fn lines(&mut self, title: &str, (x, y): (Axis, Axis)) -> &mut LineChart {
        titled(&mut self.lines, title, || LineChart { x, y, series: Vec::new() })
    }

    fn into_list(self) -> Vec<Panel> {
        let bars = self.bars.into_iter().map(|(title, chart)| (title, Drawing::Bars(chart)));
        let lines = self.lines.into_iter().map(|(title, chart)| (title, Drawing::Lines(chart)));
        bars.chain(lines).map(|(title, drawing)| Panel { title, drawing }).collect()
    }
}

/// The chart with this title; at the end, made by `make`, if there is none.
fn titled<'a, T>(
    list: &'a mut Vec<(String, T)>,
    title: &str,
    make: impl FnOnce() -> T,
) -> &'a mut T {
    let known = list.iter().position(|(known, _)| known == title);
    let index = known.unwrap_or_else(|| {
        list.push((title.to_owned(), make()));
        list.len() - 1
    });
    &mut list[index].1
}

/// I/Os a second and wake-ups a put over the depth.
fn put_depth(panels: &mut Panels, of: &TagsOutcome) {
    let (policy, depth) = (of.policy.to_string(), f64::from(of.depth));
    let axes = || (Axis::logarithmic("tags"), Axis::logarithmic("I/Os a second"));
    panels.lines("I/Os a second", axes()).put(&policy, depth, rate(&of.rate));
    let axes = || (Axis::logarithmic("tags"), Axis::linear("wake-ups for each tag given back"));
    panels.lines("Wake-ups", axes()).put(&policy, depth, Value::plain(of.wakes_per_put));
}

fn put_reader(panels: &mut Panels, of: &TagsOutcome) {
    let shares = if of.fair { "fair shares" } else { "no shares" };
    let title = format!("{} reader", of.reader);
    let chart = panels.bars(&title, "mean latency in microseconds");
    chart.put(shares, &of.policy.to_string(), Value::plain(of.latency.mean));
}

fn put_placement(panels: &mut Panels, of: &AffinityOutcome) {
    let chart = panels.bars(&format!("{} reads", of.workload), "CPU microseconds an I/O");
    let value = Value::plain(of.rate.cpu_ns_per_io / 1e3);
    chart.put(&of.mechanism.to_string(), &of.placement.to_string(), value);
}

fn put_threads(panels: &mut Panels, of: &FsyncOutcome) {
    let axes = (Axis::logarithmic("threads"), Axis::logarithmic("files a second"));
    let name = format!("{}, mode {}", of.target, of.mode);
    let rates: Vec<f64> = of.iterations.iter().map(|one| one.files_per_second).collect();
    panels.lines("", axes).put(&name, of.threads as f64, estimated(&rates, of.files_per_second));
}

fn put_operations(panels: &mut Panels, of: &MetaOutcome) {
    for speed in &of.operations {
        let chart = panels.bars(speed.operation.name(), "calls a second");
        let directories = counted(of.directories, "directory");
        let case = format!("{directories}, {}", counted(of.threads, "thread"));
        let mean = Spread::of(&speed.per_second).mean;
        chart.put(&of.target, &case, estimated(&speed.per_second, mean));
    }
}

/// Seconds of each step, the mean of the disks.
fn put_steps(panels: &mut Panels, of: &MountOutcome) {
    for step in Step::ALL {
        let runs = of.runs_of(step);
        let value = estimated(&runs, Spread::of(&runs).mean);
        panels.bars(step.name(), "seconds").put("seconds", &of.tunables.to_string(), value);
    }
}

/// Shares of extents by the greatest distance, those nearest first. The rest is in other groups.
fn put_distances(panels: &mut Panels, of: &AllocOutcome) {
    let Some(layout) = &of.layout else { return };
    let axes = (
        Axis::logarithmic("distance from the hint, as a part of the group"),
        Axis::linear("per cent of the extents within"),
    );
    let title = format!("{} free space", of.free_space);
    let chart = panels.lines(&title, axes);
    let mut within = 0;
    for (power, count) in layout.distances_normalised.iter().enumerate().rev() {
        within += count;
        let percent = within as f64 * 100.0 / layout.actual.max(1) as f64;
        chart.put(&of.variant, 0.5_f64.powi(power as i32), Value::plain(percent));
    }
}

/// The median, and 99 of 100 as the upper end.
fn put_growth(panels: &mut Panels, of: &SearchOutcome) {
    let title = "microseconds an allocation: the median, and 99 of 100";
    let axes = (Axis::logarithmic("free extents"), Axis::logarithmic(title));
    let (middle, high) = (of.latency.p50, of.latency.p99);
    let value = Value { middle, low: middle, high };
    panels.lines("", axes).put(&of.variant, of.free_extents as f64, value);
}

/// I/Os a second: the median of the runs.
fn rate(rate: &Rate) -> Value {
    estimated(&rate.iops_of_runs, rate.iops)
}

/// The median of `samples` with its interval; `mean` without samples.
fn estimated(samples: &[f64], mean: f64) -> Value {
    Estimate::of(samples).map_or(Value::plain(mean), |Estimate { middle, low, high, .. }| Value {
        middle,
        low,
        high,
    })
}
