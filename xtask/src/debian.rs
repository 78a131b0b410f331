//! A small Debian, of the machine's own release or another, for soaks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{shell, system};

/// Makes it in `work/root`, unless one is there from an earlier run. Needs root and the machine's
/// Debian mirror.
pub(crate) fn bootstrap(work: &Path) -> Result<PathBuf> {
    let release = fs::read_to_string("/etc/os-release").context("cannot read os-release")?;
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    bootstrap_release(work, codename.context("os-release names no release of Debian")?)
}

/// The same of another release, by its name.
pub(crate) fn bootstrap_release(work: &Path, codename: &str) -> Result<PathBuf> {
    ensure!(rustix::process::geteuid().is_root(), "debootstrap makes devices; run as root");
    system::install(system::FOR_DEBIAN)?;
    fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
    let root = work.join("root");
    if !root.join("etc/debian_version").exists() {
        let mut command = Command::new("debootstrap");
        shell::run(command.args(["--variant=minbase", codename]).arg(&root))?;
    }
    Ok(root)
}
