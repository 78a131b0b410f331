//! Whole commands on network disks, beside the same on a file of this machine: `build` onto an export,
//! and `extract` and `ls -lR` from servers that take a millisecond for each request.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use undercroft_judges::nbd::NbdServer;

use crate::bench::comparison::{Comparison, Unit};
use crate::bench::live::timed;
use crate::bench::source::Source;
use crate::bench::turns::in_turn;
use crate::{newest, shell, workspace};

/// Bytes of the volumes: room for the tree. The files have holes.
const VOLUME: u64 = 4 << 30;

/// Takes turns in every round, of which the first does not count. `home` is where the files are.
pub(super) fn commands(home: &Path, runs: usize) -> Result<Vec<Comparison>> {
    let source = Source::linux()?;
    let local = home.join("local").display().to_string();
    let mut all = vec![builds(home, &source, &local, runs)?];
    all.extend(reads(&source, &local, runs)?);
    Ok(all)
}

/// `build`, at last into the file `local`.
fn builds(home: &Path, source: &Source, local: &str, runs: usize) -> Result<Comparison> {
    let newest = newest::install(false)?;
    let [own, other] = ["own", "other"].map(|name| home.join(name));
    fresh(&own)?;
    fresh(&other)?;
    let [own_path, other_path] = [&own, &other].map(|path| path.display().to_string());
    let own_server = NbdServer::undercroft(&program(), &["--name", "disk", &own_path])?;
    let other_server = NbdServer::nbdkit(&["file", &other_path])?;
    let size = VOLUME.to_string();
    let build = |target: &str| -> Result<f64> {
        let mut build = undercroft(&["build", "--force", "--size", &size]);
        build.arg(&source.directory).arg(target);
        timed(|| shell::output(&mut build).map(drop))
    };
    let programs = ["onto our export", "onto nbdkit file", "local file"];
    let mut built = Comparison::new(format!("build of {}", source.name), Unit::Seconds, programs);
    for round in 0..=runs {
        fresh(&own)?;
        fresh(&other)?;
        let targets = [own_server.uri("disk", &[]), other_server.uri("", &[]), local.to_owned()];
        let turns = in_turn(targets.len(), |target| build(&targets[target]))?;
        eprintln!("round {round}: build {turns:.2?} s");
        if round > 0 {
            built.add(turns);
        }
    }
    drop((own_server, other_server));
    newest.repair_check(&own).context("what was built onto our export is not clean")?;
    newest.repair_check(&other).context("what was built onto nbdkit's export is not clean")?;
    Ok(built)
}

/// `extract` and `ls -lR` of the volume `local`.
fn reads(source: &Source, local: &str, runs: usize) -> Result<Vec<Comparison>> {
    let late = format!("delay:1ms({local})");
    let own = NbdServer::undercroft(&program(), &["--read-only", "--name", "late", &late])?;
    let other = NbdServer::nbdkit(&["--filter=delay", "file", local, "rdelay=1ms"])?;
    let mut all = Vec::new();
    for (name, front, back) in
        [("extract", &["extract"][..], &["-"][..]), ("ls -lR", &["ls", "-lR"], &[])]
    {
        let programs = ["our server, 1 ms", "nbdkit, 1 ms", "local file"];
        let mut read =
            Comparison::new(format!("{name} of {}", source.name), Unit::Seconds, programs);
        for round in 0..=runs {
            let turn = |image: &str| {
                let mut command = undercroft(front);
                command.arg(image).args(back).stdout(Stdio::null()).stderr(Stdio::null());
                timed(|| shell::run(&mut command))
            };
            let images = [own.uri("late", &[]), other.uri("", &[]), local.to_owned()];
            let turns = in_turn(images.len(), |image| turn(&images[image]))?;
            eprintln!("round {round}: {name} {turns:.2?} s");
            if round > 0 {
                read.add(turns);
            }
        }
        all.push(read);
    }
    Ok(all)
}

fn program() -> PathBuf {
    workspace::target("release/undercroft")
}

fn undercroft(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments);
    command
}

/// Makes a file one hole, also for a server that has it open.
fn fresh(path: &Path) -> Result<()> {
    let file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .open(path)
        .and_then(|file| file.set_len(VOLUME));
    file.with_context(|| format!("cannot make {}", path.display()))
}
