//! Charts as a Scalable Vector Graphics picture, one below the other.

use std::fmt::{self, Write};

use super::chart::{Chart, Kind, Value, tick_step};

/// Width of a picture in pixels, and height of one chart in it.
const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 400.0;
/// The plotted area of a chart.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 340.0;
/// Most intervals between ticks of the vertical axis.
const TICKS: u32 = 6;
/// Share of a category that its bars fill.
const BARS_SHARE: f64 = 0.78;
/// Categories whose names are drawn level; more than that are drawn at a slant.
const LEVEL_NAMES: usize = 10;
/// Colours that people with colour-blindness tell apart (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"];

/// The picture of `charts`.
pub(super) fn render(charts: &[Chart]) -> String {
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut svg, charts);
    svg
}

fn write_all(svg: &mut String, charts: &[Chart]) -> fmt::Result {
    let height = HEIGHT * charts.len() as f64;
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">"
    )?;
    writeln!(svg, "<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>")?;
    for (index, chart) in charts.iter().enumerate() {
        writeln!(svg, "<g transform=\"translate(0 {})\">", HEIGHT * index as f64)?;
        Canvas { chart, step: tick_step(chart.top(), TICKS) }.write(svg)?;
        writeln!(svg, "</g>")?;
    }
    writeln!(svg, "</svg>")
}

/// One chart with its scale.
struct Canvas<'a> {
    chart: &'a Chart,
    /// Distance between ticks of the vertical axis.
    step: f64,
}

impl Canvas<'_> {
    fn write(&self, svg: &mut String) -> fmt::Result {
        text(svg, LEFT, 24.0, "font-size=\"16\" font-weight=\"bold\"", &self.chart.title)?;
        text(svg, LEFT, 43.0, "fill=\"#666\" font-size=\"11\"", &self.chart.note)?;
        self.write_axes(svg)?;
        for index in 0..self.chart.series.len() {
            match self.chart.kind {
                Kind::Lines => self.write_line(svg, index)?,
                Kind::Bars => self.write_bars(svg, index)?,
            }
            self.write_legend(svg, index)?;
        }
        Ok(())
    }

    fn intervals(&self) -> f64 {
        (self.chart.top() / self.step).ceil()
    }

    /// Height of `value`.
    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * value / (self.intervals() * self.step)
    }

    /// Middle of category `index`.
    fn x(&self, index: usize) -> f64 {
        LEFT + self.category_width() * (index as f64 + 0.5)
    }

    fn category_width(&self) -> f64 {
        (RIGHT - LEFT) / self.chart.categories.len().max(1) as f64
    }

    fn write_axes(&self, svg: &mut String) -> fmt::Result {
        for tick in 0..=self.intervals() as u32 {
            let value = f64::from(tick) * self.step;
            let y = self.y(value);
            let colour = if tick == 0 { "#333" } else { "#ddd" };
            line(svg, (LEFT, y), (RIGHT, y), colour, 1.0)?;
            text(svg, LEFT - 8.0, y + 4.0, "text-anchor=\"end\"", &self.tick_name(value))?;
        }
        let slanted = self.chart.categories.len() > LEVEL_NAMES;
        for (index, category) in self.chart.categories.iter().enumerate() {
            let (x, y) = (self.x(index), BOTTOM + 18.0);
            let place = if slanted {
                format!("text-anchor=\"end\" transform=\"rotate(-45 {x:.1} {y:.1})\"")
            } else {
                "text-anchor=\"middle\"".to_owned()
            };
            text(svg, x, y, &place, category)?;
        }
        let middle = f64::midpoint(LEFT, RIGHT);
        text(svg, middle, HEIGHT - 12.0, "text-anchor=\"middle\"", &self.chart.categories_title)?;
        let (x, y) = (18.0, f64::midpoint(TOP, BOTTOM));
        let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 {x} {y})\"");
        text(svg, x, y, &turned, &self.chart.values_title)
    }

    /// As many decimals as the distance between ticks needs.
    fn tick_name(&self, value: f64) -> String {
        let decimals = (-self.step.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{value:.decimals$}")
    }

    fn write_line(&self, svg: &mut String, index: usize) -> fmt::Result {
        let colour = colour(index);
        let values = self.chart.series[index].values.iter().enumerate();
        let points: Vec<(f64, Value)> =
            values.filter_map(|(at, value)| value.map(|value| (self.x(at), value))).collect();
        let path: Vec<String> =
            points.iter().map(|(x, value)| format!("{x:.1},{:.1}", self.y(value.mean))).collect();
        writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        )?;
        for (x, value) in points {
            self.write_deviation(svg, x, value, colour)?;
            let y = self.y(value.mean);
            writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>")?;
        }
        Ok(())
    }

    fn write_bars(&self, svg: &mut String, index: usize) -> fmt::Result {
        let width = self.category_width() * BARS_SHARE / self.chart.series.len() as f64;
        let first = self.category_width() * BARS_SHARE / -2.0;
        for (category, value) in self.chart.series[index].values.iter().enumerate() {
            let Some(value) = *value else { continue };
            let (x, y) = (self.x(category) + first + width * index as f64, self.y(value.mean));
            writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                (width - 1.0).max(1.0),
                BOTTOM - y,
                colour(index)
            )?;
            self.write_deviation(svg, x + (width - 1.0) / 2.0, value, "#222")?;
        }
        Ok(())
    }

    /// A bar from one deviation below the mean to one above.
    fn write_deviation(&self, svg: &mut String, x: f64, value: Value, colour: &str) -> fmt::Result {
        if value.deviation == 0.0 {
            return Ok(());
        }
        let high = self.y(value.mean + value.deviation);
        let low = self.y((value.mean - value.deviation).max(0.0));
        line(svg, (x, high), (x, low), colour, 1.2)?;
        line(svg, (x - 3.0, high), (x + 3.0, high), colour, 1.2)?;
        line(svg, (x - 3.0, low), (x + 3.0, low), colour, 1.2)
    }

    fn write_legend(&self, svg: &mut String, index: usize) -> fmt::Result {
        let (x, y) = (RIGHT + 18.0, TOP + 20.0 * index as f64);
        let colour = colour(index);
        writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>")?;
        text(svg, x + 18.0, y + 10.5, "", &self.chart.series[index].name)
    }
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

fn line(
    svg: &mut String,
    (x1, y1): (f64, f64),
    (x2, y2): (f64, f64),
    colour: &str,
    width: f64,
) -> fmt::Result {
    writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
         stroke=\"{colour}\" stroke-width=\"{width}\"/>"
    )
}

fn text(svg: &mut String, x: f64, y: f64, attributes: &str, words: &str) -> fmt::Result {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{words}</text>")
}

#[cfg(test)]
mod tests {
    use super::super::chart::Series;
    use super::*;

    fn chart(kind: Kind) -> Chart {
        let value = |mean| Some(Value { mean, deviation: 5.0 });
        Chart {
            title: "a < b".into(),
            note: "note".into(),
            kind,
            categories_title: "depth".into(),
            categories: vec!["2".into(), "4".into()],
            values_title: "IOPS".into(),
            series: vec![
                Series { name: "one".into(), values: vec![value(50.0), value(95.0)] },
                Series { name: "two".into(), values: vec![None, value(20.0)] },
            ],
        }
    }

    #[test]
    fn a_picture_holds_every_value_and_no_raw_markup() {
        let svg = render(&[chart(Kind::Lines), chart(Kind::Bars)]);
        assert_eq!(svg.matches("<circle").count(), 3);
        // The background, three bars, two legends of two series each.
        assert_eq!(svg.matches("<rect").count(), 1 + 3 + 4);
        assert!(svg.contains("a &lt; b"));
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn the_axis_ends_above_the_largest_value() {
        let chart = chart(Kind::Bars);
        let canvas = Canvas { chart: &chart, step: tick_step(chart.top(), TICKS) };
        assert_eq!((canvas.step, canvas.intervals()), (20.0, 5.0));
        assert!((canvas.y(100.0) - TOP).abs() < 1e-9);
        assert!((canvas.y(0.0) - BOTTOM).abs() < 1e-9);
    }

    #[test]
    fn nothing_to_show_is_an_empty_chart() {
        let empty = Chart { categories: vec![], series: vec![], ..chart(Kind::Lines) };
        assert!(!render(&[empty]).contains("NaN"));
    }
}
