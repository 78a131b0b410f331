//! Two files of records side by side: two machines, kernels or commits.

use std::io::{self, Write};

use crate::record::Record;
use crate::report::blocks::{Blocks, Table};
use crate::report::number::thousands;
use crate::report::plot::{self, BarChart, Drawing, Value};
use crate::statistics::CaseRates;
use crate::statistics::{Estimate, Rule, Verdict};

/// Rates that both files have, each with how often as fast the second is as the first.
pub struct Comparison {
    pairs: Vec<Pair>,
}

struct Pair {
    case: String,
    first: f64,
    second: f64,
    ratio: Estimate,
}

impl Comparison {
    /// Compares the rates of cases that are in both; of a case that is there several times, all runs
    /// count.
    #[must_use]
    pub fn of(first: &[Record], second: &[Record]) -> Self {
        let (first, second) = (cases(first), cases(second));
        let pairs = first.into_iter().filter_map(|(case, own)| {
            let (_, other) = second.iter().find(|(name, _)| *name == case)?;
            let ratio = Estimate::of_ratio_of_medians(other, &own)?;
            let (first, second) = (Estimate::of(&own)?.middle, Estimate::of(other)?.middle);
            Some(Pair { case, first, second, ratio })
        });
        Self { pairs: pairs.collect() }
    }

    /// Whether the files have no case in common.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Cases in which the second is slower by more than this share, with the whole interval.
    #[must_use]
    pub fn slower_than(&self, share: f64) -> Vec<&str> {
        let rule = Rule::AtLeast(1.0 - share);
        let slower = self.pairs.iter().filter(|pair| rule.judge(&pair.ratio) == Verdict::Fails);
        slower.map(|pair| pair.case.as_str()).collect()
    }

    /// Writes a row for each case.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new()
            .words("case")
            .group("first")
            .numbers("second")
            .group("second / first")
            .words("");
        for pair in &self.pairs {
            let word =
                match (Rule::AtLeast(1.0).judge(&pair.ratio), Rule::AtMost(1.0).judge(&pair.ratio))
                {
                    (Verdict::Fails, _) => "slower",
                    (_, Verdict::Fails) => "faster",
                    _ => "",
                };
            table.row([
                pair.case.clone(),
                thousands(pair.first),
                thousands(pair.second),
                pair.ratio.to_string(),
                word.to_owned(),
            ]);
        }
        let mut blocks = Blocks::default();
        blocks.table(table);
        blocks.write_text(out)
    }

    /// The ratios as a picture in SVG.
    #[must_use]
    pub fn plot(&self) -> String {
        let mut chart = BarChart::new("rate of the second beside that of the first");
        for Pair { case, ratio, .. } in &self.pairs {
            let Estimate { middle, low, high, .. } = *ratio;
            chart.put("ratio", case, Value { middle, low, high });
        }
        plot::alone("second / first", Drawing::Bars(chart))
    }
}

/// Every case with the rates of its runs, in the order in which they come.
fn cases(records: &[Record]) -> Vec<(String, Vec<f64>)> {
    let mut all: Vec<(String, Vec<f64>)> = Vec::new();
    let rates = records.iter().flat_map(|record| record.outcome.rates());
    for CaseRates { case, of_runs: rates } in rates {
        match all.iter_mut().find(|(known, _)| *known == case) {
            Some((_, known)) => known.extend(rates),
            None => all.push((case, rates)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{MetaOutcome, Operation, Speed};
    use crate::outcome::Outcome;
    use crate::record::Session;

    fn records(rates: &[f64]) -> Vec<Record> {
        let speed = Speed {
            operation: Operation::Create,
            per_second: rates.to_vec(),
            durable_per_second: Vec::new(),
            cpu_ns_per_call: 0.0,
        };
        let outcome = Outcome::Meta(MetaOutcome {
            target: "undercroft".to_owned(),
            threads: 1,
            directories: 1,
            files: 1,
            rounds: rates.len(),
            operations: vec![speed],
        });
        vec![Record { outcome, session: Session::begin(String::new(), 1).unwrap() }]
    }

    #[test]
    fn only_a_whole_interval_below_counts_as_slower() {
        let first = records(&[100.0, 101.0, 99.0, 100.0]);
        let slower = Comparison::of(&first, &records(&[80.0, 81.0, 79.0, 80.0]));
        assert_eq!(slower.slower_than(0.05).len(), 1);
        assert!(slower.slower_than(0.3).is_empty());
        let noisy = Comparison::of(&first, &records(&[70.0, 120.0, 90.0, 110.0]));
        assert!(noisy.slower_than(0.05).is_empty());
        let mut table = Vec::new();
        slower.write_table(&mut table).unwrap();
        assert!(String::from_utf8(table).unwrap().contains("slower"));
        assert!(slower.plot().contains("meta, undercroft, create"));
    }

    #[test]
    fn nothing_in_common_is_empty() {
        assert!(Comparison::of(&records(&[1.0]), &[]).is_empty());
    }
}
