//! What a chart shows, before it has a shape.

/// Values by category, in one or more series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chart {
    pub(super) title: String,
    /// The command, in small print below the title.
    pub(super) note: String,
    pub(super) kind: Kind,
    /// Name of the horizontal axis.
    pub(super) categories_title: String,
    /// Categories from left to right.
    pub(super) categories: Vec<String>,
    /// Name and unit of the vertical axis, which begins at 0.
    pub(super) values_title: String,
    pub(super) series: Vec<Series>,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Points joined by lines: categories have an order.
    Lines,
    /// Bars side by side.
    Bars,
}

/// The values of one variant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    /// One value for each category, where there is one.
    pub(super) values: Vec<Option<Value>>,
}

/// A value with its standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value {
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

impl Chart {
    /// Puts `value` at `category` of `series`; both are added at the end if they are new.
    pub(super) fn put(&mut self, series: &str, category: &str, value: Value) {
        let column = self.categories.iter().position(|known| known == category);
        let column = column.unwrap_or_else(|| {
            self.categories.push(category.to_owned());
            self.categories.len() - 1
        });
        let row = self.series.iter().position(|known| known.name == series);
        let row = row.unwrap_or_else(|| {
            self.series.push(Series { name: series.to_owned(), values: Vec::new() });
            self.series.len() - 1
        });
        let values = &mut self.series[row].values;
        values.resize(values.len().max(column + 1), None);
        values[column] = Some(value);
    }

    /// The largest value with its deviation; 1 if there is none above 0.
    pub(super) fn top(&self) -> f64 {
        let values = self.series.iter().flat_map(|series| series.values.iter().flatten());
        let top = values.map(|value| value.mean + value.deviation).fold(0.0, f64::max);
        if top > 0.0 { top } else { 1.0 }
    }
}

/// A round distance between ticks, 1, 2 or 5 times a power of ten, that gives at most `most`
/// intervals up to `top`.
pub(super) fn tick_step(top: f64, most: u32) -> f64 {
    let rough = top / f64::from(most);
    let power = 10_f64.powf(rough.log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough);
    round.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(tick_step(8.7, 5), 2.0);
        assert_eq!(tick_step(5.0, 5), 1.0);
        assert_eq!(tick_step(230.0, 5), 50.0);
        assert_eq!(tick_step(27.0, 5), 10.0);
        assert!((tick_step(0.09, 5) - 0.02).abs() < 1e-12);
    }

    #[test]
    fn values_find_their_place() {
        let mut chart = Chart {
            title: String::new(),
            note: String::new(),
            kind: Kind::Lines,
            categories_title: String::new(),
            categories: Vec::new(),
            values_title: String::new(),
            series: Vec::new(),
        };
        let value = |mean| Value { mean, deviation: 0.5 };
        assert_eq!(chart.top(), 1.0);
        chart.put("a", "2", value(1.0));
        chart.put("b", "4", value(2.0));
        chart.put("a", "4", value(3.0));
        assert_eq!(chart.categories, ["2", "4"]);
        assert_eq!(chart.series[0].values, [Some(value(1.0)), Some(value(3.0))]);
        assert_eq!(chart.series[1].values, [None, Some(value(2.0))]);
        assert_eq!(chart.top(), 3.5);
    }
}
