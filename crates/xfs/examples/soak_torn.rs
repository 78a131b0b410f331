//! Volumes whose directory blocks are larger than a page, cut off while they are changed and while
//! their journal is replayed: the kernel must mount each. A block with one checksum of which a half
//! is new would be refused, as the kernel reads it before it replays it.
//!
//! `cargo run --release -p undercroft-xfs --example soak_torn -- CUTS SEED`: so many cuts of each
//! kind. Needs root and strace. Kinds: a process that is killed at one of its calls that write to a
//! file; a loss of power, by a recording, of a disk that does each write as a whole or not at all.

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;
use undercroft_block::testing::recorder::{Recorder, Unflushed};
use undercroft_block::{BlockDevice, FileDevice, MemoryDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::{LoopMount, Xfsprogs, image};
use undercroft_testkit::disk;
use undercroft_xfs::Volume;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::recovery::recover;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

const SIZE: u64 = 320 << 20;
/// Names that are made or removed, in some hundred blocks.
const NAMES: u64 = 10_000;
/// The system calls that write to a file.
const WRITES: &str = "pwrite64,pwritev,pwritev2";
/// One unit is the whole disk.
const WHOLE: u64 = 1 << 40;

/// Leaves the remains of some work in the file `image` of a directory, by a seed.
type Cut = fn(Work, &Path, u64);

/// The work that is cut off.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Names come and go in directories with blocks of 64 KiB.
    Names,
    /// A journal of changes of directories with blocks of 16 KiB is replayed.
    Replay,
}

impl Work {
    const ALL: [Self; 2] = [Self::Names, Self::Replay];

    fn describe(self) -> &'static str {
        match self {
            Self::Names => "changes of directories with blocks of 64 KiB",
            Self::Replay => "replays of directories with blocks of 16 KiB",
        }
    }

    /// Makes the volume that it begins with.
    fn prepare(self, device: &Arc<dyn BlockDevice>, seed: u64) {
        let dir_block_size = Some(if matches!(self, Self::Names) { 65536 } else { 16384 });
        let options = MkfsOptions::new(SIZE, Uuid::from_u128(seed.into()));
        let plan = mkfs::plan(&MkfsOptions { dir_block_size, ..options }).unwrap();
        let root = NewInode::new(FileType::Directory, 0o755);
        mkfs::finish(&mkfs::begin(device, plan, &root).unwrap(), true).unwrap();
        if let Self::Replay = self {
            let volume = Volume::open_live(Arc::clone(device), &LiveOptions::default()).unwrap();
            change(&volume, &mut Random::new(seed), NAMES);
            volume.sync().unwrap();
            // Not closed: its journal is there to be replayed.
        }
    }

    /// Does it.
    fn run(self, device: &Arc<dyn BlockDevice>, seed: u64) {
        if let Self::Replay = self {
            recover(device, &mut |_| {}).unwrap();
            return;
        }
        let volume = Volume::open_live(Arc::clone(device), &LiveOptions::default()).unwrap();
        change(&volume, &mut Random::new(seed), NAMES);
        volume.close().unwrap();
    }
}

/// Makes and removes names, long ones: a block has room for some hundred.
fn change(volume: &Volume, random: &mut Random, count: u64) {
    let root = volume.geometry().root_inode;
    let salt = random.bits();
    let make = |parent: InodeNumber, name: &str, kind| {
        let new = NewInode { target: &[b't'; 900], ..NewInode::new(kind, 0o755) };
        ops::make(volume, parent, name.as_bytes(), &new).unwrap()
    };
    let directories: Vec<_> = (0..4)
        .map(|number| make(root, &format!("{salt:x}-{number}"), FileType::Directory))
        .collect();
    let mut names = Vec::new();
    for number in 0..count {
        if random.one_in(4) && !names.is_empty() {
            let at = random.below(names.len() as u64) as usize;
            let (parent, name): (InodeNumber, String) = names.swap_remove(at);
            ops::unlink(volume, parent, name.as_bytes(), Timestamp::default()).unwrap();
            continue;
        }
        let parent = directories[random.below(4) as usize];
        let name = format!("{}-{number}", "n".repeat(100 + random.below(100) as usize));
        // The block of such a link lies between those of directories, which then begin anywhere.
        let kind = if number % 40 == 0 { FileType::Symlink } else { FileType::Regular };
        make(parent, &name, kind);
        names.push((parent, name));
    }
}

fn device(image: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, false).unwrap())
}

/// Does the work in a process of its own, under strace with these options; whether it came to its
/// end.
fn run_traced(work: Work, image: &Path, seed: u64, options: &[String]) -> bool {
    let kind = if matches!(work, Work::Names) { "names" } else { "replay" };
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(image.with_extension("calls")).args(options);
    strace.arg(std::env::current_exe().unwrap()).arg(kind).arg(image).arg(seed.to_string());
    strace.status().expect("strace, in the Debian package of this name").success()
}

/// Leaves what a process leaves that is killed at one of its writes. Calls are counted by thread.
fn kill(work: Work, scratch: &Path, seed: u64) {
    let (first, cut) = (scratch.join("first"), scratch.join("image"));
    File::create(&first).unwrap().set_len(SIZE).unwrap();
    work.prepare(&device(&first), seed);
    image::copy(&first, &cut).unwrap();
    assert!(run_traced(work, &cut, seed, &[format!("--trace={WRITES}")]));
    let calls = std::fs::read_to_string(cut.with_extension("calls")).unwrap();
    let mut by_thread = HashMap::new();
    for line in calls.lines().filter(|line| !line.contains(" resumed>")) {
        *by_thread.entry(line.split(' ').next()).or_insert(0_u64) += 1;
    }
    let most = by_thread.into_values().max().unwrap();
    let mut random = Random::new(seed);
    loop {
        image::copy(&first, &cut).unwrap();
        let at = 1 + random.below(most);
        let options =
            [format!("--trace={WRITES}"), format!("--inject={WRITES}:signal=KILL:when={at}")];
        if !run_traced(work, &cut, seed, &options) {
            return;
        }
    }
}

/// Leaves what a loss of power at a random point leaves; each write is there as a whole or not.
fn lose_power(work: Work, scratch: &Path, seed: u64) {
    let disk: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    work.prepare(&disk, seed);
    let recorder = Arc::new(Recorder::with_contents(disk).unwrap());
    work.run(&(Arc::clone(&recorder) as _), seed);
    let mut recording = recorder.recording().unwrap();
    let end = Random::new(seed).below(recording.events().len() as u64);
    while (recording.position() as u64) < end {
        recording.step();
    }
    disk::save(
        recording.disk(Unflushed::TornInUnits { seed, sectors: WHOLE }).as_ref(),
        &scratch.join("image"),
    );
}

/// Has the kernel replay the volume, on a copy of which we did it; why one of them could not.
fn judge(scratch: &Path) -> Result<(), String> {
    let (image, copy) = (scratch.join("image"), scratch.join("copy"));
    image::copy(&image, &copy).unwrap();
    let ours = recover(&device(&copy), &mut |_| {});
    ours.map_err(|error| format!("our replay: {error}"))?;
    let newest = Xfsprogs::newest().unwrap();
    newest.repair_check(&copy).map_err(|error| format!("behind our replay: {error}"))?;
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]);
    mount.map_err(|error| format!("the kernel: {error}"))?.unmount().unwrap();
    newest.repair_check(&image).map_err(|error| format!("behind the kernel's replay: {error}"))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (cuts, seed) = match words[..] {
        [kind @ ("names" | "replay"), image, seed] => {
            let work = if kind == "names" { Work::Names } else { Work::Replay };
            work.run(&device(Path::new(image)), seed.parse().unwrap());
            return ExitCode::SUCCESS;
        }
        [cuts, seed] => (cuts.parse::<u64>().unwrap(), seed.parse::<u64>().unwrap()),
        _ => {
            eprintln!("usage: soak_torn CUTS SEED");
            return ExitCode::FAILURE;
        }
    };
    let kinds: [(&str, Cut); 2] = [("killed", kill), ("without power", lose_power)];
    let mut failed = 0;
    for work in Work::ALL {
        for (how, cut) in kinds {
            let (begun, mut refused) = (Instant::now(), 0);
            for seed in seed..seed + cuts {
                let scratch = tempfile::tempdir().unwrap();
                cut(work, scratch.path(), seed);
                if let Err(what) = judge(scratch.path()) {
                    println!("{how}, {}, seed {seed}: {what}", work.describe());
                    refused += 1;
                }
            }
            println!(
                "{cuts} {}, {how}: {refused} refused; {:.0} s",
                work.describe(),
                begun.elapsed().as_secs_f64()
            );
            failed += refused;
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
