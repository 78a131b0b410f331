//! Licences and origins of all dependencies, judged by cargo-deny after the rules in `deny.toml`;
//! whether the fuzz targets lock the same ones.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{shell, workspace};

/// The version line that `deny.toml` is written for.
const VERSION: &str = "^0.20";

/// Checks the dependency tree, after building cargo-deny in the target directory when it is not
/// installed. Advisories are left out: they change without a change here.
pub(super) fn check() -> Result<()> {
    check_fuzz_lock()?;
    let tools = workspace::target("tools");
    let own = tools.join("bin/cargo-deny");
    let program = match shell::find("cargo-deny") {
        Some(program) => program,
        None if own.is_file() => own,
        None => {
            println!("building cargo-deny, once; this takes a few minutes");
            let mut command = workspace::cargo();
            // Its own build is not worth optimising: it runs for a second.
            command.args(["install", "cargo-deny", "--quiet", "--locked", "--debug"]);
            command.args(["--version", VERSION, "--root"]).arg(&tools);
            shell::run(&mut command).context("cannot build cargo-deny")?;
            own
        }
    };
    let mut command = Command::new(program);
    command.current_dir(workspace::root());
    shell::run(command.args(["check", "licenses", "bans", "sources"]))
}

/// Checks that the lock file of the fuzz targets, which are not part of the workspace and which no
/// other check builds, follows the dependencies.
fn check_fuzz_lock() -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["tree", "--locked", "--depth", "0", "--manifest-path", "fuzz/Cargo.toml"]);
    shell::run(&mut command).context(
        "fuzz/Cargo.lock is old; `cargo tree --manifest-path fuzz/Cargo.toml` brings it up to date",
    )
}
