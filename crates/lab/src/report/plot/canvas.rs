//! Elements of a picture in SVG. Colours are attributes, for programs that know no style sheets, and
//! classes, for pages that have a dark side.

use std::fmt::Write;

use super::words::{width, wrapped};

/// Size of the words of a picture, in pixels.
pub(super) const SIZE: f64 = 12.0;
/// Distance between lines of words.
pub(super) const LINE: f64 = 16.0;
/// Colours that people with colour-blindness tell apart (Okabe and Ito), darkened where they are
/// light, and grey.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#007f5f", "#b04f8a", "#a66f00", "#3c94cf", "#555555", "#8a2b2b"];

/// The side of a text that stands at its place.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture under construction.
pub(super) struct Canvas {
    svg: String,
}

impl Canvas {
    pub(super) fn new() -> Self {
        Self { svg: String::new() }
    }

    /// The elements so far.
    pub(super) fn into_elements(self) -> String {
        self.svg
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.svg, "{element}");
    }

    /// Elements moved down by `y`.
    pub(super) fn group(&mut self, y: f64, elements: &str) {
        self.element(format_args!("<g transform=\"translate(0 {y:.1})\">\n{elements}</g>"));
    }

    /// Words on one line.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, words: &str) {
        self.styled_text((x, y), anchor, "class=\"word\" fill=\"#333333\"", words);
    }

    /// Words in bold, wrapped at `room`; returns the height that they take.
    pub(super) fn heading(&mut self, (x, y): (f64, f64), room: f64, words: &str) -> f64 {
        let size = SIZE * 1.15;
        let lines = wrapped(words, room, size);
        for (index, line) in lines.iter().enumerate() {
            let style = format!(
                "class=\"word\" fill=\"#111111\" font-size=\"{size:.1}\" font-weight=\"bold\""
            );
            self.styled_text((x, y + LINE * (index as f64 + 0.8)), Anchor::Start, &style, line);
        }
        LINE * lines.len() as f64
    }

    /// Words in the colour of a series.
    pub(super) fn label(&mut self, place: (f64, f64), series: usize, words: &str) {
        let style = format!("class=\"f{}\" fill=\"{}\"", number(series), colour(series));
        self.styled_text(place, Anchor::Start, &style, words);
    }

    fn styled_text(&mut self, (x, y): (f64, f64), anchor: Anchor, style: &str, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let words = escaped(words);
        self.element(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>"
        ));
    }

    /// A line of the axes.
    pub(super) fn rule(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), strong: bool) {
        let (class, colour) = if strong { ("axis", "#555555") } else { ("grid", "#dddddd") };
        self.element(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
             stroke=\"{colour}\"/>"
        ));
    }

    /// The line of a series.
    pub(super) fn line(&mut self, series: usize, points: &[(f64, f64)]) {
        let mut path = String::new();
        for (x, y) in points {
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        let (class, colour) = (number(series), colour(series));
        self.element(format_args!(
            "<polyline class=\"s{class}\" points=\"{}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"2\"/>",
            path.trim_end()
        ));
    }

    /// A filled box of a series, with words that a pointer brings up.
    pub(super) fn bar(&mut self, series: usize, place: (f64, f64), size: (f64, f64), tip: &str) {
        self.cell(Some(series), place, (size.0.max(0.5), size.1), tip);
    }

    /// A filled box in the colour of a series, or in that of free space.
    pub(super) fn cell(
        &mut self,
        series: Option<usize>,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        tip: &str,
    ) {
        let class = series.map_or("free".to_owned(), |series| format!("f{}", number(series)));
        let colour = series.map_or("#e6e6e6", colour);
        self.element(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" fill=\"{colour}\"><title>{}</title></rect>",
            escaped(tip)
        ));
    }

    /// A thin line of an interval, with a cap at each end, from one place to the other: in the colour
    /// of a series, or in one that shows on bars of any.
    pub(super) fn interval(&mut self, series: Option<usize>, from: (f64, f64), to: (f64, f64)) {
        let class = series.map_or("error".to_owned(), |series| format!("s{}", number(series)));
        let colour = series.map_or("#222222", colour);
        let level = from.1 == to.1;
        let (dx, dy) = if level { (0.0, 3.0) } else { (3.0, 0.0) };
        let ends = [from, to].map(|(x, y)| ((x - dx, y - dy), (x + dx, y + dy)));
        for ((x1, y1), (x2, y2)) in [(from, to)].into_iter().chain(ends) {
            self.element(format_args!(
                "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
                 stroke=\"{colour}\" stroke-width=\"1.2\"/>"
            ));
        }
    }

    /// The mark of a series at a point, with words that a pointer brings up. Ten series have marks
    /// of their own.
    pub(super) fn mark(&mut self, series: usize, (x, y): (f64, f64), tip: &str) {
        let shape = match series % 10 {
            0 => "M-4,0 A4,4 0 1,0 4,0 A4,4 0 1,0 -4,0 Z",
            1 => "M-4,-4 H4 V4 H-4 Z",
            2 => "M0,-5 L5,4 H-5 Z",
            3 => "M0,-5 L5,0 L0,5 L-5,0 Z",
            4 => "M0,5 L5,-4 H-5 Z",
            5 => "M-4,-2 H-2 V-4 H2 V-2 H4 V2 H2 V4 H-2 V2 H-4 Z",
            6 => "M-5,0 L4,-5 V5 Z",
            7 => "M5,0 L-4,-5 V5 Z",
            8 => "M-5,-2 H5 V2 H-5 Z",
            _ => "M-2,-5 H2 V5 H-2 Z",
        };
        let (class, colour) = (number(series), colour(series));
        self.element(format_args!(
            "<path class=\"f{class}\" transform=\"translate({x:.1} {y:.1})\" d=\"{shape}\" \
             fill=\"{colour}\"><title>{}</title></path>",
            escaped(tip)
        ));
    }

    /// Names of series in rows that fit into `room`, each behind its colour; returns the height.
    pub(super) fn legend(&mut self, (left, top): (f64, f64), room: f64, names: &[&str]) -> f64 {
        let (mut x, mut y) = (left, top);
        for (index, name) in names.iter().enumerate() {
            let taken = 18.0 + width(name, SIZE) + 14.0;
            if x > left && x + taken > left + room {
                (x, y) = (left, y + LINE);
            }
            self.bar(index, (x, y + 2.0), (12.0, 12.0), name);
            self.label((x + 18.0, y + 12.0), index, name);
            x += taken;
        }
        y + LINE - top
    }
}

/// The number in the class of a series.
fn number(series: usize) -> usize {
    series % COLOURS.len()
}

fn colour(series: usize) -> &'static str {
    COLOURS[number(series)]
}

/// `text` without characters that mean something in markup.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
