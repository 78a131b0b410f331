//! pjdfstest, the suite for what POSIX says about files, and the comparison of two mounts by it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Error, cache, program};

/// Users without rights, with a group each.
const CONFIGURATION: &str = r#"
[features]
posix_fallocate = {}
rename_ctime = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.01
allow_remount = false
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"]]
"#;

/// The table of the differences that are known, in CONTRIBUTING.md.
const TEXT: &str = include_str!("../../../../CONTRIBUTING.md");
const HEAD: &str = "| test | ours | the kernel's | why that is so |";

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As POSIX says.
    Passed,
    /// The suite says that it cannot be asked here.
    Skipped,
    /// Otherwise.
    Failed,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Passed => "passed",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        })
    }
}

/// The outcome of each test by name, with the first line of what was said about it.
#[derive(Debug, Default)]
pub struct Verdicts(BTreeMap<String, (Outcome, String)>);

/// Runs all tests on the mount at `path`; `second` is another file system, for links between two.
/// Needs root.
///
/// # Errors
/// The suite is missing or does not run to its end. A test that fails is no error.
pub fn run(path: &Path, second: &Path) -> Result<Verdicts, Error> {
    let suite = cache::program("pjdfstest")?;
    let scratch = tempfile::tempdir()
        .map_err(Error::io("cannot make a directory in", &std::env::temp_dir()))?;
    let configuration = scratch.path().join("pjdfstest.toml");
    fs::write(&configuration, CONFIGURATION).map_err(Error::io("cannot write", &configuration))?;
    let mut command = Command::new(suite);
    command.arg("-c").arg(&configuration).arg("-p").arg(path).arg("-s").arg(second);
    let answer = program::run(command.env("RUST_BACKTRACE", "0"))?;
    match Verdicts::read(&answer.text) {
        Some(verdicts) => Ok(verdicts),
        None => Err(answer.failure()),
    }
}

impl Verdicts {
    /// Reads what the suite prints: lines of name and outcome, each with indented ones about it; and
    /// a summary, by which they are counted.
    fn read(text: &str) -> Option<Self> {
        let mut verdicts = BTreeMap::new();
        let mut last = None;
        let mut total = None;
        for line in text.lines() {
            if let Some(summary) = line.strip_prefix("Summary: ") {
                let words: Vec<&str> = summary.split_whitespace().collect();
                total = words.iter().rev().nth(1).and_then(|word| word.parse::<usize>().ok());
            }
            let mut words = line.split_whitespace();
            let (name, outcome) = (words.next(), words.next());
            let outcome = match outcome {
                Some("ok") => Some(Outcome::Passed),
                Some("skipped") => Some(Outcome::Skipped),
                Some("FAILED") => Some(Outcome::Failed),
                _ => None,
            };
            match (name, outcome, words.next()) {
                (Some(name), Some(outcome), None) if name.contains("::") => {
                    verdicts.insert(name.to_owned(), (outcome, String::new()));
                    last = Some(name.to_owned());
                }
                _ if line.starts_with('\t') => {
                    let said = last.take().and_then(|name| verdicts.get_mut(&name));
                    if let Some((_, said)) = said {
                        line.trim().clone_into(said);
                    }
                }
                _ => {}
            }
        }
        (total == Some(verdicts.len()) && !verdicts.is_empty()).then_some(Self(verdicts))
    }

    /// The number of tests that ended so.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        self.0.values().filter(|(other, _)| *other == outcome).count()
    }

    /// The tests that ended otherwise in `other`.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let names = self.0.keys().chain(other.0.keys().filter(|name| !self.0.contains_key(*name)));
        let outcome = |verdicts: &Self, name: &String| {
            verdicts.0.get(name).map_or(Outcome::Skipped, |(outcome, _)| *outcome)
        };
        let said = |name: &String| {
            let all = [self.0.get(name), other.0.get(name)];
            all.into_iter().flatten().map(|(_, said)| said).find(|said| !said.is_empty()).cloned()
        };
        let different = names.filter(|name| outcome(self, name) != outcome(other, name));
        let difference = |name: &String| Difference {
            name: name.clone(),
            ours: outcome(self, name),
            kernels: outcome(other, name),
            said: said(name).unwrap_or_default(),
        };
        different.map(difference).collect()
    }
}

/// A test that ends otherwise on our mount than on the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The test.
    pub name: String,
    /// How it ended on ours.
    pub ours: Outcome,
    /// How it ended on the kernel's.
    pub kernels: Outcome,
    /// What the suite said about it.
    pub said: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, ours, kernels, said } = self;
        write!(formatter, "{name}: {ours}, on the kernel's mount {kernels}: {said}")
    }
}

/// The differences that are not in the table of CONTRIBUTING.md, where each has its reason; and the
/// lines of the table that are no difference any more.
#[must_use]
pub fn unknown(differences: &[Difference]) -> Vec<String> {
    unknown_by(TEXT, differences)
}

fn unknown_by(text: &str, differences: &[Difference]) -> Vec<String> {
    let lines = text.lines().skip_while(|line| *line != HEAD).skip(2);
    let rows: Vec<[&str; 4]> = lines
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            std::array::from_fn(|_| cells.next().unwrap_or_default())
        })
        .collect();
    let is_row = |difference: &Difference, [name, ours, kernels, reason]: &[&str; 4]| {
        let Difference { name: test, ours: own, kernels: other, .. } = difference;
        (*name, *ours, *kernels) == (test, &own.to_string(), &other.to_string())
            && !reason.is_empty()
    };
    let new = differences.iter().filter(|one| !rows.iter().any(|row| is_row(one, row)));
    let gone = rows.iter().filter(|row| !differences.iter().any(|one| is_row(one, row)));
    new.map(|difference| format!("not in CONTRIBUTING.md: {difference}"))
        .chain(gone.map(|row| format!("in CONTRIBUTING.md, but no difference: {}", row[0])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "a::b      ok\na::c   FAILED\n\tno times\nother\n\nd::e  skipped\n\twhy\n\n\
                        Summary: 1 failed, 1 skipped, 1 passed, 0 expected failures, 3 total\n";

    #[test]
    fn what_the_suite_says_is_counted() {
        let ours = Verdicts::read(OURS).unwrap();
        assert_eq!(ours.count(Outcome::Passed), 1);
        assert_eq!(ours.0["a::c"], (Outcome::Failed, "no times".to_owned()));
        assert!(Verdicts::read(&OURS.replace("3 total", "4 total")).is_none());
        assert!(Verdicts::read("thread 'main' panicked").is_none());
    }

    #[test]
    fn a_difference_must_be_in_the_table_and_only_those() {
        let ours = Verdicts::read(OURS).unwrap();
        let kernels = Verdicts::read(&OURS.replace("FAILED", "ok")).unwrap();
        let found = ours.differences(&kernels);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "a::c: failed, on the kernel's mount passed: no times");
        let table = format!("{HEAD}\n|---|---|---|---|\n| a::c | failed | passed | so |\n");
        assert!(unknown_by(&table, &found).is_empty());
        assert_eq!(unknown_by(&table, &[]).len(), 1);
        assert_eq!(unknown_by("", &found).len(), 1);
        assert_eq!(unknown_by(&table.replace("| failed", "| skipped"), &found).len(), 2);
        assert_eq!(unknown_by(&table.replace("| so", "| "), &found).len(), 2);
    }
}
