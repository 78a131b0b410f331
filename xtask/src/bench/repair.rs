//! `cargo xtask bench repair`: damaged volumes put right by `undercroft repair` and by `xfs_repair`.
//!
//! The damages are those of `bench recover`, and some of single structures. What each leaves is mounted by the
//! kernel, if it mounts it. A file is right if it has its path and its content, elsewhere if its content is at
//! another path, else gone.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use undercroft_judges::LoopMount;
use undercroft_judges::mount::Access;

use super::comparison::{Comparison, Unit};
use super::live::{prepare, remove};
use super::recover::{DAMAGES, RecoverArguments, files, subject};
use crate::{shell, workspace};

/// How often the memory of a program is looked at.
const LOOK: Duration = Duration::from_millis(2);

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
        let run = |mut command: Command| {
            let subject = subject(&base, &image, &newest)?;
            shell::run(Command::new("cp").arg("--sparse=always").arg(&base).arg(&image))?;
            damage(&subject).with_context(|| format!("cannot damage a volume: {name}"))?;
            let cost = measured(command.arg(&image))?;
            let files = mounted(&image, sound.path(), &files)?;
            let mut undo = image.as_os_str().to_owned();
            undo.push(".undo");
            let _ = fs::remove_file(undo);
            remove(&image)?;
            Ok::<_, anyhow::Error>((cost, files))
        };
        let mut ours = Command::new(workspace::target("release/undercroft"));
        ours.arg("repair");
        let mut theirs = Command::new(newest.tool("xfs_repair")?);
        theirs.arg("-L");
        let (own, other) = (run(ours)?, run(theirs)?);
        eprintln!(
            "{name}: of {} files undercroft {:?}, xfs_repair {:?}",
            files.len(),
            own.1,
            other.1
        );
        let mut push = |what: String, unit, value: &dyn Fn(&(Cost, Kept)) -> f64| {
            let programs = ["undercroft repair", "xfs_repair"];
            let mut comparison = Comparison::new(format!("{name}: {what}"), unit, programs);
            comparison.add([&own, &other].map(value));
            comparisons.push(comparison);
        };
        push(format!("right of {}", files.len()), Unit::Files, &|it| it.1.right as f64);
        push("elsewhere".into(), Unit::Files, &|it| it.1.elsewhere as f64);
        push("time".into(), Unit::Seconds, &|it| it.0.seconds);
        push("memory".into(), Unit::Mebibytes, &|it| it.0.mebibytes);
    }
    sound.unmount()?;
    remove(&base)?;
    Ok(comparisons)
}

/// What a program took.
struct Cost {
    seconds: f64,
    /// The most memory that it had.
    mebibytes: f64,
}

/// Runs a program to its end, however that is.
fn measured(command: &mut Command) -> Result<Cost> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait()?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = most.max(peak.unwrap_or(0_u64));
        thread::sleep(LOOK);
    }
    Ok(Cost { seconds: start.elapsed().as_secs_f64(), mebibytes: most as f64 / 1024.0 })
}

/// Where the files are.
#[derive(Debug, Default)]
struct Kept {
    right: usize,
    elsewhere: usize,
}

/// The files on a volume, none if the kernel does not mount it.
fn mounted(image: &Path, sound: &Path, files: &[PathBuf]) -> Result<Kept> {
    // Both volumes have one UUID.
    let Ok(mount) = LoopMount::new(image, Access::ReadOnly, &["nouuid"]) else {
        return Ok(Kept::default());
    };
    let kept = kept(sound, files, mount.path());
    mount.unmount()?;
    kept
}

fn kept(sound: &Path, all: &[PathBuf], top: &Path) -> Result<Kept> {
    let content = |path: &Path| {
        let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
        let bytes = is_file.then(|| fs::read(path).ok()).flatten()?;
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Some(hasher.finish())
    };
    let (mut right, mut missing) = (HashSet::new(), Vec::new());
    for path in all {
        let wanted = content(&sound.join(path));
        if wanted.is_some() && content(&top.join(path)) == wanted {
            right.insert(path.clone());
        } else {
            missing.extend(wanted);
        }
    }
    let found: HashSet<u64> = files(top)
        .unwrap_or_default()
        .iter()
        .filter(|path| !right.contains(*path))
        .filter_map(|path| content(&top.join(path)))
        .collect();
    let elsewhere = missing.iter().filter(|wanted| found.contains(wanted)).count();
    Ok(Kept { right: right.len(), elsewhere })
}
