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

use anyhow::{Context, Result};
use clap::Args;

use crate::{shell, system, workspace};
pub(crate) use architecture::Architecture;
use stage::Stage;

/// The maintainer of packages by default: the developers have no known address.
const DEVELOPERS: &str = "Undercroft developers <undercroft@localhost>";

/// Make what users install.
#[derive(Args)]
pub(crate) struct DistArguments {
    /// Only for this processor; may be given several times
    #[arg(long, value_name = "ARCHITECTURE")]
    only: Vec<Architecture>,
    /// Also with files that are not committed; nothing that is handed out is made so
    #[arg(long)]
    dirty: bool,
    /// The maintainer that packages name, with an address for mail
    #[arg(long, value_name = "NAME <ADDRESS>", value_parser = name_and_address, default_value = DEVELOPERS)]
    maintainer: String,
}

/// What is made.
struct Release {
    version: String,
    /// The time of the commit, which is that of all files.
    epoch: u64,
    /// The maintainer that packages name.
    maintainer: String,
}

impl Release {
    /// The time of the commit, as `date` prints it in this `form`.
    fn time(&self, form: &str) -> Result<String> {
        let mut date = Command::new("date");
        date.args(["--utc", &format!("--date=@{}", self.epoch), form]).env("LC_ALL", "C");
        Ok(shell::output(&mut date)?.trim().to_owned())
    }
}

/// A name and an address, in letters that no form of a package has a meaning for.
fn name_and_address(text: &str) -> Result<String, String> {
    let parts = text.strip_suffix('>').and_then(|text| text.split_once(" <"));
    let address = parts.and_then(|(_, address)| address.split_once('@'));
    let is_special = |letter: char| letter.is_control() || "<>\"\\,".contains(letter);
    let is_part = |part: &str| !part.is_empty() && !part.contains([' ', '@']);
    match (parts, address) {
        (Some((name, rest)), Some((user, host)))
            if !name.trim().is_empty()
                && is_part(user)
                && is_part(host)
                && !name.contains(is_special)
                && !rest.contains(is_special) =>
        {
            Ok(text.to_owned())
        }
        _ => {
            Err("packages want a name and an address, as `Jane Doe <jane@example.org>`".to_owned())
        }
    }
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
    let release = release(arguments)?;
    system::install_crates(system::CRATES_FOR_DIST)?;
    let directory = directory();
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let mut files = Vec::new();
    for &architecture in Architecture::chosen(&arguments.only) {
        files.extend(make(&directory, architecture, &release)?);
    }
    fs::remove_dir_all(directory.join("stage"))?;
    package::sums(&directory, &files)?;
    println!("{}: {} files and SHA256SUMS", directory.display(), files.len());
    Ok(())
}

/// The version and the time of the commit that is checked out.
fn release(arguments: &DistArguments) -> Result<Release> {
    if !arguments.dirty {
        workspace::ensure_committed(
            workspace::root(),
            "so the same could not be made again; commit them, or `--dirty`",
        )?;
    }
    let mut git = Command::new("git");
    git.current_dir(workspace::root()).args(["log", "-1", "--format=%ct"]);
    let epoch = shell::output(&mut git)?.trim().parse();
    let epoch = epoch.context("git tells no time of the commit")?;
    let maintainer = arguments.maintainer.clone();
    Ok(Release { version: env!("CARGO_PKG_VERSION").to_owned(), epoch, maintainer })
}

/// Makes all files for one processor.
fn make(directory: &Path, architecture: Architecture, release: &Release) -> Result<Vec<PathBuf>> {
    let name = name(architecture);
    let file = |end: &str| directory.join(format!("{name}{end}"));
    let (program, debug) = (file(""), file(".debug"));
    binary::build(architecture, release, &program, &debug)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hands_out_has_a_name_and_an_address() {
        for sound in [DEVELOPERS, "Jane Doe <jane@example.org>", "J. O'Neil <j+x@a-b.example>"] {
            assert_eq!(name_and_address(sound).as_deref(), Ok(sound));
        }
        for wrong in [
            "",
            "Jane Doe",
            "jane@example.org",
            " <jane@example.org>",
            "Jane Doe <jane>",
            "Jane Doe <@example.org>",
            "Jane Doe <jane@>",
            "Jane Doe <jane@example.org> ",
            "Jane Doe <jane doe@example.org>",
            "Jane Doe <jane@b@example.org>",
            "Jane \"Jay\" Doe <jane@example.org>",
            "Jane\nDoe <jane@example.org>",
            "Jane <Doe> <jane@example.org>",
        ] {
            assert!(name_and_address(wrong).is_err(), "{wrong:?}");
        }
    }
}
