//! Checks of the tag bitmap that are not ordinary tests: models of its protocol, those of the block
//! layer beside them, and the soak.

use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::{shell, workspace};

/// A checker that runs the crate's code on its own threads, atomics and locks: a build with a `cfg` of
/// its own, in a target directory of its own, since it changes the flags of every crate.
struct Checker {
    name: &'static str,
    /// The subject of the models.
    subject: &'static str,
    package: &'static str,
    /// Which target of the package has the models.
    target: &'static [&'static str],
    /// Arguments of the test program, ahead of those for a longer run.
    arguments: &'static [&'static str],
}

/// All interleavings of small cases.
const LOOM: Checker = Checker {
    name: "loom",
    subject: "the tag bitmap",
    package: "undercroft-tags",
    target: &["--test", "loom"],
    arguments: &[],
};
/// The same for how threads of the block layer sleep, enter, and hand over.
const BLOCK: Checker = Checker {
    name: "loom",
    subject: "the block layer",
    package: "undercroft-block",
    target: &["--lib"],
    arguments: &["models::"],
};
/// Random interleavings of larger ones. Shared writes are counted for the whole process, so tests
/// run one after the other.
const SHUTTLE: Checker = Checker {
    name: "shuttle",
    subject: "the tag bitmap",
    package: "undercroft-tags",
    target: &["--test", "shuttle"],
    arguments: &["--test-threads=1"],
};

impl Checker {
    fn command(&self) -> Command {
        let mut command = workspace::cargo();
        command.args(["test", "--profile", "model", "--package", self.package]);
        command.args(self.target).arg("--").args(self.arguments);
        let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
        command.env("RUSTFLAGS", format!("{flags} --cfg {}", self.name).trim_start());
        command.env("CARGO_TARGET_DIR", workspace::target(self.name));
        command
    }
}

/// Runs the models that are quick enough for every change.
pub(crate) fn check_models(see: &mut impl FnMut(&str)) -> Result<()> {
    for checker in [LOOM, SHUTTLE, BLOCK] {
        shell::run_through(&mut checker.command(), &mut *see)
            .with_context(|| format!("the {} models of {} fail", checker.name, checker.subject))?;
    }
    Ok(())
}

/// Run larger models.
#[derive(Args)]
pub(crate) struct ModelsArguments {
    /// How many times as many random interleavings as in `cargo xtask test`
    #[arg(long, default_value_t = 100)]
    times: u32,
}

/// Runs the models that take long: deeper cases under loom, more interleavings under shuttle.
pub(crate) fn soak_models(arguments: &ModelsArguments) -> Result<()> {
    let mut loom = LOOM.command();
    shell::run(loom.args(["--ignored", "--skip", "sabotage"]))?;
    let mut shuttle = SHUTTLE.command();
    shell::run(shuttle.env("UNDERCROFT_EXECUTIONS", arguments.times.to_string()))
}

/// Work on random sets with more threads than processors.
#[derive(Args)]
pub(crate) struct TagsArguments {
    /// Gets, puts and refusals in all
    #[arg(long, default_value_t = 1_000_000_000)]
    operations: u64,
    /// Seed of the choices; threads interleave as they like
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Fails when a waiter sleeps while tags stay free, or when a tag has two holders.
pub(crate) fn soak(arguments: &TagsArguments) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["run", "--release", "--package", "undercroft-tags", "--example", "soak_tags"]);
    command.args(["--", &arguments.operations.to_string(), &arguments.seed.to_string()]);
    shell::run(&mut command)
}
