//! A statistic with an interval around it.

use std::fmt;

use super::spread::Spread;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 2000;
/// Share of the resampled values on either side of the interval: 95 % are inside.
const TAIL: f64 = 0.025;
/// Fewest runs whose interval says anything.
pub(super) const ENOUGH_RUNS: usize = 3;

/// A statistic and its interval of 95 %, by the percentile bootstrap (Efron 1979): samples are drawn
/// again and again from those that there are, and what it is of these draws is sorted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) middle: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Runs behind it; `None` for a count over all of them.
    pub(crate) runs: Option<usize>,
    /// The machine was busy with other work while it was measured.
    pub(crate) is_doubtful: bool,
}

impl Estimate {
    /// The median of `samples`, and its interval; `None` without samples.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        Self::of_statistic(samples, median)
    }

    /// The coefficient of variation of `samples`: their deviation as a share of their mean.
    pub(crate) fn of_variation(samples: &[f64]) -> Option<Self> {
        Self::of_statistic(samples, |samples| {
            let spread = Spread::of(samples);
            (spread.mean != 0.0).then(|| spread.stddev / spread.mean)
        })
    }

    /// What `statistic` says of `samples`, and of draws from them, which are the same for as many
    /// samples.
    fn of_statistic(
        samples: &[f64],
        statistic: impl Fn(&mut [f64]) -> Option<f64>,
    ) -> Option<Self> {
        let middle = statistic(&mut samples.to_vec())?;
        let mut random = fastrand::Rng::with_seed(samples.len() as u64);
        let mut draw = vec![0.0; samples.len()];
        let mut drawn: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                draw.fill_with(|| samples[random.usize(..samples.len())]);
                statistic(&mut draw)
            })
            .collect();
        let (low, high) = inner(&mut drawn)?;
        Some(Self { middle, low, high, runs: Some(samples.len()), is_doubtful: false })
    }

    /// How often as much `own` is as `other`, run by run: variants took turns, so that a disturbance
    /// of the machine hit both. Runs in which `other` did nothing are left out.
    pub(crate) fn of_ratios(own: &[f64], other: &[f64]) -> Option<Self> {
        let pairs = own.iter().zip(other).filter(|(_, other)| **other > 0.0);
        Self::of(&pairs.map(|(own, other)| own / other).collect::<Vec<_>>())
    }

    /// How often as much `own` is as `other`, which were measured apart: both are drawn from, each for
    /// itself.
    pub(crate) fn of_ratio_of_medians(own: &[f64], other: &[f64]) -> Option<Self> {
        let ratio = |own: &mut [f64], other: &mut [f64]| {
            Some(median(own)? / median(other).filter(|of| *of > 0.0)?)
        };
        let (mut first, mut second) = (own.to_vec(), other.to_vec());
        let middle = ratio(&mut first, &mut second)?;
        let mut random = fastrand::Rng::with_seed((own.len() + other.len()) as u64);
        let mut drawn: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                first.fill_with(|| own[random.usize(..own.len())]);
                second.fill_with(|| other[random.usize(..other.len())]);
                ratio(&mut first, &mut second)
            })
            .collect();
        let (low, high) = inner(&mut drawn)?;
        let runs = Some(own.len().min(other.len()));
        Some(Self { middle, low, high, runs, is_doubtful: false })
    }

    /// A count over all runs.
    pub(crate) const fn exact(count: f64) -> Self {
        Self { middle: count, low: count, high: count, runs: None, is_doubtful: false }
    }

    /// One measurement that was not repeated.
    pub(crate) const fn once(value: f64) -> Self {
        Self { middle: value, low: value, high: value, runs: Some(1), is_doubtful: false }
    }

    /// Whether the interval says anything: a count does; a measurement with enough runs, on a machine
    /// that did nothing else.
    pub(super) fn is_judged(&self) -> bool {
        self.runs.is_none_or(|runs| runs >= ENOUGH_RUNS && !self.is_doubtful)
    }

    /// Whether it is a number: a ratio to nothing is none.
    pub(crate) fn is_finite(&self) -> bool {
        self.middle.is_finite() && self.low.is_finite() && self.high.is_finite()
    }
}

impl Estimate {
    /// In words, with what it counts.
    pub(crate) fn in_unit(&self, unit: &str) -> String {
        format!("{} {unit}{}", digits(self.middle), self.interval())
    }

    fn interval(&self) -> String {
        match self.runs {
            None => String::new(),
            Some(1) => " (one run)".to_owned(),
            Some(_) => format!(" [{} to {}]", digits(self.low), digits(self.high)),
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", digits(self.middle), self.interval())
    }
}

/// The ends of the inner part of `drawn`. Sorts.
fn inner(drawn: &mut [f64]) -> Option<(f64, f64)> {
    drawn.sort_by(f64::total_cmp);
    let tail = (drawn.len() as f64 * TAIL) as usize;
    Some((*drawn.get(tail)?, *drawn.get(drawn.len() - 1 - tail)?))
}

/// Three significant digits.
pub(super) fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// The middle value, or the mean of the two in the middle. Sorts.
fn median(samples: &mut [f64]) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let upper = *samples.get(samples.len() / 2)?;
    let lower = samples[(samples.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_around_the_median_and_shrinks_with_the_runs() {
        let samples =
            |count: usize| -> Vec<f64> { (0..count).map(|at| (at % 10) as f64).collect() };
        let few = Estimate::of(&samples(10)).unwrap();
        let many = Estimate::of(&samples(1000)).unwrap();
        assert_eq!((few.middle, many.middle), (4.5, 4.5));
        assert!(few.low < few.middle && few.middle < few.high, "{few:?}");
        assert!(many.high - many.low < few.high - few.low, "{few:?} {many:?}");
        assert_eq!(Estimate::of(&samples(10)).unwrap(), few);
    }

    #[test]
    fn ratios_are_taken_run_by_run() {
        let ratio = Estimate::of_ratios(&[2.0, 20.0, 8.0], &[1.0, 10.0, 4.0]).unwrap();
        assert_eq!((ratio.low, ratio.middle, ratio.high), (2.0, 2.0, 2.0));
        assert!(Estimate::of_ratios(&[1.0], &[0.0]).is_none());
        assert!(Estimate::of(&[]).is_none());
    }

    #[test]
    fn medians_measured_apart_have_a_ratio() {
        let ratio = Estimate::of_ratio_of_medians(&[4.0, 4.4, 3.6], &[2.0, 2.2, 1.8, 2.0]).unwrap();
        assert_eq!((ratio.middle, ratio.runs), (2.0, Some(3)));
        assert!(ratio.low < 2.0 && 2.0 < ratio.high && ratio.low > 1.5, "{ratio:?}");
        assert!(Estimate::of_ratio_of_medians(&[], &[1.0]).is_none());
        assert!(Estimate::of_ratio_of_medians(&[1.0], &[0.0]).is_none());
    }

    #[test]
    fn the_variation_of_equal_samples_is_none() {
        let equal = Estimate::of_variation(&[5.0; 4]).unwrap();
        assert_eq!((equal.low, equal.middle, equal.high), (0.0, 0.0, 0.0));
        let varied = Estimate::of_variation(&[5.0, 10.0, 15.0]).unwrap();
        assert_eq!(varied.middle, 0.5);
    }

    #[test]
    fn three_digits_and_the_interval() {
        let estimate =
            Estimate { middle: 1.2345, low: 1.1, high: 12.34, runs: Some(5), is_doubtful: false };
        assert_eq!(estimate.in_unit("times"), "1.23 times [1.10 to 12.3]");
        assert_eq!(Estimate::exact(47.0).in_unit("locks"), "47.0 locks");
        assert_eq!(Estimate::once(0.184).in_unit("of all"), "0.184 of all (one run)");
    }
}
