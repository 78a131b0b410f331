//! Charts, maps and figures as Scalable Vector Graphics.

mod bars;
mod canvas;
mod figure;
mod lines;
mod map;
mod panels;
mod scale;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use canvas::escaped;
use canvas::{Canvas, SIZE};
pub(crate) use figure::{Axis, BarChart, Drawing, Figure, Panel, Value};
pub(crate) use map::Map;
pub(crate) use panels::{Panels, estimated, rate};

/// Width of a panel: words stay readable where a telephone shows it.
const PANEL: f64 = 440.0;
/// Width of a picture that stands alone, and the room around its panels.
const ALONE: f64 = 640.0;
const MARGIN: f64 = 20.0;

/// A picture of one panel.
pub(crate) fn alone(title: &str, drawing: Drawing) -> String {
    let panel = Panel { title: String::new(), drawing };
    below_each_other([Figure { title: title.to_owned(), panels: vec![panel] }])
}

/// A picture of figures, one below the other.
pub(crate) fn below_each_other(figures: impl IntoIterator<Item = Figure>) -> String {
    let mut canvas = Canvas::new();
    let mut y = MARGIN;
    let room = ALONE - 2.0 * MARGIN;
    for figure in figures {
        y += canvas.heading((0.0, y), room, &figure.title) + 8.0;
        for panel in &figure.panels {
            let (elements, height) = drawn(panel, room);
            canvas.group(y, &elements);
            y += height + 2.0 * MARGIN;
        }
    }
    let (width, height) = (ALONE, y + MARGIN);
    format!(
        "{}<rect x=\"-{MARGIN}\" width=\"{width}\" height=\"{height:.0}\" fill=\"white\"/>\n{}</g></svg>\n",
        opened((-MARGIN, width), height, &format!("width=\"{width}\" height=\"{height:.0}\"")),
        canvas.into_elements()
    )
}

/// A panel as a picture of its own, for a page: as wide as its place.
pub(crate) fn panel(panel: &Panel) -> String {
    let (elements, height) = drawn(panel, PANEL);
    let name = format!("role=\"img\" aria-label=\"{}\"", escaped(&panel.title));
    format!("{}{elements}</g></svg>\n", opened((-4.0, PANEL + 8.0), height, &name))
}

/// The begin of a picture.
fn opened((left, width): (f64, f64), height: f64, more: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left} 0 {width} {height:.0}\" {more}>\n\
         <g font-family=\"sans-serif\" font-size=\"{SIZE}\">\n"
    )
}

/// The elements of a panel, and their height.
fn drawn(panel: &Panel, room: f64) -> (String, f64) {
    let mut canvas = Canvas::new();
    let mut top = 0.0;
    if !panel.title.is_empty() {
        top = canvas.heading((0.0, 0.0), room, &panel.title) + 6.0;
    }
    let mut below = Canvas::new();
    let height = match &panel.drawing {
        Drawing::Lines(chart) => lines::draw(chart, room, &mut below),
        Drawing::Bars(chart) => bars::draw(chart, room, &mut below),
        Drawing::Map(map) => map::draw(map, room, &mut below),
    };
    canvas.group(top, &below.into_elements());
    (canvas.into_elements(), top + height)
}
