//! Long runs of what the tests do a little of.

use anyhow::Result;
use clap::Args;

use crate::{shell, workspace};

/// How long to soak.
#[derive(Args)]
pub(crate) struct SoakArguments {
    /// Number of random cases
    #[arg(long, default_value_t = 300)]
    count: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 1000)]
    seed: u64,
}

/// Builds random trees in random formats and has the judges look at each; needs root.
pub(crate) fn build(arguments: &SoakArguments) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--release", "--package", "undercroft-image", "--example", "soak_build"]);
    cargo.args(["--", &arguments.count.to_string(), &arguments.seed.to_string()]);
    shell::run(&mut cargo)
}
