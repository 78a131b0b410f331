//! The rows of the table, in groups that share the preparation of a volume.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use rustix::fs::OFlags;

use super::mounts::{Mounted, Peer, descriptors};
use crate::bench::comparison::Unit;
use crate::bench::source::{Source, read_file};

/// Files of a turn, and of a directory of few.
const FILES: usize = 4000;
const FEW: usize = 100;
/// Names that are in the large directory before, and operations there: few, for fuse2fs.
const LARGE: usize = 10_000;
const IN_LARGE: usize = 500;
/// Bytes of the file of the data rows, and of a call.
const DATA: u64 = 1 << 30;
const CALL: usize = 1 << 20;
/// Files of the tree, about.
const TREE_FILES: u64 = 100_000;
/// Durable files of a thread.
const DURABLE: usize = 300;

/// Rows that are measured on one volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Group {
    /// Names come and go in directories of 100
    Names,
    /// The same in one of 10,000
    Large,
    /// Attributes of files, and files opened
    Stat,
    /// The Linux tree is unpacked and listed
    Tree,
    /// One large file is written and read
    Data,
    /// Small files, each durable
    Fsync,
}

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Row {
    Create,
    Rename,
    Unlink,
    Mkdir,
    LargeCreate,
    LargeRename,
    LargeUnlink,
    LargeMkdir,
    StatUncached,
    StatCached,
    Open,
    Untar,
    Find,
    Write,
    ReadCached,
    ReadDirect,
    Fsync1,
    Fsync16,
}

impl Row {
    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Untar | Self::Find => Unit::Seconds,
            Self::Write | Self::ReadCached | Self::ReadDirect => Unit::MegabytesPerSecond,
            _ => Unit::PerSecond,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Create => "create and close",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Mkdir => "mkdir",
            Self::LargeCreate => "create among 10,000",
            Self::LargeRename => "rename among 10,000",
            Self::LargeUnlink => "unlink among 10,000",
            Self::LargeMkdir => "mkdir among 10,000",
            Self::StatUncached => "stat, nothing in the kernel",
            Self::StatCached => "stat again",
            Self::Open => "open and close",
            Self::Untar => "untar of the Linux tree and unmount",
            Self::Find => "find -ls of it, cold",
            Self::Write => "writes of 1 MiB and fsync",
            Self::ReadCached => "reads of 1 MiB",
            Self::ReadDirect => "reads of 1 MiB, O_DIRECT",
            Self::Fsync1 => "durable files of 4 KiB, 1 thread",
            Self::Fsync16 => "durable files of 4 KiB, 16 threads",
        })
    }
}

impl Group {
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it says something about this mount.
    pub(super) fn suits(self, peer: Peer) -> bool {
        // Nothing of a null server is left to be listed when it is mounted anew.
        self != Self::Tree || peer.stores() && !self.is_too_much_for(peer)
    }

    /// Whether a mount cannot hold the files, which it says.
    fn is_too_much_for(self, peer: Peer) -> bool {
        let descriptors = descriptors();
        let is_short = self == Self::Tree && peer == Peer::Passthrough && descriptors < TREE_FILES;
        if is_short {
            eprintln!(
                "the tree is left out for {}, which keeps a descriptor for each of {TREE_FILES} files: \
                 {descriptors} are allowed (`ulimit -Hn`)",
                peer.name()
            );
        }
        is_short
    }

    /// The values of its rows.
    pub(super) fn measure(
        self,
        mounted: &mut Mounted,
        source: Option<&Source>,
    ) -> Result<Vec<(Row, f64)>> {
        match self {
            Self::Names => names(&mounted.path()),
            Self::Large => large(&mounted.path()),
            Self::Stat => stat(mounted),
            Self::Tree => tree(mounted, source.context("the tree is there with its group")?),
            Self::Data => data(mounted),
            Self::Fsync => fsync(&mounted.path()),
        }
    }
}

/// How often a second: `count` times in what `work` took.
fn rate(count: usize, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let started = Instant::now();
    work()?;
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    Ok(count as f64 / started.elapsed().as_secs_f64())
}

fn for_all(paths: &[PathBuf], mut each: impl FnMut(&Path) -> io::Result<()>) -> Result<()> {
    paths.iter().try_for_each(|path| {
        each(path).with_context(|| format!("an operation on {} failed", path.display()))
    })
}

/// Creates, renames, removes; makes directories: the four rates.
fn four(paths: &[PathBuf]) -> Result<[f64; 4]> {
    let moved = |path: &Path| path.with_extension("moved");
    let count = paths.len();
    let create = || for_all(paths, |path| File::create_new(path).map(drop));
    let rename = || for_all(paths, |path| fs::rename(path, moved(path)));
    let unlink = || for_all(paths, |path| fs::remove_file(moved(path)));
    let mkdir = || for_all(paths, |path| fs::create_dir(path));
    Ok([rate(count, create)?, rate(count, rename)?, rate(count, unlink)?, rate(count, mkdir)?])
}

/// Files spread over fresh directories.
fn spread(root: &Path) -> Result<Vec<PathBuf>> {
    for directory in 0..FILES / FEW {
        fs::create_dir(root.join(format!("d{directory}")))?;
    }
    let path = |number: usize| root.join(format!("d{}/file-{number:06}", number / FEW));
    Ok((0..FILES).map(path).collect())
}

fn names(root: &Path) -> Result<Vec<(Row, f64)>> {
    let values = four(&spread(root)?)?;
    Ok([Row::Create, Row::Rename, Row::Unlink, Row::Mkdir].into_iter().zip(values).collect())
}

fn large(root: &Path) -> Result<Vec<(Row, f64)>> {
    let path = |number: usize| root.join(format!("file-{number:06}"));
    for number in 0..LARGE {
        File::create_new(path(number))?;
    }
    let values = four(&(LARGE..LARGE + IN_LARGE).map(path).collect::<Vec<_>>())?;
    let rows = [Row::LargeCreate, Row::LargeRename, Row::LargeUnlink, Row::LargeMkdir];
    Ok(rows.into_iter().zip(values).collect())
}

fn stat(mounted: &Mounted) -> Result<Vec<(Row, f64)>> {
    const PASSES: usize = 5;
    let paths = spread(&mounted.path())?;
    for_all(&paths, |path| File::create_new(path).map(drop))?;
    rustix::fs::sync();
    // Inodes and names, but not the blocks that a server or the kernel has in memory.
    fs::write("/proc/sys/vm/drop_caches", "2").context("cannot drop caches")?;
    let all = |passes: usize| {
        (0..passes).try_for_each(|_| for_all(&paths, |path| fs::metadata(path).map(drop)))
    };
    let uncached = rate(FILES, || all(1))?;
    let cached = rate(FILES * PASSES, || all(PASSES))?;
    let open = || (0..PASSES).try_for_each(|_| for_all(&paths, |path| File::open(path).map(drop)));
    let open = rate(FILES * PASSES, open)?;
    Ok(vec![(Row::StatUncached, uncached), (Row::StatCached, cached), (Row::Open, open)])
}

fn seconds(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    Ok(1.0 / rate(1, work)?)
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if !status.success() {
        bail!("{:?} ended with {status}", command.get_program());
    }
    Ok(())
}

fn tree(mounted: &mut Mounted, source: &Source) -> Result<Vec<(Row, f64)>> {
    read_file(&source.tar)?;
    rustix::fs::sync();
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(&source.tar).arg("--directory").arg(mounted.path());
    let untar = seconds(|| {
        succeed(&mut tar)?;
        mounted.unmount()
    })?;
    mounted.mount_cold()?;
    let mut find = Command::new("find");
    let found = seconds(|| succeed(find.arg(mounted.path()).arg("-ls")))?;
    Ok(vec![(Row::Untar, untar), (Row::Find, found)])
}

/// Megabytes a second.
fn speed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    #[allow(clippy::cast_precision_loss, reason = "exact")]
    Ok(DATA as f64 / 1e6 / seconds(work)?)
}

fn data(mounted: &mut Mounted) -> Result<Vec<(Row, f64)>> {
    let path = |mounted: &Mounted| mounted.path().join("data");
    // O_DIRECT takes memory at certain addresses alone.
    let mut memory = vec![0x5a; 2 * CALL];
    let start = memory.as_ptr().align_offset(4096).min(CALL);
    let buffer = &mut memory[start..start + CALL];
    let file = File::create_new(path(mounted))?;
    let write = speed(|| {
        for at in (0..DATA).step_by(CALL) {
            file.write_all_at(buffer, at)?;
        }
        Ok(file.sync_all()?)
    })?;
    drop(file);
    let mut rows = vec![(Row::Write, write)];
    for (row, flags) in [(Row::ReadCached, OFlags::empty()), (Row::ReadDirect, OFlags::DIRECT)] {
        if mounted.peer().stores() {
            mounted.mount_again_warm()?;
        } else {
            rustix::fs::sync();
            fs::write("/proc/sys/vm/drop_caches", "1").context("cannot drop caches")?;
        }
        let flags = i32::try_from(flags.bits()).unwrap_or(0);
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path(mounted));
        let file = match opened {
            // fuse2fs does not know O_DIRECT on all versions.
            Err(error) if error.raw_os_error() == Some(22) => continue,
            other => other?,
        };
        let read = speed(|| {
            for at in (0..DATA).step_by(CALL) {
                file.read_exact_at(buffer, at)?;
            }
            Ok(())
        })?;
        rows.push((row, read));
    }
    Ok(rows)
}

fn fsync(root: &Path) -> Result<Vec<(Row, f64)>> {
    let one = |thread: usize, threads: usize| -> Result<()> {
        let directory = root.join(format!("{threads}-{thread}"));
        fs::create_dir(&directory)?;
        for number in 0..DURABLE {
            let file = File::create_new(directory.join(number.to_string()))?;
            file.write_all_at(&[7; 4096], 0)?;
            file.sync_all()?;
        }
        Ok(())
    };
    let many = |threads: usize| {
        rate(threads * DURABLE, || {
            thread::scope(|scope| {
                let all: Vec<_> =
                    (0..threads).map(|thread| scope.spawn(move || one(thread, threads))).collect();
                all.into_iter().try_for_each(|thread| match thread.join() {
                    Ok(result) => result,
                    Err(_) => bail!("a thread panicked"),
                })
            })
        })
    };
    Ok(vec![(Row::Fsync1, many(1)?), (Row::Fsync16, many(16)?)])
}
