//! Panels of an experiment, gathered record by record.

use super::figure::{Axis, BarChart, Drawing, LineChart, Panel, Value};
use crate::measure::rate::Rate;
use crate::statistics::Estimate;

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

    /// All of them.
    pub(crate) fn into_list(self) -> Vec<Panel> {
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
