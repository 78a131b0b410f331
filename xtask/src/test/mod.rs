//! `cargo xtask test`: set-up, then every check, each a step that can be run alone.

mod circles;
mod clock;
mod counts;
mod layers;
mod licences;
mod modules;
mod programs;
mod scratch;
mod sentences;
mod tidy;

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use undercroft_judges::{kernel, rounds};

use crate::{book, citations, newest, public, shell, system, tags, workspace};
use counts::Counts;

/// One check. The order is that of the run: the quick ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Install missing packages and set up the newest xfsprogs
    Setup,
    /// Formatting
    Fmt,
    /// Size, traces of work, neatness and sentences of the files in the repository; ways of imports; citations
    Tidy,
    /// Lints; crates without their default features
    Clippy,
    /// Documentation and its links; lists of public items
    Docs,
    /// Licences and origins of dependencies; the lock file of the fuzz targets
    Licences,
    /// All tests
    Tests,
    /// The book and its links
    Book,
    /// Models of tags and block layer: every interleaving of small cases, many of larger ones
    Models,
}

/// Crates that can do with less than their features without a choice.
const WITH_DEFAULT_FEATURES: [&str; 4] =
    ["undercroft-source", "undercroft-image", "undercroft-lab", "undercroft"];

impl Step {
    /// The name on the command line.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    fn run(self, counts: &mut Counts) -> Result<()> {
        match self {
            Self::Setup => set_up(),
            Self::Fmt => shell::run(workspace::cargo().args(["fmt", "--all", "--check"])),
            Self::Tidy => {
                tidy::check(workspace::root())?;
                layers::check(workspace::root())?;
                citations::check(workspace::root())
            }
            Self::Clippy => {
                let all = ["clippy", "--workspace", "--all-targets", "--all-features"];
                shell::run(workspace::cargo().args(all).args(["--", "-D", "warnings"]))?;
                let mut less = workspace::cargo();
                less.args(["clippy", "--no-default-features"]);
                less.args(WITH_DEFAULT_FEATURES.map(|name| format!("--package={name}")));
                shell::run(less.args(["--", "-D", "warnings"]))
            }
            Self::Docs => {
                public::write_documentation()?;
                public::check()
            }
            Self::Licences => licences::check(),
            Self::Tests => tests(counts, None),
            Self::Book => book::make().map(drop),
            Self::Models => tags::check_models(&mut |line| counts.line(line)),
        }
    }
}

/// Runs the steps in `only`, or all of them; every step runs even when one before it failed, except
/// that nothing runs without the set-up.
pub(crate) fn run(only: &[Step]) -> Result<()> {
    let all = Watch::start();
    let mut counts = Counts::default();
    let (mut failed, mut times) = (Vec::new(), Vec::new());
    for step in Step::value_variants().iter().copied() {
        if !only.is_empty() && !only.contains(&step) {
            continue;
        }
        let name = step.name();
        println!("==> {name}");
        let watch = Watch::start();
        let result = step.run(&mut counts);
        times.push(format!("{name} {watch}"));
        match result {
            Ok(()) => println!("==> {name}: ok, {watch}"),
            Err(error) => {
                println!("==> {name}: FAILED, {watch}: {error:#}");
                failed.push(name);
                if step == Step::Setup {
                    break;
                }
            }
        }
    }
    if !counts.times.is_empty() {
        println!("==> the slowest tests:\n{}", counts.slowest().trim_end());
    }
    println!("==> {}", times.join("; "));
    println!("==> {counts}total {all}");
    if failed.is_empty() {
        return Ok(());
    }
    let rerun: Vec<String> = failed.iter().map(|name| format!(" --only {name}")).collect();
    bail!("failed: {}; run again with `cargo xtask test{}`", failed.join(", "), rerun.concat())
}

/// The time of a step, and that of processors, which tells what it costs on a machine with other work.
struct Watch {
    started: Instant,
    worked: Duration,
}

impl Watch {
    fn start() -> Self {
        Self { started: Instant::now(), worked: worked() }
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, worked) = (self.started.elapsed(), worked().saturating_sub(self.worked));
        write!(formatter, "{:.1} s", passed.as_secs_f64())?;
        write!(formatter, " ({:.1} s of processors)", worked.as_secs_f64())
    }
}

/// The time that programs took which we started and which have ended.
fn worked() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Duration::ZERO };
    let time = |value: TimeVal| Duration::from_micros(value.num_microseconds().unsigned_abs());
    time(usage.user_time()) + time(usage.system_time())
}

fn set_up() -> Result<()> {
    system::install(system::FOR_TESTS)?;
    system::install_crates(system::CRATES_FOR_TESTS)?;
    system::install_from_pypi(system::FROM_PYPI_FOR_TESTS)?;
    for component in ["rustfmt", "clippy"] {
        let program = if component == "clippy" { "cargo-clippy" } else { "cargo-fmt" };
        if shell::find(program).is_none() {
            shell::run(std::process::Command::new("rustup").args(["component", "add", component]))
                .with_context(|| format!("the Rust component {component} is missing"))?;
        }
    }
    newest::install_composefs(false)?;
    let tools = newest::install(false)?;
    let (major, minor) = tools.version();
    println!("newest xfsprogs: {major}.{minor}");
    Ok(())
}

/// Runs all tests with as many rounds as a soak has.
pub(crate) fn soak() -> Result<()> {
    set_up()?;
    let mut counts = Counts::default();
    let result = tests(&mut counts, Some("1"));
    println!("==> the slowest tests:\n{}\n==> {counts}", counts.slowest().trim_end());
    result
}

/// Runs all tests of the workspace, documentation tests among them, and reports those that could
/// not run for want of a kernel. `soak` is what makes them repeat more often.
fn tests(counts: &mut Counts, soak: Option<&str>) -> Result<()> {
    let record = workspace::target("tests-not-run");
    if record.exists() {
        fs::remove_file(&record).with_context(|| format!("cannot remove {}", record.display()))?;
    }
    let scratch = scratch::Scratch::new();
    let mut environment = vec![(kernel::RECORD_VARIABLE, record.as_path())];
    if let Some(scratch) = &scratch {
        println!("files of tests are in {}", scratch.path().display());
        environment.push(("TMPDIR", scratch.path()));
    }
    environment.extend(soak.map(|value| (rounds::SOAK_VARIABLE, Path::new(value))));
    // A test that hangs must be named; only a soak has tests of hours.
    let limit = Duration::from_secs(if soak.is_some() { 86_400 } else { 1_500 });
    let ran = programs::run(&environment, limit, counts);
    let mut documented = workspace::cargo();
    documented.args(["test", "--workspace", "--all-features", "--no-fail-fast", "--doc"]);
    documented.envs(environment);
    // What a program says that was built without decoders.
    let mut less = workspace::cargo();
    less.args(["test", "--package", "undercroft-source", "--no-default-features", "--lib"]);
    let passed = [
        ran,
        shell::run_through(&mut documented, |line| counts.line(line)),
        shell::run_through(&mut less, |line| counts.line(line)),
    ];
    counts.not_run = fs::read_to_string(&record)
        .map_or_else(|_| Vec::new(), |text| text.lines().map(str::to_owned).collect());
    for test in &counts.not_run {
        println!("not run: {test}");
    }
    passed.into_iter().collect::<Result<()>>()?;
    if counts.passed == 0 {
        bail!("no test ran");
    }
    if workspace::in_ci() && !counts.not_run.is_empty() {
        bail!("{} tests did not run", counts.not_run.len());
    }
    Ok(())
}
