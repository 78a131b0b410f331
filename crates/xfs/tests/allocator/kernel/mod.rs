//! Near mode against the running kernel: the kernel works on a volume while its tracepoints tell
//! every request; the same requests on a copy of the volume must get the same extents, and leave
//! the same free space.

mod replay;
mod trace;

use replay::{Replay, free_extents_of};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use trace::Tracer;
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};

/// A volume and the seed of what happens on it.
struct Case {
    size: u64,
    arguments: &'static [&'static str],
    /// Longest hole and longest used piece of the aged free space in blocks; `None`: a young
    /// volume.
    aged: Option<(u64, u64)>,
    seed: u64,
    operations: u32,
}

/// Punches holes into a file that fills the volume, in random order.
fn age(mount: &Path, (hole, kept): (u64, u64), random: &mut Random) {
    let file = File::create(mount.join("filler")).unwrap();
    let (mut end, mut step) = (0, 1 << 28);
    while step >= 4096 {
        match fallocate(&file, FallocateFlags::empty(), end, step) {
            Ok(()) => end += step,
            Err(_) => step /= 2,
        }
    }
    let (mut holes, mut at) = (Vec::new(), 0);
    while at < end {
        at += (1 + random.below(kept)) * 4096;
        let len = (1 + random.below(hole)) * 4096;
        if at + len < end {
            holes.push((at, len));
        }
        at += len;
    }
    for index in (1..holes.len()).rev() {
        holes.swap(index, random.below(index as u64 + 1) as usize);
    }
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for (at, len) in holes {
        fallocate(&file, punch, at, len).unwrap();
    }
}

/// Creates, fills and removes files.
fn work(mount: &Path, random: &mut Random, operations: u32) {
    let mut files: Vec<PathBuf> = Vec::new();
    for number in 0..16 {
        fs::create_dir(mount.join(format!("directory-{number}"))).unwrap();
    }
    for number in 0..operations {
        if random.one_in(4) && !files.is_empty() {
            let index = random.below(files.len() as u64) as usize;
            fs::remove_file(files.swap_remove(index)).unwrap();
        }
        let path = mount.join(format!("directory-{}/file-{number}", random.below(16)));
        let file = File::create(&path).unwrap();
        let len = (1 + random.magnitude(9)) * 4096;
        if random.one_in(4) {
            file.write_all_at(&vec![7; len as usize], 0).unwrap();
            file.sync_all().unwrap();
        } else {
            fallocate(&file, FallocateFlags::empty(), 0, len).unwrap();
            if random.one_in(4) {
                // A second extent, beside the first if it can be.
                fallocate(&file, FallocateFlags::empty(), len, len).unwrap();
            }
        }
        files.push(path);
        if random.one_in(50) {
            rustix::fs::syncfs(&file).unwrap();
        }
    }
}

/// Has the kernel work on a volume, repeats it on a copy, and returns the observations.
fn compared(case: &Case) -> Replay {
    let directory = tempfile::tempdir().unwrap();
    let (image, copy) = (directory.path().join("kernel.img"), directory.path().join("copy.img"));
    Xfsprogs::newest().unwrap().mkfs(&image, case.size, case.arguments).unwrap();
    let mut random = Random::new(case.seed);
    if let Some(aged) = case.aged {
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        age(mount.path(), aged, &mut random);
        mount.unmount().unwrap();
    }
    undercroft_judges::image::copy(&image, &copy).unwrap();

    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    let tracer = Tracer::start(mount.path());
    work(mount.path(), &mut random, case.operations);
    mount.unmount().unwrap();
    let events = tracer.stop();

    let mut replay = Replay::open(&copy);
    for event in &events {
        replay.event(event);
    }
    println!(
        "{} near, {} exact, {} by size, {} frees; {} by the order of busy ranges, {} by the time of \
         their end, {} differences",
        replay.near,
        replay.exact,
        replay.by_size,
        replay.frees,
        replay.by_order,
        replay.by_time,
        replay.differences.len()
    );
    for difference in replay.differences.iter().take(20) {
        println!("  {difference}");
    }
    assert!(replay.differences.is_empty(), "see above");
    assert!(replay.by_order <= 10, "{} by the order of busy ranges", replay.by_order);
    assert!(replay.by_time <= 5, "{} by the time of their end", replay.by_time);
    assert_eq!(replay.free_extents(), free_extents_of(&image), "free space at the end");
    replay
}

/// Without reverse mappings: the trace does not tell the owner of a block.
const PLAIN: &[&str] = &["-m", "rmapbt=0", "-d", "agcount=4"];

#[test]
fn same_extents_on_a_young_volume() {
    if !kernel::available_or_report() {
        return;
    }
    let case = Case { size: 1 << 30, arguments: PLAIN, aged: None, seed: 1, operations: 1200 };
    let replay = compared(&case);
    assert!(replay.near > 1000);
}

#[test]
fn same_extents_on_an_aged_volume() {
    if !kernel::available_or_report() {
        return;
    }
    // Some 1,800 free extents a group: two levels in both trees.
    let case =
        Case { size: 1 << 30, arguments: PLAIN, aged: Some((50, 20)), seed: 2, operations: 1200 };
    let replay = compared(&case);
    assert!(replay.near > 1000);
}
