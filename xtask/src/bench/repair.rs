//! `cargo xtask bench repair`: damaged volumes put right by `undercroft repair` and by `xfs_repair`.
//!
//! The damages and the judgement of files are those of `bench recover`. What each leaves is mounted by the
//! kernel, if it mounts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use undercroft_judges::LoopMount;
use undercroft_judges::mount::Access;

use super::comparison::{Comparison, Unit};
use super::live::{prepare, remove};
use super::recover::{DAMAGES, RecoverArguments, files, repaired, right, subject};
use crate::{shell, workspace};

/// Repairs copies of one volume.
pub(super) fn repair(arguments: &RecoverArguments) -> Result<Vec<Comparison>> {
    let (work, newest) = prepare(arguments.work())?;
    let (base, image) = (work.join("sound"), work.join("damaged"));
    newest.mkfs(&base, arguments.bytes(), &["-f"])?;
    let mount = LoopMount::new(&base, Access::ReadWrite, &[])?;
    shell::run(Command::new("cp").arg("-a").arg(arguments.tree()).arg(mount.path()))?;
    mount.unmount()?;
    let sound = LoopMount::new(&base, Access::ReadOnly, &["norecovery"])?;
    let files = files(sound.path())?;
    ensure!(!files.is_empty(), "there are no files in {}", arguments.tree().display());
    let mut comparisons = Vec::new();
    for (name, damage) in DAMAGES {
        let damaged = || {
            let subject = subject(&base, &image, &newest)?;
            shell::run(Command::new("cp").arg("--sparse=always").arg(&base).arg(&image))?;
            damage(&subject).with_context(|| format!("cannot damage a volume: {name}"))
        };
        damaged()?;
        let (own, own_time) = timed(|| ours(&image, sound.path(), &files))?;
        damaged()?;
        let (other, other_time) = timed(|| repaired(&image, &newest, sound.path(), &files))?;
        eprintln!("{name}: of {} files undercroft {own}, xfs_repair {other}", files.len());
        let programs = ["undercroft repair", "xfs_repair"];
        let rows = [
            (
                format!("{name}: right of {}", files.len()),
                Unit::Files,
                [own, other].map(|it| it as f64),
            ),
            (
                format!("{name}: with the mount and the comparison"),
                Unit::Seconds,
                [own_time, other_time],
            ),
        ];
        for (work, unit, values) in rows {
            let mut comparison = Comparison::new(work, unit, programs);
            comparison.add(values);
            comparisons.push(comparison);
        }
        remove(&image)?;
    }
    sound.unmount()?;
    remove(&base)?;
    Ok(comparisons)
}

fn timed(work: impl FnOnce() -> Result<usize>) -> Result<(usize, f64)> {
    let start = Instant::now();
    Ok((work()?, start.elapsed().as_secs_f64()))
}

/// The right files on the volume that ours mended, none if the kernel does not mount it.
fn ours(image: &Path, sound: &Path, files: &[PathBuf]) -> Result<usize> {
    let mut undo = image.as_os_str().to_owned();
    undo.push(".undo");
    let mut repair = Command::new(workspace::target("release/undercroft"));
    let output = repair.arg("repair").arg(image).output().context("cannot start undercroft")?;
    if !output.status.success() && output.status.code() != Some(1) {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let _ = fs::remove_file(undo);
    match LoopMount::new(image, Access::ReadOnly, &["nouuid"]) {
        Ok(mount) => {
            let count = right(sound, files, mount.path());
            mount.unmount()?;
            Ok(count)
        }
        Err(_) => Ok(0),
    }
}
