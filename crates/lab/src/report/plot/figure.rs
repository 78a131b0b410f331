//! What a picture shows, before it has a shape.

use super::map::Map;

/// Panels side by side about one thing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) title: String,
    pub(crate) panels: Vec<Panel>,
}

/// One system of axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    /// Above it; empty where the figure has one panel.
    pub(crate) title: String,
    pub(crate) drawing: Drawing,
}

/// The kind of a panel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drawing {
    /// Points over a number, joined by lines.
    Lines(LineChart),
    /// Bars from the left, category by category.
    Bars(BarChart),
    /// The blocks of a volume.
    Map(Map),
}

/// Points over a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineChart {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Line>,
}

/// Bars by category.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BarChart {
    /// Of the values, from 0.
    pub(crate) axis: String,
    /// Names from top to bottom.
    pub(crate) categories: Vec<String>,
    pub(crate) series: Vec<Bars>,
}

/// An axis of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// Name and unit.
    pub(crate) title: String,
    /// By decades; else from 0 in even steps.
    pub(crate) logarithmic: bool,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// In the order of `x`.
    pub(crate) points: Vec<(f64, Value)>,
}

/// The bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bars {
    pub(crate) name: String,
    /// One value for each category, where there is one.
    pub(crate) values: Vec<Option<Value>>,
}

/// A value and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) middle: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Axis {
    pub(crate) fn linear(title: &str) -> Self {
        Self { title: title.to_owned(), logarithmic: false }
    }

    pub(crate) fn logarithmic(title: &str) -> Self {
        Self { title: title.to_owned(), logarithmic: true }
    }
}

impl Value {
    /// A value that was not repeated.
    pub(crate) const fn plain(middle: f64) -> Self {
        Self { middle, low: middle, high: middle }
    }
}

impl LineChart {
    /// Adds a point to the line of this name.
    pub(crate) fn put(&mut self, name: &str, x: f64, value: Value) {
        if let Some(line) = self.series.iter_mut().find(|line| line.name == name) {
            line.points.push((x, value));
        } else {
            self.series.push(Line { name: name.to_owned(), points: vec![(x, value)] });
        }
    }
}

impl BarChart {
    pub(crate) fn new(axis: &str) -> Self {
        Self { axis: axis.to_owned(), categories: Vec::new(), series: Vec::new() }
    }

    /// Puts `value` at `category` of `series`; both are added at the end if they are new.
    pub(crate) fn put(&mut self, series: &str, category: &str, value: Value) {
        let column = place(&mut self.categories, |known| known == category, || category.to_owned());
        let bars = || Bars { name: series.to_owned(), values: Vec::new() };
        let row = place(&mut self.series, |known| known.name == series, bars);
        let values = &mut self.series[row].values;
        values.resize(values.len().max(column + 1), None);
        values[column] = Some(value);
    }
}

/// Where the entry is that `is_it` knows; at the end, made by `make`, if nowhere.
fn place<T>(list: &mut Vec<T>, is_it: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> usize {
    list.iter().position(is_it).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_find_their_place() {
        let mut chart = BarChart::new("");
        let value = Value::plain;
        chart.put("a", "2", value(1.0));
        chart.put("b", "4", value(2.0));
        chart.put("a", "4", value(3.0));
        assert_eq!(chart.categories, ["2", "4"]);
        assert_eq!(chart.series[0].values, [Some(value(1.0)), Some(value(3.0))]);
        assert_eq!(chart.series[1].values, [None, Some(value(2.0))]);
    }
}
