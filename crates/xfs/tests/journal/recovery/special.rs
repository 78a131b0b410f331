//! States of a journal that plain load seldom makes, and those on which Linux itself fails
//! (docs/format/journal/replay.md#limits-of-linux).

use super::links;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel, rounds};
use undercroft_testkit::xfs::recovery::judged::{Disagreement, judge};
use undercroft_testkit::xfs::recovery::load::{self, End, shut_down};
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::bmap;
use undercroft_xfs::recovery::recover;
use undercroft_xfs::{Volume, ops};

/// Replays the volume in place; it must be sound then.
fn replay(image: &Path) {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    assert!(recover(&device, &mut |_| {}).unwrap().is_some(), "the volume was not dirty");
    let report = check(device, &CheckOptions::default(), &mut |finding| panic!("{finding}"));
    assert!(report.unwrap().is_clean());
    Xfsprogs::newest().unwrap().repair_check(image).unwrap();
}

#[test]
fn journals_that_went_around() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("image");
    let format = ["-d", "agcount=2", "-l", "size=10m"];
    let new_volume = || Xfsprogs::newest().unwrap().mkfs(&image, 1 << 30, &format).unwrap();
    let mut around = 0;
    for seed in 0..40 {
        // More loads than these fill it.
        if seed % 10 == 0 {
            new_volume();
        }
        let Ok(mount) = LoopMount::new(&image, Access::ReadWrite, &[]) else {
            // It refuses the volume that it left itself: nothing to go on with.
            new_volume();
            continue;
        };
        let end = if seed % 2 == 0 { End::Flushed } else { End::Cut };
        let log = Log::of(mount.path());
        load::run_until(mount.path(), 9000 + seed, end, |_| log.goes_around());
        mount.unmount().unwrap();
        // It may have gone on before it was stopped.
        if !goes_around(&image) {
            continue;
        }
        match judge(&image) {
            Err(Disagreement::KernelFails(_)) => {}
            report => {
                report.unwrap().unwrap();
                around += 1;
            }
        }
        if around == rounds(1, 4) {
            return;
        }
    }
    panic!("{around} journals of 40 went around");
}

/// What the kernel tells of the journal of a mounted volume.
struct Log(PathBuf);

impl Log {
    fn of(root: &Path) -> Self {
        let device = fs::metadata(root).unwrap().dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let place = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).unwrap();
        let log = Path::new("/sys/fs/xfs").join(place.file_name().unwrap()).join("log");
        assert!(log.is_dir(), "the kernel tells of no journals in {}", log.display());
        Self(log)
    }

    /// Whether what is to be replayed reaches from its end to its start.
    fn goes_around(&self) -> bool {
        let block = |name| -> u64 {
            let position = fs::read_to_string(self.0.join(name)).unwrap();
            position.trim().split_once(':').unwrap().1.parse().unwrap()
        };
        block("log_head_lsn") < block("log_tail_lsn")
    }
}

#[test]
fn removals_of_parent_pointers_that_were_cut_off() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("image");
    let mut cut_off = 0;
    for round in 0..60 {
        Xfsprogs::newest().unwrap().mkfs(&image, 512 << 20, &["-n", "parent=1"]).unwrap();
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        links::rename(mount.path(), Duration::from_millis(30 + round * 37 % 120));
        mount.unmount().unwrap();
        let report = judge(&image).unwrap().expect("it was not unmounted");
        cut_off += u32::from(report.intents > 0);
        if cut_off == 6 {
            return;
        }
    }
    panic!("the journals of 60 have {cut_off} with operations that were cut off");
}

/// Whether the records to be replayed begin behind the end of the journal.
fn goes_around(image: &Path) -> bool {
    let volume = Volume::open(Arc::new(FileDevice::open(image, true).unwrap())).unwrap();
    volume.recovery().is_some_and(|report| report.tail.block() > report.head.block())
}

#[test]
fn a_record_size_that_changed_loses_nothing() {
    if !kernel::available_or_report() {
        return;
    }
    for sizes in [["logbsize=32k", "logbsize=256k"], ["logbsize=256k", "logbsize=32k"]] {
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        Xfsprogs::newest().unwrap().mkfs(&image, 512 << 20, &[]).unwrap();
        for (number, size) in sizes.iter().enumerate() {
            let mount = LoopMount::new(&image, Access::ReadWrite, &[size]).unwrap();
            for name in 0..20 {
                let path = mount.join(format!("{number}-{name}"));
                fs::write(&path, format!("{number} {name}")).unwrap();
                File::open(&path).unwrap().sync_all().unwrap();
            }
            shut_down(mount.path(), End::Cut);
            mount.unmount().unwrap();
        }
        replay(&image);
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        for number in 0..2 {
            for name in 0..20 {
                let content = fs::read_to_string(mount.join(format!("{number}-{name}")));
                assert_eq!(content.unwrap(), format!("{number} {name}"), "{sizes:?}");
            }
        }
        mount.unmount().unwrap();
    }
}

/// Leaves no free space on the mounted volume but blocks of 4 KiB that have no free neighbours. The
/// volume has no trees that space is kept for.
fn fragment(root: &Path) {
    // What the kernel keeps for itself lies in one piece.
    let own = Command::new("xfs_io").args(["-x", "-c", "resblks 0"]).arg(root).status();
    assert!(own.expect("xfs_io of the distribution").success());
    let file = File::create(root.join("space")).unwrap();
    let (mut from, mut len) = (0, 16 << 20);
    while len >= 4096 {
        match fallocate(&file, FallocateFlags::empty(), from, len) {
            Ok(()) => from += len,
            Err(_) => len /= 2,
        }
    }
    for hole in 0..8000 {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, flags, hole * 8192, 4096).unwrap();
    }
}

/// Extents of a directory, and its blocks of `size` bytes.
fn pieces(image: &Path, name: &str, size: u64) -> (usize, u64) {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
    let volume = Volume::open(device).unwrap();
    let root = volume.inode(volume.geometry().root_inode).unwrap();
    let number = ops::lookup(&volume, &root.read(), name.as_bytes()).unwrap().unwrap();
    let inode = volume.inode(number).unwrap();
    let inode = inode.read();
    let extents = bmap::extents(&volume, &inode, ForkKind::Data).unwrap().as_slice();
    let blocks: u64 = extents.iter().map(|extent| u64::from(extent.len)).sum();
    (extents.len(), blocks * volume.geometry().block_size() as u64 / size)
}

/// The blocks of a directory are in many pieces: Linux 6.18 refuses to mount the volume that it
/// left itself.
#[test]
fn directory_blocks_in_pieces() {
    if !kernel::available_or_report() {
        return;
    }
    for size in [8192, 65536] {
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        let (trees, size_text) =
            ("rmapbt=0,reflink=0,finobt=0,inobtcount=0", format!("size={size}"));
        let format = ["-m", trees, "-n", &size_text];
        Xfsprogs::newest().unwrap().mkfs(&image, 320 << 20, &format).unwrap();
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        let root = mount.path();
        File::create(root.join("file")).unwrap();
        // A block, a leaf, a tree of hashes.
        let names = [5, 300, 4000];
        for count in names {
            fs::create_dir(root.join(count.to_string())).unwrap();
        }
        fragment(root);
        rustix::fs::syncfs(File::open(root).unwrap()).unwrap();
        let name = |number: u64| format!("{number}-{}", "n".repeat(100));
        for count in names {
            let directory = root.join(count.to_string());
            for number in 0..count {
                fs::hard_link(root.join("file"), directory.join(name(number))).unwrap();
            }
            for number in (0..count).step_by(7) {
                fs::remove_file(directory.join(name(number))).unwrap();
            }
        }
        shut_down(root, End::Flushed);
        mount.unmount().unwrap();
        let copy = image.with_extension("theirs");
        undercroft_judges::image::copy(&image, &copy).unwrap();
        let refused = LoopMount::new(&copy, Access::ReadWrite, &[]).err();
        println!("{size}: the kernel says {refused:?}");
        let largest = names.last().unwrap().to_string();
        // In memory, then in place.
        let (extents, blocks) = pieces(&image, &largest, size);
        assert!(extents as u64 > blocks * 3 / 2, "{extents} extents in {blocks} blocks");
        replay(&image);
        assert_eq!(pieces(&image, &largest, size), (extents, blocks));
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        for count in names {
            let directory = mount.join(count.to_string());
            for number in 0..count {
                let exists = directory.join(name(number)).exists();
                assert_eq!(exists, number % 7 != 0, "{size}: {number} of {count}");
            }
            let left = count - count.div_ceil(7);
            assert_eq!(fs::read_dir(&directory).unwrap().count() as u64, left, "{size}");
        }
        mount.unmount().unwrap();
    }
}
