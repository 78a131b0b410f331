//! `cargo xtask soak fstests`: xfstests, the suite of Linux' file systems, on mounts of ours.
//!
//! The suite is licensed under the GPL: a checkout that the caller has is run, and nothing of it is here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use undercroft_judges::kernel;
use undercroft_judges::suite::ends;

use crate::{newest, shell};

/// Run xfstests on mounts.
#[derive(Args)]
pub(crate) struct FstestsArguments {
    /// A checkout of xfstests, built
    #[arg(long, value_name = "DIR")]
    source: PathBuf,
    /// Only this test, such as generic/003; may be given several times
    #[arg(long, value_name = "TEST")]
    only: Vec<String>,
    /// The tests of this group
    #[arg(long, default_value = "quick")]
    group: String,
}

/// Prepares a mount name space, and runs one test there.
const STAGE: &str = include_str!("fstests/stage.sh");

/// A line for each test that need not pass: its name, how it may end, and why.
const EXPECTED: &str = include_str!("fstests/expected.txt");

/// Bytes of a volume.
const SIZE: &str = "4G";

/// Seconds that a test may take.
const LIMIT: u64 = 900;

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// It says that it cannot run here.
    Skipped,
}

/// Runs each test on two fresh volumes, and has our check and the newest `xfs_repair` look at both then.
/// Fails if anything is found there, or if a test ends in another way than is expected.
pub(crate) fn fstests(arguments: &FstestsArguments) -> Result<()> {
    if let Some(obstacle) = kernel::fuse_obstacle() {
        bail!("{obstacle}");
    }
    let source = &arguments.source;
    let source =
        source.canonicalize().with_context(|| format!("there is no {}", source.display()))?;
    ensure!(
        source.join("check").exists() && source.join("ltp/fsstress").exists(),
        "{} is no checkout of xfstests that is built; its README names the packages that it needs, then: \
         make -C {}",
        source.display(),
        source.display()
    );
    newest::install(false)?;
    let expected = expected()?;
    let tests = if arguments.only.is_empty() {
        group(&source, &arguments.group)?
    } else {
        arguments.only.clone()
    };
    let stage = Stage::new(super::mount::build()?, source)?;
    let mut surprises = Vec::new();
    let mut counts = [0; 3];
    for test in &tests {
        let failed = |error| (Outcome::Failed, format!("{error:#}"));
        let (outcome, told) = stage.run(test).unwrap_or_else(failed);
        counts[outcome as usize] += 1;
        let (wanted, why) = expected.get(test.as_str()).copied().unwrap_or((Outcome::PASSED, ""));
        if wanted.split(',').any(|word| word == outcome.word()) {
            println!("{test}: {} {why}", outcome.word());
        } else {
            println!("{test}: {}, not {wanted}\n{told}", outcome.word());
            surprises.push(test.as_str());
        }
        if let Err(error) = stage.judge() {
            println!("{test}: a volume is not sound: {error:#}");
            surprises.push(test.as_str());
        }
    }
    println!("{} passed, {} failed, {} skipped", counts[0], counts[1], counts[2]);
    ensure!(surprises.is_empty(), "not as expected: {}", surprises.join(", "));
    Ok(())
}

impl Outcome {
    /// The word for it.
    const PASSED: &'static str = "passes";
    const FAILED: &'static str = "fails";
    const SKIPPED: &'static str = "skips";

    fn word(self) -> &'static str {
        match self {
            Self::Passed => Self::PASSED,
            Self::Failed => Self::FAILED,
            Self::Skipped => Self::SKIPPED,
        }
    }

    /// From what the suite prints at its end.
    fn of(told: &str) -> Self {
        let says = |word: &str| told.lines().any(|line| line.starts_with(word));
        if says("Failures:") || !says("Passed all") {
            Self::Failed
        } else if says("Not run:") {
            Self::Skipped
        } else {
            Self::Passed
        }
    }
}

/// How tests may end, and why, by name.
fn expected() -> Result<BTreeMap<&'static str, (&'static str, &'static str)>> {
    let known = [Outcome::PASSED, Outcome::FAILED, Outcome::SKIPPED];
    let lines = EXPECTED.lines().filter(|line| !line.starts_with('#'));
    let parse = |line: &'static str| {
        let (test, rest) = line.split_once(' ')?;
        let (outcomes, why) = rest.split_once(' ')?;
        outcomes.split(',').all(|word| known.contains(&word)).then_some((test, (outcomes, why)))
    };
    lines
        .map(|line| {
            parse(line).with_context(|| format!("not a test, how it may end, and why: {line}"))
        })
        .collect()
}

/// The tests of a group, as the suite's own list of the generic ones has them.
fn group(source: &Path, group: &str) -> Result<Vec<String>> {
    let list = source.join("tests/generic/group.list");
    let text =
        fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let tests: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let test = words.next()?;
            words.any(|word| word == group).then(|| format!("generic/{test}"))
        })
        .collect();
    ensure!(!tests.is_empty(), "{} has no tests of the group {group}", list.display());
    Ok(tests)
}

/// The two volumes, and what a test is run with.
struct Stage {
    home: tempfile::TempDir,
    program: PathBuf,
    source: PathBuf,
}

impl Stage {
    fn new(program: PathBuf, source: PathBuf) -> Result<Self> {
        let home = tempfile::tempdir().context("no room for temporary files")?;
        fs::write(home.path().join("stage.sh"), STAGE)?;
        Ok(Self { home, program, source })
    }

    fn images(&self) -> [PathBuf; 2] {
        ["test", "scratch"].map(|name| self.home.path().join(name))
    }

    /// Runs a test on fresh volumes; returns what it printed, too.
    fn run(&self, test: &str) -> Result<(Outcome, String)> {
        for image in self.images() {
            let mut mkfs = Command::new(&self.program);
            shell::output(mkfs.args(["mkfs", "--force", "--size", SIZE]).arg(image))?;
        }
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private", "sh"]);
        unshare.arg(self.home.path().join("stage.sh"));
        unshare.env("STAGE", self.home.path()).env("SOURCE", &self.source);
        unshare.env("UNDERCROFT", &self.program).env("TEST", test).env("LIMIT", LIMIT.to_string());
        let told = shell::output(&mut unshare)?;
        Ok((Outcome::of(&told), told))
    }

    /// Has all judges look at both volumes.
    fn judge(&self) -> Result<()> {
        self.images().iter().try_for_each(|image| Ok(ends::check(&self.program, image)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_has_a_reason() {
        for (test, (outcomes, why)) in expected().unwrap() {
            let has_number =
                test.strip_prefix("generic/").is_some_and(|number| number.parse::<u32>().is_ok());
            assert!(has_number && outcomes != Outcome::PASSED && !why.is_empty(), "{test}");
        }
    }

    #[test]
    fn outcomes_are_read() {
        assert_eq!(Outcome::of("Ran: generic/001\nPassed all 1 tests\n"), Outcome::Passed);
        assert_eq!(Outcome::of("Failures: generic/001\nFailed 1 of 1 tests\n"), Outcome::Failed);
        let skipped = "Ran: generic/009\nNot run: generic/009\nPassed all 1 tests\n";
        assert_eq!(Outcome::of(skipped), Outcome::Skipped);
        assert_eq!(Outcome::of("./check: killed\n"), Outcome::Failed);
    }
}
