//! `cargo xtask soak publish`: the crates as crates.io would get them, with the oldest compiler that
//! they promise to need, and held against an earlier release.

use std::process::Command;

use anyhow::{Result, ensure};
use clap::Args;
use undercroft_judges::cache;

use crate::{shell, system, workspace};

/// The oldest compiler, as all manifests name it.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// See what would be published.
#[derive(Args)]
pub(crate) struct PublishArguments {
    /// Also find breaks of what is public since this revision, as the tag of the last release
    #[arg(long, value_name = "REVISION")]
    since: Option<String>,
}

/// Packages and builds every crate from its package, each after those that it needs, and uploads
/// none; then checks all of the workspace with the oldest compiler, which rustup brings.
pub(crate) fn run(arguments: &PublishArguments) -> Result<()> {
    workspace::ensure_committed(
        workspace::root(),
        "crates are packaged from commits; commit them, or `git stash --include-untracked`",
    )?;
    let target = workspace::target("soak-publish");
    let mut cargo = workspace::cargo();
    cargo.args(["publish", "--workspace", "--dry-run", "--locked", "--target-dir"]).arg(&target);
    shell::run(&mut cargo)?;
    ensure!(
        shell::find("rustup").is_some(),
        "rustup is missing, which brings Rust {OLDEST}; with that compiler as `cargo`, run `cargo \
         check --workspace --all-features --locked`"
    );
    let mut rustup = Command::new("rustup");
    shell::run(rustup.args(["toolchain", "install", OLDEST, "--profile", "minimal"]))?;
    let mut oldest = Command::new("rustup");
    oldest.current_dir(workspace::root()).args(["run", OLDEST, "cargo", "check", "--workspace"]);
    // Set by the cargo that runs us.
    oldest.env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    oldest.args(["--all-features", "--locked", "--target-dir"]).arg(target.join(OLDEST));
    shell::run(&mut oldest)?;
    arguments.since.as_deref().map_or(Ok(()), breaks_since)
}

/// Fails when a crate breaks its users and its version does not say so.
fn breaks_since(revision: &str) -> Result<()> {
    system::install_crates(system::CRATES_FOR_PUBLISHING)?;
    let mut command = Command::new(cache::programs().join("bin/cargo-semver-checks"));
    command.current_dir(workspace::root());
    command.args(["semver-checks", "check-release", "--workspace", "--baseline-rev", revision]);
    shell::run(&mut command)
}
