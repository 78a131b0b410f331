//! Panels of bars: from the left, so that names of categories stand level and whole.

use super::canvas::{Anchor, Canvas, LINE, SIZE};
use super::figure::{BarChart, Value};
use super::scale::{Scale, short};
use super::words::{fitted, width};

/// Height of a bar, and of the room between categories.
const BAR: f64 = 12.0;
const BETWEEN: f64 = 8.0;
/// Greatest share of a panel that the names of categories take.
const NAMES: f64 = 0.45;
/// Room for the number behind a bar.
const NUMBER: f64 = 48.0;

/// Draws `chart` in `room` pixels of width; returns the height.
pub(super) fn draw(chart: &BarChart, room: f64, canvas: &mut Canvas) -> f64 {
    let names: Vec<&str> = chart.series.iter().map(|bars| bars.name.as_str()).collect();
    let mut top = 0.0;
    if names.len() > 1 {
        top = canvas.legend((0.0, 0.0), room, &names) + 4.0;
    }
    let longest = chart.categories.iter().map(|name| width(name, SIZE)).fold(0.0, f64::max);
    let left = (longest + 8.0).min(room * NAMES);
    let right = room - NUMBER;
    let values = chart.series.iter().flat_map(|bars| bars.values.iter().flatten());
    let scale = Scale::linear(values.flat_map(|value| [value.middle, value.high]));
    let band = BAR * chart.series.len().max(1) as f64 + BETWEEN;
    let bottom = top + band * chart.categories.len() as f64;
    let x = |value: f64| left + (right - left) * scale.share(value);
    draw_axis(&scale, (top, bottom), x, canvas);
    for (row, category) in chart.categories.iter().enumerate() {
        let first = top + band * row as f64 + BETWEEN / 2.0;
        let middle = first + (band - BETWEEN) / 2.0 + 4.0;
        canvas.text((left - 6.0, middle), Anchor::End, &fitted(category, left - 6.0, SIZE));
        for (index, bars) in chart.series.iter().enumerate() {
            let Some(value) = bars.values.get(row).copied().flatten() else { continue };
            let y = first + BAR * index as f64;
            let tip = format!("{category}, {}: {}", bars.name, short(value.middle));
            canvas.bar(index, (left, y), (x(value.middle) - left, BAR - 2.0), &tip);
            draw_number(value, x, y, canvas);
        }
    }
    let below = bottom + SIZE + 6.0;
    canvas.text((left, below + LINE), Anchor::Start, &fitted(&chart.axis, room - left, SIZE));
    below + LINE + 6.0
}

/// Ticks from `top` to `bottom`, their names below.
fn draw_axis(
    scale: &Scale,
    (top, bottom): (f64, f64),
    x: impl Fn(f64) -> f64,
    canvas: &mut Canvas,
) {
    let mut free = f64::NEG_INFINITY;
    for (index, tick) in scale.ticks().iter().enumerate() {
        let (at, name) = (x(*tick), short(*tick));
        canvas.rule((at, top), (at, bottom), index == 0);
        let half = width(&name, SIZE) / 2.0;
        if at - half >= free {
            canvas.text((at, bottom + SIZE + 3.0), Anchor::Middle, &name);
            free = at + half + 4.0;
        }
    }
}

/// The interval of a bar at height `y`, and its number behind both.
fn draw_number(value: Value, x: impl Fn(f64) -> f64, y: f64, canvas: &mut Canvas) {
    let middle = y + (BAR - 2.0) / 2.0;
    if value.low < value.high {
        canvas.interval(None, (x(value.low), middle), (x(value.high), middle));
    }
    let end = x(value.middle.max(value.high)) + 6.0;
    canvas.text((end, y + BAR - 2.0), Anchor::Start, &short(value.middle));
}
