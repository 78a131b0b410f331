//! Rules, and whether an estimate keeps them.

use std::fmt;

use super::Estimate;
use super::estimate::digits;

/// What a figure has to be for a claim to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// So much or more.
    AtLeast(f64),
    /// So much or less.
    AtMost(f64),
    /// Between both.
    Between(f64, f64),
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every interval is inside the rule.
    Holds,
    /// An interval is outside the rule.
    Fails,
    /// An interval crosses the border, there were too few runs for one, or the machine was busy.
    Open,
    /// There are no records of it.
    NotMeasured,
}

impl Rule {
    /// The verdict on one estimate.
    pub(crate) fn judge(self, estimate: &Estimate) -> Verdict {
        let (least, most) = match self {
            Self::AtLeast(least) => (least, f64::INFINITY),
            Self::AtMost(most) => (f64::NEG_INFINITY, most),
            Self::Between(least, most) => (least, most),
        };
        if !estimate.is_judged() {
            Verdict::Open
        } else if estimate.low >= least && estimate.high <= most {
            Verdict::Holds
        } else if estimate.high < least || estimate.low > most {
            Verdict::Fails
        } else {
            Verdict::Open
        }
    }

    /// The verdict on all of them: it fails by one, and holds by all.
    pub(crate) fn judge_all<'a>(self, all: impl IntoIterator<Item = &'a Estimate>) -> Verdict {
        let verdicts = all.into_iter().map(|estimate| self.judge(estimate));
        verdicts.reduce(Verdict::worse).unwrap_or(Verdict::NotMeasured)
    }
}

impl Verdict {
    fn worse(self, other: Self) -> Self {
        if self == Self::Fails || other == Self::Fails {
            Self::Fails
        } else if self == Self::Open || other == Self::Open {
            Self::Open
        } else {
            self
        }
    }

    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Holds, Self::Fails, Self::Open, Self::NotMeasured];

    /// One word for it, or two.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold",
            Self::Open => "open",
            Self::NotMeasured => "not measured",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "at least {}", digits(*least)),
            Self::AtMost(most) => write!(f, "at most {}", digits(*most)),
            Self::Between(least, most) => {
                write!(f, "between {} and {}", digits(*least), digits(*most))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, high: f64) -> Estimate {
        Estimate { middle: f64::midpoint(low, high), low, high, runs: Some(5), is_doubtful: false }
    }

    #[test]
    fn no_verdict_where_the_interval_crosses_the_border() {
        let rule = Rule::AtLeast(1.0);
        assert_eq!(rule.judge(&estimate(1.0, 1.2)), Verdict::Holds);
        assert_eq!(rule.judge(&estimate(0.9, 1.2)), Verdict::Open);
        assert_eq!(rule.judge(&estimate(0.8, 0.9)), Verdict::Fails);
        assert_eq!(Rule::Between(0.9, 1.1).judge(&estimate(0.95, 1.05)), Verdict::Holds);
        assert_eq!(Rule::AtMost(1.0).judge(&estimate(1.1, 1.2)), Verdict::Fails);
    }

    #[test]
    fn one_run_is_no_proof_and_a_count_is() {
        assert_eq!(Rule::AtLeast(1.0).judge(&Estimate::once(2.0)), Verdict::Open);
        assert_eq!(Rule::AtLeast(1.0).judge(&Estimate::exact(2.0)), Verdict::Holds);
    }

    #[test]
    fn what_a_busy_machine_measures_is_open() {
        let doubtful = Estimate { is_doubtful: true, ..estimate(2.0, 3.0) };
        assert_eq!(Rule::AtLeast(1.0).judge(&doubtful), Verdict::Open);
        let count = Estimate { is_doubtful: true, ..Estimate::exact(2.0) };
        assert_eq!(Rule::AtLeast(1.0).judge(&count), Verdict::Holds);
    }

    #[test]
    fn one_failure_decides() {
        let (good, open, bad) = (estimate(1.1, 1.2), estimate(0.9, 1.2), estimate(0.1, 0.2));
        let rule = Rule::AtLeast(1.0);
        assert_eq!(rule.judge_all([&good, &good]), Verdict::Holds);
        assert_eq!(rule.judge_all([&good, &open]), Verdict::Open);
        assert_eq!(rule.judge_all([&bad, &open, &good]), Verdict::Fails);
        assert_eq!(rule.judge_all([]), Verdict::NotMeasured);
    }
}
