//! The static binary: the same bytes in every directory, without debug information, which lies
//! beside it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Release;
use super::architecture::Architecture;
use crate::{shell, workspace};

/// Most bytes of the binary, so that growth is noticed.
const LARGEST: u64 = 11_000_000;

/// Compiles the command and writes `stripped`, and `debug` with what a debugger wants.
pub(super) fn build(
    architecture: Architecture,
    release: &Release,
    stripped: &Path,
    debug: &Path,
) -> Result<()> {
    architecture.prepare()?;
    let mut cargo = architecture.cargo_build()?;
    cargo.args(["--profile", "distribution", "--locked", "--package", "undercroft"]);
    let paths = paths()?;
    // Paths of this machine, as they are in messages of panics and in debug information.
    let mut flags: Vec<OsString> = paths.iter().map(|(path, name)| remapped(path, name)).collect();
    flags.push("-Clink-arg=-Wl,--build-id=sha1".into());
    flags.extend(architecture.link_flags()?);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join(&OsString::from("\x1f")));
    let c_flags = c_flags(&paths, release)?;
    cargo.env(format!("CFLAGS_{}", architecture.variable()), c_flags.join(" "));
    shell::run(&mut cargo)?;
    let built = workspace::target(architecture.triple()).join("distribution/undercroft");
    split(architecture, &built, stripped, debug)?;
    let size = fs::metadata(stripped)?.len();
    ensure!(size <= LARGEST, "{} has {size} bytes; {LARGEST} are allowed", stripped.display());
    println!("{}: {size} bytes", stripped.display());
    Ok(())
}

/// Options for compilers of C, none of which has a space: they are told in one variable.
fn c_flags(paths: &[(PathBuf, &'static str)], release: &Release) -> Result<Vec<String>> {
    let mut flags: Vec<String> = paths
        .iter()
        .map(|(path, name)| format!("-ffile-prefix-map={}={name}", path.display()))
        .collect();
    // No panic goes through C; debuggers have tables of their own, beside the binary.
    flags.push("-fno-asynchronous-unwind-tables".to_owned());
    // mimalloc prints the time of its compilation. SOURCE_DATE_EPOCH would do for compilers, but
    // zig keeps objects, and does not ask whether they were compiled with another.
    flags.push("-Wno-builtin-macro-redefined".to_owned());
    flags.push(format!("-D__DATE__=\"{}\"", release.time("+%F")?));
    flags.push(format!("-D__TIME__=\"{}\"", release.time("+%T")?));
    Ok(flags)
}

/// Directories whose names are of this machine, and the names that stand for them; a later one
/// may lie in an earlier one.
fn paths() -> Result<Vec<(PathBuf, &'static str)>> {
    let home = std::env::home_dir().context("no home directory is set")?;
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let registry = cargo.join("registry/src");
    let root = workspace::root().to_owned();
    Ok(vec![
        (home, "home"),
        (registry, "registry"),
        (root, "undercroft"),
        (workspace::target(""), "target"),
    ])
}

fn remapped(path: &Path, name: &str) -> OsString {
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(path);
    flag.push("=");
    flag.push(name);
    flag
}

/// Divides a binary in what runs and what a debugger wants.
fn split(architecture: Architecture, built: &Path, stripped: &Path, debug: &Path) -> Result<()> {
    let objcopy = || Command::new(architecture.objcopy());
    let section = ["--compress-debug-sections", "--only-keep-debug"];
    shell::run(objcopy().args(section).arg(built).arg(debug))?;
    let mut strip = objcopy();
    strip.arg("--strip-all").arg("--remove-section=.comment");
    let mut link = OsString::from("--add-gnu-debuglink=");
    link.push(debug);
    shell::run(strip.arg(link).arg(built).arg(stripped))
}
