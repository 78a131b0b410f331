//! Scales: numbers to places on an axis, and its ticks.

/// Most even steps of an axis.
const STEPS: f64 = 5.0;
/// Most values of the data that are ticks themselves.
const TICKS_AT_DATA: usize = 8;

/// A scale over the values of one axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    logarithmic: bool,
    from: f64,
    to: f64,
    ticks: Vec<f64>,
}

impl Scale {
    /// From 0 to a round number at or above the largest of `values`.
    pub(super) fn linear(values: impl IntoIterator<Item = f64>) -> Self {
        let top = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let top = if top > 0.0 { top } else { 1.0 };
        let step = step(top);
        let count = (top / step - 1e-9).ceil();
        let ticks = (0..=count as u32).map(|tick| f64::from(tick) * step).collect();
        Self { logarithmic: false, from: 0.0, to: count * step, ticks }
    }

    /// From a round number at or below the smallest of `values` above 0 to one at or above the
    /// largest, by decades; within fewer than two decades also at 2 and 5.
    pub(super) fn logarithmic(values: impl IntoIterator<Item = f64>) -> Self {
        let positive: Vec<f64> =
            values.into_iter().filter(|value| value.is_finite() && *value > 0.0).collect();
        let least = positive.iter().copied().reduce(f64::min).unwrap_or(1.0);
        let most = positive.iter().copied().reduce(f64::max).unwrap_or(10.0);
        let round = |decades: i32| if most / least < 100.0 && decades < 4 { 3 } else { 1 };
        let decades = most.log10().ceil() as i32 - least.log10().floor() as i32;
        let factors = &[1.0, 2.0, 5.0][..round(decades)];
        let marks: Vec<f64> = (least.log10().floor() as i32..=most.log10().ceil() as i32)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)))
            .collect();
        let first = marks.iter().rposition(|mark| *mark <= least * (1.0 + 1e-9)).unwrap_or(0);
        let last = marks.iter().position(|mark| *mark >= most * (1.0 - 1e-9));
        let mut last = last.unwrap_or(marks.len() - 1);
        if last == first {
            last = (first + 1).min(marks.len() - 1);
        }
        let ticks = marks[first..=last].to_vec();
        Self { logarithmic: true, from: marks[first], to: marks[last], ticks }
    }

    /// The values themselves, from edge to edge, as ticks if they are few.
    pub(super) fn of_data(values: impl IntoIterator<Item = f64>, logarithmic: bool) -> Self {
        let mut own: Vec<f64> = values.into_iter().collect();
        own.sort_by(f64::total_cmp);
        own.dedup();
        let zero = logarithmic && own.first().is_some_and(|first| *first <= 0.0);
        if own.len() < 2 || own.len() > TICKS_AT_DATA || zero {
            return if logarithmic { Self::logarithmic(own) } else { Self::linear(own) };
        }
        let (from, to) = (own[0], own[own.len() - 1]);
        Self { logarithmic, from, to, ticks: own }
    }

    /// Where `value` is: 0 at the begin of the scale, 1 at its end.
    pub(super) fn share(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            let least = value.max(self.from * 1e-3);
            (least / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        share.clamp(0.0, 1.0)
    }

    /// Ticks.
    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }
}

/// A round step, 1, 2 or 5 times a power of ten, of which few reach `top`.
fn step(top: f64) -> f64 {
    let rough = top / STEPS;
    let power = 10_f64.powf(rough.log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * (1.0 - 1e-9));
    round.unwrap_or(10.0) * power
}

/// A number in few characters: `0.05`, `12`, `1.5k`, `20M`.
pub(super) fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        size => (1.0 - size.log10().floor()) as usize,
    };
    let text = format!("{scaled:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_steps_are_round_and_few() {
        assert_eq!(Scale::linear([8.7]).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(Scale::linear([5.0]).ticks().len(), 6);
        assert_eq!(Scale::linear([230.0]).ticks().last(), Some(&250.0));
        assert_eq!(Scale::linear([]).ticks().last(), Some(&1.0));
        assert_eq!(Scale::linear([10.0]).share(5.0), 0.5);
    }

    #[test]
    fn decades_with_parts_where_there_are_few() {
        assert_eq!(Scale::logarithmic([3.0, 2000.0]).ticks(), [1.0, 10.0, 100.0, 1000.0, 10000.0]);
        assert_eq!(Scale::logarithmic([3.0, 18.0]).ticks(), [2.0, 5.0, 10.0, 20.0]);
        assert_eq!(Scale::logarithmic([1.0, 1.0]).ticks(), [1.0, 2.0]);
        let scale = Scale::logarithmic([1.0, 100.0]);
        assert!((scale.share(10.0) - 0.5).abs() < 1e-12, "{scale:?}");
        assert_eq!((scale.share(0.0), scale.share(1e9)), (0.0, 1.0));
    }

    #[test]
    fn few_values_are_ticks_themselves() {
        assert_eq!(Scale::of_data([2.0, 4.0, 64.0, 4.0], true).ticks(), [2.0, 4.0, 64.0]);
        assert_eq!(Scale::of_data((1..=20).map(f64::from), false).ticks().len(), 5);
        assert_eq!(Scale::of_data([0.0, 8.0], true).ticks(), [5.0, 10.0]);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.05, 0.126, 1.5, 12.0, 999.0, 1500.0, 20e6, 3.25e9].map(short);
        assert_eq!(shown, ["0", "0.05", "0.13", "1.5", "12", "999", "1.5k", "20M", "3.25G"]);
    }
}
