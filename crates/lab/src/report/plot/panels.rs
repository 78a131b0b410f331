//! Panels of an experiment, gathered record by record.

use super::figure::{Axis, BarChart, Drawing, Figure, LineChart, Panel, Value};
use crate::measure::rate::Rate;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::statistics::Estimate;
use crate::{affinity, age, alloc, calibration, fsync, iops, meta, mount, tags, unplug};

/// The figure of one experiment in one session.
pub(crate) fn figure_of(section: &[Record]) -> Figure {
    let mut panels = Panels::default();
    for record in section {
        add(&record.outcome, &mut panels);
    }
    Figure { title: section[0].outcome.title(), panels: panels.into_list() }
}

fn add(outcome: &Outcome, panels: &mut Panels) {
    match outcome {
        Outcome::TagsDepth(of) | Outcome::TagsShared(of) => tags::figure::add_depth(of, panels),
        Outcome::TagsHerd(of) | Outcome::TagsVariability(of) => {
            tags::figure::add_policy(of, panels);
        }
        Outcome::TagsFairness(of) => tags::figure::add_reader(of, panels),
        Outcome::Iops(of) => iops::figure::add(of, panels),
        Outcome::Affinity(of) => affinity::figure::add(of, panels),
        Outcome::Fsync(of) => fsync::figure::add(of, panels),
        Outcome::Meta(of) => meta::figure::add(of, panels),
        Outcome::Mount(of) => mount::figure::add(of, panels),
        Outcome::Unplug(of) => unplug::figure::add(of, panels),
        Outcome::Age(of) => age::figure::add(of, panels),
        Outcome::Alloc(of) => alloc::figure::add_distances(of, panels),
        Outcome::AllocSearch(of) => alloc::figure::add_search(of, panels),
        Outcome::AllocGrowth(of) => alloc::figure::add_growth(of, panels),
        Outcome::Calibration(of) => calibration::figure::add(of, panels),
    }
}

/// Panels under construction, by their titles.
#[derive(Default)]
pub(crate) struct Panels {
    bars: Vec<(String, BarChart)>,
    lines: Vec<(String, LineChart)>,
}

impl Panels {
    /// The bars with this title.
    pub(crate) fn bars(&mut self, title: &str, axis: &str) -> &mut BarChart {
        titled(&mut self.bars, title, || BarChart::new(axis))
    }

    /// The lines with this title.
    pub(crate) fn lines(&mut self, title: &str, x: Axis, y: Axis) -> &mut LineChart {
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

/// I/Os a second: the median of the runs.
pub(crate) fn rate(rate: &Rate) -> Value {
    estimated(&rate.iops_of_runs, rate.iops)
}

/// The median of `samples` with its interval; `mean` without samples.
pub(crate) fn estimated(samples: &[f64], mean: f64) -> Value {
    Estimate::of(samples).map_or(Value::plain(mean), |Estimate { middle, low, high, .. }| Value {
        middle,
        low,
        high,
    })
}
