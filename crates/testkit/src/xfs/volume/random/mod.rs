//! A random volume: of a random format, aged by the kernel, made smaller, and judged.

mod age;
mod extents;
mod format;
mod reserved;

use crate::xfs::judged;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::tree::{self, Options};
use undercroft_judges::{LoopMount, image};
use undercroft_xfs::Volume;
use undercroft_xfs::maintain::{self, ShrinkOptions, ShrinkTarget, Shrinkage};

const MIB: u64 = 1 << 20;

/// What became of a round.
#[derive(Debug)]
pub enum Round {
    /// It shrank, and all judges are content.
    Shrunk(Shrinkage),
    /// Something was in the way, and nothing was changed.
    Refused(Vec<String>),
}

/// Makes a volume and has the kernel age it; tells its format.
pub fn aged(image: &Path, random: &mut Random, seed: u64) -> String {
    let format = format::make(random, image);
    let what = format!("seed {seed}, {format}");
    let mount = mounted(image, &what);
    let whole = age::age(mount.path(), random);
    mount.unmount().unwrap();
    if !whole {
        // Linux 6.18 shut one of its own down with 1 KiB blocks; it replays what was done until then.
        println!("{what}: the kernel shut it down while it was aged");
        mounted(image, &what).unmount().unwrap();
    }
    judged::sound(image, &format!("{what}, before"));
    format
}

/// Makes, ages, shrinks and judges the volume of a seed in `directory`; tells its format.
pub fn round(directory: &Path, seed: u64) -> (String, Round) {
    let mut random = Random::new(seed);
    let (ours, before) = (directory.join("ours"), directory.join("before"));
    let format = aged(&ours, &mut random, seed);
    let what = format!("seed {seed}, {format}");
    image::copy(&ours, &before).unwrap();
    let size = ours.metadata().unwrap().len();
    let target = target(&ours, size, &mut random);
    let options = ShrinkOptions { target, keep_inode_numbers: random.one_in(12) };
    let plan = plan(&ours, options);
    if !plan.obstacles.is_empty() {
        assert!(maintain::shrink(&device(&ours), options, &mut |_, _| {}).is_err(), "{what}");
        same(&before, &ours, &what);
        let told = plan.obstacles.iter().map(ToString::to_string).collect();
        return (format, Round::Refused(told));
    }
    let done = maintain::shrink(&device(&ours), options, &mut |_, _| {})
        .unwrap_or_else(|error| panic!("{what}, {target:?}: {error}; planned {plan:?}"));
    let block = Volume::open(device(&ours)).unwrap().geometry().block_size() as u64;
    resize(&ours, done.blocks * block);
    judged::sound(&ours, &what);
    same(&before, &ours, &what);
    judged::sound(&ours, &format!("{what}, after a mount"));
    fill_and_grow(&ours, size, &what);
    (format, Round::Shrunk(done))
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shrunk(done) => write!(
                f,
                "{} to {} blocks, {} to {} groups, {} inodes and {} blocks moved, journal {}",
                done.blocks_before,
                done.blocks,
                done.groups_before,
                done.groups,
                done.inodes,
                done.data.blocks + done.metadata.blocks,
                done.journal
            ),
            Self::Refused(obstacles) => write!(f, "refused: {}", obstacles.join("; ")),
        }
    }
}

fn device(image: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, false).unwrap())
}

fn resize(image: &Path, size: u64) {
    std::fs::OpenOptions::new().write(true).open(image).unwrap().set_len(size).unwrap();
}

fn mounted(image: &Path, what: &str) -> LoopMount {
    LoopMount::new(image, Access::ReadWrite, &["nouuid"])
        .unwrap_or_else(|error| panic!("{what}: {error}"))
}

fn plan(image: &Path, options: ShrinkOptions) -> Shrinkage {
    maintain::shrinkage(&Volume::open(device(image)).unwrap(), options).unwrap()
}

/// Bytes to which the volume shall shrink, at random; `None` if something is in the way, or nothing goes.
pub fn bytes_to(image: &Path, random: &mut Random) -> Option<u64> {
    let size = image.metadata().unwrap().len();
    let options = ShrinkOptions { target: target(image, size, random), keep_inode_numbers: false };
    let plan = plan(image, options);
    let block = Volume::open(device(image)).unwrap().geometry().block_size() as u64;
    let shrinks = plan.obstacles.is_empty() && plan.blocks < plan.blocks_before;
    shrinks.then_some(plan.blocks * block)
}

/// The smallest size, or one between that and the present one.
fn target(image: &Path, size: u64, random: &mut Random) -> ShrinkTarget {
    if random.one_in(3) {
        return ShrinkTarget::Smallest;
    }
    let options = ShrinkOptions { target: ShrinkTarget::Smallest, keep_inode_numbers: false };
    let block = Volume::open(device(image)).unwrap().geometry().block_size() as u64;
    let smallest = plan(image, options).smallest * block;
    ShrinkTarget::Bytes(smallest + random.below(size - smallest + 1))
}

/// Compares what the kernel sees in two images: all but places and numbers of inodes.
fn same(left: &Path, right: &Path, what: &str) {
    let (left, right) = (mounted(left, what), mounted(right, what));
    let fits = reserved::fits(right.path()) || !reserved::fits(left.path());
    assert!(fits, "{what}: the kernel cannot set aside space in a group");
    let found = tree::compare(left.path(), right.path(), &Options::default()).unwrap();
    found.assert_same();
    let (old, new) = (extents::of(left.path()), extents::of(right.path()));
    for (path, old) in &old {
        assert_eq!(Some(old), new.get(path), "{what}: extents of {path}");
    }
    right.unmount().unwrap();
    left.unmount().unwrap();
}

/// Has the kernel fill the volume to the brim, empty it of that, and grow it to `size` bytes.
fn fill_and_grow(image: &Path, size: u64, what: &str) {
    let mount = mounted(image, what);
    let fillers: PathBuf = mount.join("fillers");
    if std::fs::create_dir(&fillers).is_ok() {
        for number in 0..100_000 {
            let length = if number % 8 == 7 { 5000 } else { MIB as usize };
            if std::fs::write(fillers.join(number.to_string()), vec![1; length]).is_err() {
                break;
            }
        }
    }
    mount.unmount().unwrap();
    judged::sound(image, &format!("{what}, full"));
    resize(image, size);
    let mount = mounted(image, what);
    if mount.join("fillers").exists() {
        std::fs::remove_dir_all(mount.join("fillers")).unwrap();
    }
    let grown = Command::new("xfs_growfs").arg("-d").arg(mount.path()).output().unwrap();
    assert!(grown.status.success(), "{what}: {}", String::from_utf8_lossy(&grown.stderr));
    mount.unmount().unwrap();
    judged::sound(image, &format!("{what}, grown again"));
}
