//! `cargo xtask bench shrink`: a volume of 50 GB with the Linux tree made as small as can be, against
//! the ways there were: a dump restored to a smaller volume, and a new volume made of the tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs};

use super::comparison::{Comparison, Unit};
use super::live::{prepare, remove, timed};
use super::source::Source;
use crate::{shell, system, workspace};

/// Bytes of the new volumes of the peers: room for the tree and no more.
const SMALL: u64 = 3 << 30;

/// Measure volumes made smaller.
#[derive(Args)]
pub(crate) struct ShrinkArguments {
    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// GiB of the volume, a file with holes
    #[arg(long, default_value_t = 50)]
    gib: u64,
    /// Where the volumes are; a directory with room for the tree four times
    #[arg(long)]
    work: Option<PathBuf>,
}

/// Takes turns: ours on a copy of the volume, and each peer from the volume as the kernel mounts it.
/// All results are judged.
pub(super) fn shrink(arguments: &ShrinkArguments) -> Result<Vec<Comparison>> {
    ensure!(arguments.runs > 0, "--runs must be at least 1");
    let (work, newest) = prepare(arguments.work.as_ref())?;
    system::install(system::FOR_DUMPS)?;
    let base = work.join("large");
    newest.mkfs(&base, arguments.gib << 30, &["-f"])?;
    fill(&base)?;
    let work_done = format!("the Linux tree in {} GiB, to the smallest", arguments.gib);
    let programs = ["undercroft shrink", "xfsdump and xfsrestore", "mkfs.xfs -p"];
    let mut comparison = Comparison::new(work_done, Unit::Seconds, programs);
    for round in 1..=arguments.runs {
        let own = ours(&base, &work, &newest)?;
        let dump = made(&base, &work, &newest, |from, image| dump(&newest, from, image))?;
        let tree = made(&base, &work, &newest, |from, image| tree(&newest, from, image))?;
        eprintln!(
            "round {round}: undercroft {own:.2} s, xfsdump {dump:.2} s, mkfs.xfs -p {tree:.2} s"
        );
        comparison.add([own, dump, tree]);
    }
    remove(&base)?;
    Ok(vec![comparison])
}

/// Has the kernel unpack the tree, which spreads it over all groups.
fn fill(image: &Path) -> Result<()> {
    let linux = Source::linux()?;
    let mount = LoopMount::new(image, Access::ReadWrite, &[])?;
    shell::run(Command::new("tar").arg("-xf").arg(&linux.tar).arg("-C").arg(mount.path()))?;
    Ok(mount.unmount()?)
}

fn ours(base: &Path, work: &Path, newest: &Xfsprogs) -> Result<f64> {
    let image = work.join("shrunk");
    shell::run(Command::new("cp").arg("--sparse=always").arg(base).arg(&image))?;
    rustix::fs::sync();
    let mut shrink = Command::new(workspace::target("release/undercroft"));
    shrink.args(["shrink", "--json", "--size", "min"]).arg(&image);
    let mut report = String::new();
    let taken = timed(|| {
        report = shell::output(&mut shrink)?;
        Ok(())
    })?;
    eprintln!("  {}", report.trim());
    newest.repair_check(&image).context("what we made smaller is not clean")?;
    remove(&image)?;
    Ok(taken)
}

/// The time in which `make` makes a new volume of the mounted one.
fn made(
    base: &Path,
    work: &Path,
    newest: &Xfsprogs,
    make: impl FnOnce(&Path, &Path) -> Result<()>,
) -> Result<f64> {
    let image = work.join("made");
    let from = LoopMount::new(base, Access::ReadOnly, &[])?;
    rustix::fs::sync();
    let taken = timed(|| make(from.path(), &image))?;
    from.unmount()?;
    newest.repair_check(&image)?;
    remove(&image)?;
    Ok(taken)
}

/// A new volume, and a dump of level 0 restored to it.
fn dump(newest: &Xfsprogs, from: &Path, image: &Path) -> Result<()> {
    newest.mkfs(image, SMALL, &["-f"])?;
    let to = LoopMount::new(image, Access::ReadWrite, &[])?;
    let script = "set -o pipefail; xfsdump -F -J -L tree -M pipe -v silent - \"$0\" | xfsrestore -F -J -v silent - \"$1\"";
    shell::run(Command::new("bash").args(["-ec", script]).arg(from).arg(to.path()))?;
    Ok(to.unmount()?)
}

/// A new volume made of the mounted tree by the newest mkfs.xfs.
fn tree(newest: &Xfsprogs, from: &Path, image: &Path) -> Result<()> {
    let prototype = from.to_str().context("the mount point is not in UTF-8")?;
    Ok(newest.mkfs(image, SMALL, &["-f", "-p", prototype])?)
}
