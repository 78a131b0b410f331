//! Mean and spread of repeated measurements.

use serde::{Deserialize, Serialize};

/// Mean, standard deviation and range of a list of samples, in the unit of the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of samples.
    pub count: usize,
    /// Arithmetic mean; 0 without samples.
    pub mean: f64,
    /// Standard deviation of the sample (divisor n - 1); 0 for fewer than two samples.
    pub stddev: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
}

impl Spread {
    /// The spread of `samples`; all zero if there are none.
    #[must_use]
    pub fn of(samples: &[f64]) -> Self {
        let count = samples.len();
        if count == 0 {
            return Self::default();
        }
        let mean = samples.iter().sum::<f64>() / count as f64;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        Self {
            count,
            mean,
            stddev: if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 },
            min: samples.iter().copied().fold(f64::INFINITY, f64::min),
            max: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_deviation_and_range() {
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((spread.count, spread.mean), (8, 5.0));
        assert!((spread.stddev - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((spread.min, spread.max), (2.0, 9.0));
    }

    #[test]
    fn few_samples_have_no_deviation() {
        assert_eq!(Spread::of(&[]), Spread::default());
        let one = Spread::of(&[3.0]);
        assert_eq!((one.count, one.mean, one.stddev), (1, 3.0, 0.0));
    }
}
