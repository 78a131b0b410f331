//! `cargo xtask dist`: what users install, made so that the same commit gives the same bytes in
//! every directory.

mod architecture;
mod binary;
mod licences;
mod package;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{shell, system, workspace};
pub(crate) use architecture::Architecture;
use stage::Stage;

/// Make what users install.
#[derive(Args)]
pub(crate) struct DistArguments {
    /// Only for this processor; may be given several times
    #[arg(long, value_name = "ARCHITECTURE")]
    only: Vec<Architecture>,
    /// Also with files that are not committed; nothing that is handed out is made so
    #[arg(long)]
    dirty: bool,
}

/// What is made.
struct Release {
    version: String,
    /// The time of the commit, which is that of all files.
    epoch: u64,
}

/// Where the files lie, in all target directories of cargo: manifests name it.
pub(crate) fn directory() -> PathBuf {
    workspace::root().join("target/dist")
}

/// The first part of names of files.
pub(crate) fn name(architecture: Architecture) -> String {
    format!("undercroft-{}-{}-linux", env!("CARGO_PKG_VERSION"), architecture.name())
}

pub(crate) fn run(arguments: &DistArguments) -> Result<()> {
    system::install(system::FOR_DIST)?;
    system::install_crates(system::CRATES_FOR_DIST)?;
    let release = release(arguments.dirty)?;
    let directory = directory();
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let chosen = if arguments.only.is_empty() { &Architecture::ALL[..] } else { &arguments.only };
    let mut files = Vec::new();
    for &architecture in chosen {
        files.extend(make(&directory, architecture, &release)?);
    }
    fs::remove_dir_all(directory.join("stage"))?;
    package::sums(&directory, &files)?;
    println!("{}: {} files and SHA256SUMS", directory.display(), files.len());
    Ok(())
}

/// The version and the time of the commit that is checked out.
fn release(dirty: bool) -> Result<Release> {
    let git = |arguments: &[&str]| {
        shell::output(Command::new("git").current_dir(workspace::root()).args(arguments))
    };
    let changed = git(&["status", "--porcelain"])?;
    ensure!(
        dirty || changed.is_empty(),
        "not all is committed, so the same could not be made again; commit, or `--dirty`:\n{changed}"
    );
    let epoch = git(&["log", "-1", "--format=%ct"])?.trim().parse();
    let epoch = epoch.context("git tells no time of the commit")?;
    Ok(Release { version: env!("CARGO_PKG_VERSION").to_owned(), epoch })
}

/// Makes all files for one processor.
fn make(directory: &Path, architecture: Architecture, release: &Release) -> Result<Vec<PathBuf>> {
    let name = name(architecture);
    let file = |end: &str| directory.join(format!("{name}{end}"));
    let (program, debug) = (file(""), file(".debug"));
    binary::build(architecture, &program, &debug)?;
    let prints = printer(directory)?;
    let stage = Stage::make(directory.join("stage"), &prints, release)?;
    stage.put(&program, &licences::text(architecture)?)?;
    let [archive, deb, rpm, contents] = [".tar.zst", ".deb", ".rpm", ".cdx.json"].map(file);
    package::archive(&stage, release, &archive, &name)?;
    package::debian(architecture, release, &deb)?;
    package::rpm(architecture, release, &rpm)?;
    package::contents(architecture, release, &contents)?;
    Ok(vec![program, debug, archive, deb, rpm, contents])
}

/// A program that runs here and prints pages and completions, which are the same for all processors:
/// the one that was made for this, if there is one.
fn printer(directory: &Path) -> Result<PathBuf> {
    let own = Architecture::ALL.into_iter().find(|one| one.name() == std::env::consts::ARCH);
    if let Some(program) = own.map(|own| directory.join(name(own))).filter(|path| path.exists()) {
        return Ok(program);
    }
    let mut cargo = workspace::cargo();
    shell::run(cargo.args(["build", "--quiet", "--locked", "--package", "undercroft"]))?;
    Ok(workspace::target("debug/undercroft"))
}
