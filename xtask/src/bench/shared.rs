//! `cargo xtask bench reflink`: data that is shared with the source against `cat` of the same bytes
//! into one file, on an XFS of the kernel in a loop mount.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use undercroft_judges::LoopMount;
use undercroft_judges::mount::Access;

use super::comparison::{Comparison, Unit};
use super::live::{prepare, remove, timed};
use super::source::Source;
use crate::{shell, workspace};

/// Files of the Linux tree from this length on are shared.
const LARGE: &str = "+65535c";

/// Measure shared blocks.
#[derive(Args)]
pub(crate) struct ReflinkArguments {
    /// Number of counted rounds
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// GiB of the files that stand for disks
    #[arg(long, default_value_t = 10)]
    gib: u64,
    /// Where the volume is; a directory with room for the files three times
    #[arg(long)]
    work: Option<PathBuf>,
}

/// Takes turns with `cat`: the large files of the Linux tree, then a directory of large files.
pub(super) fn reflink(arguments: &ReflinkArguments) -> Result<Vec<Comparison>> {
    ensure!(arguments.runs > 0 && arguments.gib > 0, "--runs and --gib must be at least 1");
    let (work, newest) = prepare(arguments.work.as_ref())?;
    let linux = Source::linux()?;
    let volume = work.join("reflink.xfs");
    // Sparse; room for all files three times.
    newest.mkfs(&volume, (3 * arguments.gib + 8) << 30, &["-f"])?;
    let mount = LoopMount::new(&volume, Access::ReadWrite, &[])?;
    let (large, disks) = (mount.join("linux"), mount.join("disks"));
    fs::create_dir(&large)?;
    let mut copy = Command::new("sh");
    copy.current_dir(&linux.directory);
    copy.args([
        "-ec",
        "find . -type f -size \"$0\" -print0 | xargs -0 cp --parents -t \"$1\"",
        LARGE,
    ]);
    shell::run(copy.arg(&large))?;
    make_disks(&disks, arguments.gib)?;
    let mut comparisons = Vec::new();
    for (name, tree) in [("large files of the Linux tree", &large), ("files of 1 GiB", &disks)] {
        comparisons.push(compare(name, tree, &mount, arguments.runs)?);
    }
    newest.repair_check(&mount.join("image")).context("our own image is not clean")?;
    mount.unmount()?;
    remove(&volume)?;
    Ok(comparisons)
}

/// Files of 1 GiB without a hole.
fn make_disks(directory: &Path, gib: u64) -> Result<()> {
    fs::create_dir(directory)?;
    let mut piece: Vec<u8> =
        (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect();
    for number in 0..gib {
        let mut file = File::create(directory.join(format!("disk-{number}")))?;
        for part in 0..1024_u64 {
            piece[..8].copy_from_slice(&(number << 32 | part).to_le_bytes());
            file.write_all(&piece)?;
        }
    }
    Ok(())
}

fn compare(name: &str, tree: &Path, mount: &LoopMount, runs: usize) -> Result<Comparison> {
    let (image, joined) = (mount.join("image"), mount.join("joined"));
    let mut comparison = Comparison::new(name, Unit::Seconds, ["build --reflink", "cat"]);
    for round in 0..=runs {
        for output in [&image, &joined] {
            if output.exists() {
                fs::remove_file(output)?;
            }
        }
        rustix::fs::sync();
        let mut cat = Command::new("sh");
        // Appended: to a file of its own `cat` shares blocks itself, where they happen to be aligned.
        cat.args(["-ec", "find \"$0\" -type f -print0 | sort -z | xargs -0 cat >> \"$1\""]);
        cat.arg(tree).arg(&joined);
        let peer = timed(|| shell::run(&mut cat))?;
        rustix::fs::sync();
        let mut build = Command::new(workspace::target("release/undercroft"));
        build.args(["build", "--json", "--reflink=always"]).arg(tree).arg(&image);
        let mut report = String::new();
        let own = timed(|| {
            report = shell::output(&mut build)?;
            Ok(())
        })?;
        if round == 0 {
            let report: serde_json::Value = serde_json::from_str(report.trim())?;
            let number = |key: &str| report[key].as_u64().unwrap_or(0);
            eprintln!(
                "{name}: {} files, {} MB, of which {} MB shared",
                number("files"),
                number("bytes") / 1_000_000,
                number("shared_bytes") / 1_000_000
            );
            continue;
        }
        eprintln!("  round {round}: cat {peer:.3} s, undercroft {own:.3} s");
        comparison.add([own, peer]);
    }
    Ok(comparison)
}
