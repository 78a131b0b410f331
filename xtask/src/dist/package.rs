//! The forms in which a stage is handed out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use undercroft_judges::cache;

use super::Release;
use super::architecture::Architecture;
use super::stage::Stage;
use crate::{packages, shell, workspace};

/// An archive of `name` with what the stage has for all systems.
pub(super) fn archive(stage: &Stage, release: &Release, to: &Path, name: &str) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--file").arg(to).arg("--directory").arg(&stage.root);
    tar.args(["--sort=name", "--owner=root:0", "--group=root:0", "--mode=go=rX,u+rw"]);
    tar.args([
        "--format=posix",
        "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
    ]);
    tar.arg(format!("--mtime=@{}", release.epoch));
    // Names in the archive begin with that of the release; targets of links stay as they are.
    tar.arg(format!("--transform=flags=rSh;s,^,{name}/,"));
    tar.args(["--use-compress-program=zstd -19 --threads=1 --quiet", "bin", "sbin", "share"]);
    shell::run(&mut tar)
}

/// A Debian package.
pub(super) fn debian(architecture: Architecture, release: &Release, to: &Path) -> Result<()> {
    let mut command = tool("cargo-deb", release);
    command.args(["--package", "undercroft", "--no-build", "--no-strip", "--locked", "--offline"]);
    command.args(["--maintainer", &release.maintainer]);
    command.args(["--quiet", "--target", architecture.triple(), "--output"]).arg(to);
    shell::run(&mut command)
}

/// A package for systems with RPM.
pub(super) fn rpm(architecture: Architecture, release: &Release, to: &Path) -> Result<()> {
    let mut command = tool("cargo-generate-rpm", release);
    command.args(["generate-rpm", "--package", "crates/cli", "--arch", architecture.name()]);
    command.args(["--payload-compress", "zstd", "--auto-req", "disabled", "--source-date"]);
    command.arg(release.epoch.to_string());
    command.arg("--set-metadata").arg(format!("vendor = \"{}\"", release.maintainer));
    command.arg("--output").arg(to);
    shell::run(&mut command)
}

/// The list of contents, as CycloneDX has them.
pub(super) fn contents(architecture: Architecture, release: &Release, to: &Path) -> Result<()> {
    let name = "undercroft.contents";
    let mut command = tool("cargo-cyclonedx", release);
    command.args(["cyclonedx", "--manifest-path", "crates/cli/Cargo.toml", "--format", "json"]);
    command.args(["--no-build-deps", "--spec-version", "1.5", "--override-filename", name]);
    command.args(["--target", architecture.triple(), "--quiet"]);
    shell::output(&mut command)?;
    // It writes one beside each manifest of the workspace.
    let mut found = None;
    for package in packages::own()? {
        let file = package.manifest_path.with_file_name(format!("{name}.json"));
        if package.name == "undercroft" {
            found = Some(fs::read_to_string(&file)?);
        }
        match fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    let text = found.context("cargo-cyclonedx wrote no list for the command")?;
    let root = workspace::root().display().to_string();
    let text = text.replace(&root, "undercroft");
    ensure!(text.contains("\"bomFormat\""), "cargo-cyclonedx wrote no list of contents");
    fs::write(to, text).with_context(|| format!("cannot write {}", to.display()))
}

/// Digests of all files of a directory, as `sha256sum --check` reads them.
pub(super) fn sums(directory: &Path, files: &[PathBuf]) -> Result<()> {
    let names = files.iter().filter_map(|file| file.file_name());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    let mut command = Command::new("sha256sum");
    let sums = shell::output(command.current_dir(directory).arg("--").args(names))?;
    let to = directory.join("SHA256SUMS");
    fs::write(&to, sums).with_context(|| format!("cannot write {}", to.display()))
}

/// A program of `cargo install`, which takes the time of the release for the time of day.
fn tool(name: &str, release: &Release) -> Command {
    let mut command = Command::new(cache::programs().join("bin").join(name));
    command.current_dir(workspace::root()).env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    command
}
