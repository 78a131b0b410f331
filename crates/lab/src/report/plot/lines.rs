//! Panels of lines.

use super::canvas::{Anchor, Canvas, LINE, SIZE};
use super::figure::{Axis, LineChart, Value};
use super::scale::{Scale, short};
use super::words::{fitted, width};

/// Height of the plotted area.
const HEIGHT: f64 = 220.0;
/// Room between the area and the names of ticks.
const GAP: f64 = 6.0;
/// Greatest share of a panel that the names of its lines take.
const NAMES: f64 = 0.38;

/// Draws `chart` in `room` pixels of width; returns the height.
pub(super) fn draw(chart: &LineChart, room: f64, canvas: &mut Canvas) -> f64 {
    let area = Area::of(chart, room);
    canvas.text((0.0, LINE * 0.8), Anchor::Start, &fitted(&chart.y.title, room, SIZE));
    area.draw_axes(chart, canvas);
    for (index, line) in chart.series.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            line.points.iter().map(|(x, value)| area.at(*x, value.middle)).collect();
        canvas.line(index, &points);
        for ((x, value), place) in line.points.iter().zip(points) {
            if value.low < value.high {
                let (high, low) = (area.y(value.high), area.y(value.low));
                canvas.interval(Some(index), (place.0, high), (place.0, low));
            }
            canvas.mark(index, place, &tip(&line.name, *x, *value));
        }
    }
    area.draw_names(chart, canvas);
    area.bottom() + GAP + SIZE + LINE + 8.0
}

fn tip(name: &str, x: f64, value: Value) -> String {
    let Value { middle, low, high } = value;
    let interval =
        if low < high { format!(" ({} to {})", short(low), short(high)) } else { String::new() };
    format!("{name}, {}: {}{interval}", short(x), short(middle))
}

/// The plotted area of a chart.
struct Area {
    left: f64,
    right: f64,
    top: f64,
    x: Scale,
    y: Scale,
}

impl Area {
    fn of(chart: &LineChart, room: f64) -> Self {
        let points = || chart.series.iter().flat_map(|line| &line.points);
        let values = points().flat_map(|(_, value)| [value.low, value.middle, value.high]);
        let y = of_axis(&chart.y, values);
        let x = Scale::of_data(points().map(|(x, _)| *x), chart.x.logarithmic);
        let ticks = y.ticks().iter().map(|tick| width(&short(*tick), SIZE));
        let names = chart.series.iter().map(|line| width(&line.name, SIZE)).fold(0.0, f64::max);
        let left = ticks.fold(0.0, f64::max) + GAP;
        Self { left, right: room - (names + 14.0).min(room * NAMES), top: LINE + 8.0, x, y }
    }

    fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom() - HEIGHT * self.y.share(value)
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + (self.right - self.left) * self.x.share(x), self.y(y))
    }

    fn draw_axes(&self, chart: &LineChart, canvas: &mut Canvas) {
        for (index, tick) in self.y.ticks().iter().enumerate() {
            let y = self.y(*tick);
            canvas.rule((self.left, y), (self.right, y), index == 0);
            canvas.text((self.left - GAP, y + 4.0), Anchor::End, &short(*tick));
        }
        let mut free = f64::NEG_INFINITY;
        for tick in self.x.ticks() {
            let (x, name) = (self.at(*tick, 0.0).0, short(*tick));
            canvas.rule((x, self.bottom()), (x, self.bottom() + 4.0), true);
            let half = width(&name, SIZE) / 2.0;
            if x - half >= free {
                canvas.text((x, self.bottom() + GAP + SIZE), Anchor::Middle, &name);
                free = x + half + 4.0;
            }
        }
        let below = self.bottom() + GAP + SIZE + LINE;
        let room = self.right - self.left;
        canvas.text((self.left, below), Anchor::Start, &fitted(&chart.x.title, room, SIZE));
    }

    /// The name of each line at its end, moved down where it would be on another.
    fn draw_names(&self, chart: &LineChart, canvas: &mut Canvas) {
        let ends = chart.series.iter().enumerate().filter_map(|(index, line)| {
            line.points.last().map(|(_, value)| (self.y(value.middle) + 4.0, index))
        });
        let mut places: Vec<(f64, usize)> = ends.collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let step = LINE * 0.9;
        for at in 1..places.len() {
            places[at].0 = places[at].0.max(places[at - 1].0 + step);
        }
        // Those that were pushed below the area go up together.
        let mut lowest = self.bottom() + 4.0;
        for place in places.iter_mut().rev() {
            place.0 = place.0.min(lowest);
            lowest = place.0 - step;
        }
        for (y, index) in places {
            let room = chart_room(self, &chart.series[index].name);
            canvas.label((self.right + 10.0, y), index, &room);
        }
    }
}

/// As much of a name as the margin holds; the margin was made for the longest, up to a bound.
fn chart_room(area: &Area, name: &str) -> String {
    fitted(name, area.right * NAMES / (1.0 - NAMES) - 12.0, SIZE)
}

fn of_axis(axis: &Axis, values: impl IntoIterator<Item = f64>) -> Scale {
    if axis.logarithmic { Scale::logarithmic(values) } else { Scale::linear(values) }
}
