//! Options of all experiments: size, time, repeats, seed.

use std::time::Duration;

/// How much work an experiment does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Size {
    /// The parameters of the source. Minutes.
    #[default]
    Full,
    /// Every variant of every case once, each for milliseconds. Its figures mean nothing, its
    /// counts do.
    Smoke,
}

/// How to run an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOptions {
    /// How much work.
    pub size: Size,
    /// How often each variant runs; by experiment and size without it.
    pub repeat: Option<usize>,
    /// How long one run of one variant lasts; by experiment and size without it.
    pub duration: Option<Duration>,
    /// Seed of everything random in the workload.
    pub seed: u64,
}

impl RunOptions {
    /// Repetitions: as asked, or `full`, or one for the smoke size. At least one.
    pub(crate) fn repeats(&self, full: usize) -> usize {
        let default = match self.size {
            Size::Full => full,
            Size::Smoke => 1,
        };
        self.repeat.unwrap_or(default).max(1)
    }

    /// Length of one run: as asked, or `full`, or some milliseconds for the smoke size.
    pub(crate) fn run_time(&self, full: Duration) -> Duration {
        self.duration.unwrap_or(match self.size {
            Size::Full => full,
            Size::Smoke => Duration::from_millis(5),
        })
    }

    /// `full`, or `smoke` for the smoke size.
    pub(crate) fn sized<T>(&self, full: T, smoke: T) -> T {
        match self.size {
            Size::Full => full,
            Size::Smoke => smoke,
        }
    }
}
