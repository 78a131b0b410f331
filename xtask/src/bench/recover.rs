//! `cargo xtask bench recover`: what comes back from damaged volumes, beside `xfs_repair` on a copy.
//!
//! The kernel makes a volume of a tree. It is damaged in several ways; then ours copies out what it finds, and
//! `xfs_repair` mends a copy, which the kernel mounts. A file is right if it has its path and its content.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::{LoopMount, Xfsprogs};

use super::comparison::{Comparison, Unit};
use super::live::{prepare, remove};
use crate::{shell, workspace};

/// Bytes of a block.
const BLOCK: u64 = 4096;

/// Measure what comes back from damaged volumes.
#[derive(Args)]
pub(crate) struct RecoverArguments {
    /// The tree that is on the volumes
    #[arg(long, default_value = "/usr/include")]
    tree: PathBuf,
    /// MiB of the volumes
    #[arg(long, default_value_t = 1024)]
    size: u64,
    /// Where volumes and what comes back are; a directory with room for the tree three times
    #[arg(long)]
    work: Option<PathBuf>,
}

impl RecoverArguments {
    pub(super) fn tree(&self) -> &Path {
        &self.tree
    }

    pub(super) fn bytes(&self) -> u64 {
        self.size << 20
    }

    pub(super) fn work(&self) -> Option<&PathBuf> {
        self.work.as_ref()
    }
}

/// A volume that is to be damaged.
pub(super) struct Subject<'s> {
    image: &'s Path,
    bytes: u64,
    /// Bytes of a group.
    group: u64,
    /// The first byte of the root directory's inode.
    root: u64,
    newest: &'s Xfsprogs,
}

/// A damage by its name.
pub(super) type Damage = (&'static str, fn(&Subject<'_>) -> Result<()>);

/// The damages.
pub(super) const DAMAGES: [Damage; 9] = [
    ("none", |_| Ok(())),
    ("16 KiB over the root directory's inodes", |at| at.zero(at.root, 16 << 10)),
    ("the first MiB", |at| at.zero(0, 1 << 20)),
    ("16 MiB in the middle", |at| at.zero(at.bytes / 2, 16 << 20)),
    ("the headers of group 1", |at| at.zero(at.group, 64 << 10)),
    ("the headers of all groups", |at| {
        (0..at.bytes.div_ceil(at.group)).try_for_each(|ag| at.zero(ag * at.group, 2048))
    }),
    ("mkfs.xfs over it", |at| {
        let mut mkfs = Command::new(at.newest.tool("mkfs.xfs")?);
        shell::run(mkfs.args(["-q", "-f", "-K"]).arg(at.image))
    }),
    ("cut to 70 %", |at| {
        Ok(File::options()
            .write(true)
            .open(at.image)?
            .set_len(at.bytes / 10 * 7 / BLOCK * BLOCK)?)
    }),
    ("1 % of all blocks", |at| {
        let mut random = Random::new(64);
        let blocks = at.bytes / BLOCK;
        (0..blocks / 100).try_for_each(|_| at.zero(random.below(blocks) * BLOCK, BLOCK as usize))
    }),
];

impl Subject<'_> {
    fn zero(&self, at: u64, len: usize) -> Result<()> {
        let file = File::options().write(true).open(self.image)?;
        Ok(file.write_all_at(&vec![0; len], at)?)
    }
}

/// Damages copies of one volume.
pub(super) fn recover(arguments: &RecoverArguments) -> Result<Vec<Comparison>> {
    let (work, newest) = prepare(arguments.work.as_ref())?;
    let (base, image) = (work.join("sound"), work.join("damaged"));
    newest.mkfs(&base, arguments.size << 20, &["-f"])?;
    let mount = LoopMount::new(&base, Access::ReadWrite, &[])?;
    shell::run(Command::new("cp").arg("-a").arg(&arguments.tree).arg(mount.path()))?;
    mount.unmount()?;
    let sound = LoopMount::new(&base, Access::ReadOnly, &["norecovery"])?;
    let files = files(sound.path())?;
    ensure!(!files.is_empty(), "there are no files in {}", arguments.tree.display());
    let mut comparisons = Vec::new();
    for (name, damage) in DAMAGES {
        let subject = subject(&base, &image, &newest)?;
        shell::run(Command::new("cp").arg("--sparse=always").arg(&base).arg(&image))?;
        damage(&subject).with_context(|| format!("cannot damage a volume: {name}"))?;
        let own = salvaged(&image, &work, sound.path(), &files)?;
        let other = repaired(&image, &newest, sound.path(), &files)?;
        eprintln!("{name}: of {} files undercroft {own}, xfs_repair {other}", files.len());
        let work_done = format!("{name}: right of {}", files.len());
        let programs = ["undercroft salvage", "xfs_repair"];
        let mut comparison = Comparison::new(work_done, Unit::Files, programs);
        comparison.add([own as f64, other as f64]);
        comparisons.push(comparison);
        remove(&image)?;
    }
    sound.unmount()?;
    remove(&base)?;
    Ok(comparisons)
}

pub(super) fn subject<'s>(
    base: &Path,
    image: &'s Path,
    newest: &'s Xfsprogs,
) -> Result<Subject<'s>> {
    let mut superblock = [0; 512];
    let file = File::open(base)?;
    file.read_exact_at(&mut superblock, 0)?;
    let number = |at: usize, len: usize| {
        superblock[at..at + len].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    Ok(Subject {
        image,
        bytes: file.metadata()?.len(),
        group: number(84, 4) << number(120, 1),
        root: number(56, 8) << number(122, 1),
        newest,
    })
}

/// The paths of all files below a directory.
pub(super) fn files(top: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut left) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(top.join(&directory))? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, directory.join(entry.file_name()));
            if kind.is_dir() {
                left.push(path);
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// How many files are below another directory as they were.
fn right(sound: &Path, files: &[PathBuf], top: &Path) -> usize {
    let same = |path: &&PathBuf| {
        let is_file = fs::symlink_metadata(top.join(path)).is_ok_and(|meta| meta.is_file());
        is_file && fs::read(top.join(path)).ok() == fs::read(sound.join(path)).ok()
    };
    files.iter().filter(same).count()
}

/// The right files among those that ours copies out of the volume that has most.
fn salvaged(image: &Path, work: &Path, sound: &Path, files: &[PathBuf]) -> Result<usize> {
    let to = work.join("salvaged");
    let salvage = |uuid: &[&str]| {
        let mut salvage = Command::new(workspace::target("release/undercroft"));
        salvage.arg("salvage").args(uuid).arg(image).arg(&to);
        // Its status says that something is missing.
        salvage.output().context("cannot start undercroft")
    };
    let output = salvage(&[])?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if let Some((_, volumes)) = told.split_once("choose one with --uuid: ") {
        // Those with the most files come first.
        salvage(&["--uuid", volumes.split(' ').next().unwrap_or_default()])?;
    }
    let count = right(sound, files, &to);
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    Ok(count)
}

/// The right files on the volume that `xfs_repair` mended, none if the kernel does not mount it.
fn repaired(image: &Path, newest: &Xfsprogs, sound: &Path, files: &[PathBuf]) -> Result<usize> {
    let repair = Command::new(newest.tool("xfs_repair")?).arg("-L").arg(image).output();
    repair.context("cannot start xfs_repair")?;
    // Both volumes have one UUID.
    match LoopMount::new(image, Access::ReadOnly, &["nouuid"]) {
        Ok(mount) => {
            let count = right(sound, files, mount.path());
            mount.unmount()?;
            Ok(count)
        }
        Err(_) => Ok(0),
    }
}
