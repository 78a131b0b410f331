//! What was measured: the same work done by several programs.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

/// A kind of work, and the programs that did it in turn, ours first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Comparison {
    pub(super) work: String,
    pub(super) unit: Unit,
    pub(super) programs: Vec<Program>,
}

/// A program, and its values in the order of the rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) values: Vec<f64>,
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Unit {
    Seconds,
    /// Microseconds of CPU time for one request.
    CpuMicroseconds,
    /// Operations a second.
    PerSecond,
    /// Millions of bytes a second.
    MegabytesPerSecond,
    /// Memory.
    Mebibytes,
    /// Files that came back.
    Files,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::CpuMicroseconds => "µs of CPU each",
            Self::PerSecond => "a second",
            Self::MegabytesPerSecond => "MB/s",
            Self::Mebibytes => "MiB",
            Self::Files => "files",
        }
    }

    /// A value in a table.
    fn shown(self, value: f64) -> String {
        if self == Self::Files { format!("{value:.0}") } else { short(value) }
    }

    /// How many times as good `ours` is as `other`; counts are told without.
    fn gain(self, ours: f64, other: f64) -> Option<f64> {
        match self {
            Self::Seconds | Self::CpuMicroseconds | Self::Mebibytes => Some(other / ours),
            Self::PerSecond | Self::MegabytesPerSecond => Some(ours / other),
            Self::Files => None,
        }
    }
}

impl Comparison {
    /// Work of which nothing was measured yet.
    pub(super) fn new<'n>(
        work: impl Into<String>,
        unit: Unit,
        programs: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let program = |name: &str| Program { name: name.to_owned(), values: Vec::new() };
        Self { work: work.into(), unit, programs: programs.into_iter().map(program).collect() }
    }

    /// Adds a round: one value for each program, in their order.
    pub(super) fn add(&mut self, round: impl IntoIterator<Item = f64>) {
        for (program, value) in self.programs.iter_mut().zip(round) {
            program.values.push(value);
        }
    }

    fn has_programs_of(&self, other: &Self) -> bool {
        self.programs.iter().map(|program| &program.name).eq(other.programs.iter().map(|p| &p.name))
    }

    /// How many times as good ours is as another: the median of the ratios of the rounds.
    fn gain(&self, other: &Program) -> Option<f64> {
        let ours = &self.programs.first()?.values;
        let ratios: Vec<f64> = ours
            .iter()
            .zip(&other.values)
            .filter_map(|(own, other)| self.unit.gain(*own, *other))
            .collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }
}

/// The comparisons as tables in Markdown: one for those that follow each other with the same programs.
pub(super) fn tables(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for same in comparisons.chunk_by(Comparison::has_programs_of) {
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = table(same, &mut text);
    }
    text
}

fn table(comparisons: &[Comparison], text: &mut String) -> fmt::Result {
    let Some(first) = comparisons.first() else { return Ok(()) };
    let names: Vec<&str> = first.programs.iter().map(|program| program.name.as_str()).collect();
    writeln!(text, "| | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()))?;
    for comparison in comparisons {
        write!(text, "| {}, {} |", comparison.work, comparison.unit.name())?;
        for (index, program) in comparison.programs.iter().enumerate() {
            if program.values.is_empty() {
                write!(text, " |")?;
                continue;
            }
            write!(text, " {}", comparison.unit.shown(median(&program.values)))?;
            if let Some(gain) = comparison.gain(program).filter(|_| index > 0) {
                write!(text, " ({})", short(gain))?;
            }
            write!(text, " |")?;
        }
        writeln!(text)?;
    }
    Ok(())
}

/// The middle of the values; of two middle ones, their mean. Zero when there is none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// A number with three digits, or all that are before its point.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        below if below < 0.1 => 3,
        below if below < 10.0 => 2,
        below if below < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let close = |values: &[f64], expected: f64| (median(values) - expected).abs() < 1e-9;
        assert!(close(&[3.0, 1.0, 2.0], 2.0));
        assert!(close(&[4.0, 1.0, 2.0, 3.0], 2.5));
        assert!(close(&[], 0.0));
    }

    #[test]
    fn a_table_has_medians_and_says_how_many_times_ours_is_as_good() {
        let mut times = Comparison::new("a tree", Unit::Seconds, ["ours", "other"]);
        times.add([1.0, 3.0]);
        times.add([2.0, 4.0]);
        times.add([1.0, 150.0]);
        let mut rates = Comparison::new("reads", Unit::PerSecond, ["ours", "other"]);
        rates.add([30.0, 60.0]);
        let mut alone = Comparison::new("writes", Unit::MegabytesPerSecond, ["ours"]);
        alone.add([1234.5]);
        let mut counts = Comparison::new("none", Unit::Files, ["ours", "none"]);
        counts.add([7966.0, 0.0]);
        let expected = "\
| | ours | other |
|---|---|---|
| a tree, s | 1.00 | 4.00 (3.00) |
| reads, a second | 30.0 | 60.0 (0.50) |

| | ours |
|---|---|
| writes, MB/s | 1234 |

| | ours | none |
|---|---|---|
| none, files | 7966 | 0 |
";
        assert_eq!(tables(&[times, rates, alone, counts]), expected);
    }
}
