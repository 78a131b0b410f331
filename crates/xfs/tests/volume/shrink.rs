//! Volumes made smaller: judged, mounted, filled, emptied, and grown again by the kernel.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel, tree};
use undercroft_testkit::xfs::judged;
use undercroft_xfs::maintain::{self, ShrinkOptions, ShrinkTarget, Shrinkage};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume};

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn device(image: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, false).unwrap())
}

pub(crate) fn resize(image: &Path, size: u64) {
    OpenOptions::new().write(true).open(image).unwrap().set_len(size).unwrap();
}

/// Shrinks the volume of an image, and cuts the file behind it.
pub(crate) fn shrink(image: &Path, target: ShrinkTarget) -> Result<Shrinkage, Error> {
    shrink_with(image, ShrinkOptions { target, keep_inode_numbers: false })
}

/// As [`shrink`], with options.
pub(crate) fn shrink_with(image: &Path, options: ShrinkOptions) -> Result<Shrinkage, Error> {
    let done = maintain::shrink(&device(image), options, &mut |_, _| {})?;
    let block = Volume::open(device(image)).unwrap().geometry().block_size() as u64;
    resize(image, done.blocks * block);
    Ok(done)
}

/// Runs a script of bash in the kernel's mount of an image, up to the first error; the arguments begin
/// with `$0`, which names the run.
pub(crate) fn run_mounted(image: &Path, script: &str, arguments: &[&str]) {
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-ec", script]).args(arguments).current_dir(mount.path());
    let output = bash.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    mount.unmount().unwrap();
}

/// Compares what the kernel sees in two images, by all but places and numbers of inodes.
pub(crate) fn same(left: &Path, right: &Path) {
    let left = LoopMount::new(left, Access::ReadWrite, &["nouuid"]).unwrap();
    let right = LoopMount::new(right, Access::ReadWrite, &["nouuid"]).unwrap();
    tree::compare(left.path(), right.path(), &tree::Options::default()).unwrap().assert_same();
    right.unmount().unwrap();
    left.unmount().unwrap();
}

/// The contents of file `number`.
fn contents(number: u8) -> Vec<u8> {
    vec![number; 20_000 * usize::from(number)]
}

/// A volume with some files in its root directory by the kernel, all in the first group.
fn filled(image: &Path, size: u64, arguments: &[&str]) {
    Xfsprogs::newest().unwrap().mkfs(image, size, arguments).unwrap();
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    for number in 0..20_u8 {
        std::fs::write(mount.join(format!("file-{number}")), contents(number)).unwrap();
    }
    mount.unmount().unwrap();
}

/// Mounts an image, compares its files, fills it to the brim, empties it, and has the kernel grow it
/// to `size` bytes.
fn used_by_the_kernel(image: &Path, size: u64, what: &str) {
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    for number in 0..20_u8 {
        let bytes = std::fs::read(mount.join(format!("file-{number}"))).unwrap();
        assert!(bytes == contents(number), "{what}: file {number} differs");
    }
    let mut written = 0;
    for number in 0..10_000 {
        match std::fs::write(mount.join(format!("filler-{number}")), vec![1; MIB as usize]) {
            Ok(()) => written += 1,
            Err(_) => break,
        }
    }
    assert!(written < 10_000, "{what}: never full");
    mount.unmount().unwrap();
    judged::sound(image, &format!("{what}, full"));
    resize(image, size);
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    for number in 0..=written {
        let _ = std::fs::remove_file(mount.join(format!("filler-{number}")));
    }
    let grown = Command::new("xfs_growfs").arg("-d").arg(mount.path()).output().unwrap();
    assert!(grown.status.success(), "{what}: {}", String::from_utf8_lossy(&grown.stderr));
    mount.unmount().unwrap();
    judged::sound(image, &format!("{what}, grown again"));
}

#[test]
fn groups_that_hold_nothing_go() {
    if !kernel::available_or_report() {
        return;
    }
    let (count, tail) = (["-d", "agcount=8", "-l", "agnum=0"], MIB + 12 * 4096);
    let small = ["-b", "size=1024", "-d", "agcount=8", "-l", "agnum=0"];
    let cases: [(&str, u64, u64, &[&str]); 5] = [
        ("whole groups", 512 * MIB, 256 * MIB, &count),
        ("down to two groups", 512 * MIB, 128 * MIB, &count),
        ("whole groups and a short last one", 512 * MIB, 192 * MIB + tail, &count),
        ("the last group alone", 512 * MIB, 500 * MIB, &count),
        ("1 KiB blocks", 512 * MIB, 192 * MIB + 3 * MIB, &small),
    ];
    for (name, from, to, arguments) in cases {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        filled(&image, from, arguments);
        let done = shrink(&image, ShrinkTarget::Bytes(to)).unwrap();
        assert_eq!(image.metadata().unwrap().len(), to, "{name}: {done:?}");
        assert!(done.obstacles.is_empty() && done.smallest * 4096 < from, "{name}: {done:?}");
        judged::sound(&image, name);
        used_by_the_kernel(&image, from, name);
    }
}

#[test]
fn the_smallest_size_is_possible() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    filled(&image, 512 * MIB, &["-d", "agcount=8", "-l", "agnum=0"]);
    let done = shrink(&image, ShrinkTarget::Smallest).unwrap();
    assert_eq!((done.groups, done.blocks), (2, done.smallest), "{done:?}");
    judged::sound(&image, "the smallest");
    let error = shrink(&image, ShrinkTarget::Bytes(100 * MIB)).unwrap_err().to_string();
    assert!(error.contains("that is to grow"), "{error}");
    used_by_the_kernel(&image, 512 * MIB, "the smallest");
}

#[test]
fn a_small_volume_of_one_group_keeps_it() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let options = undercroft_xfs::mkfs::MkfsOptions {
        ag_count: Some(1),
        ..undercroft_testkit::xfs::journal::crash::options(64 << 20, 7)
    };
    let memory = undercroft_testkit::xfs::journal::crash::make(&options);
    let mut bytes = vec![0; 64 << 20];
    undercroft_block::read_exact_at(memory.as_ref(), undercroft_block::Sector(0), &mut bytes)
        .unwrap();
    std::fs::write(&image, bytes).unwrap();
    let done = shrink(&image, ShrinkTarget::Bytes(40 << 20)).unwrap();
    assert_eq!((done.groups, done.blocks), (1, 10 << 10));
    Volume::open_live(device(&image), &LiveOptions::default()).unwrap().close().unwrap();
}

#[test]
fn what_cannot_shrink_is_refused_and_left_alone() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let refused = |size| {
        let before = std::fs::read(&image).unwrap();
        let target = ShrinkTarget::Bytes(size);
        let message = shrink_with(&image, ShrinkOptions { target, keep_inode_numbers: true });
        let message = message.unwrap_err();
        assert!(std::fs::read(&image).unwrap() == before, "the volume was changed");
        message.to_string()
    };
    // Its journal is needed where it is: the number of the root inode depends on it.
    filled(&image, 256 * MIB, &["-d", "agcount=4", "-l", "agnum=0"]);
    assert!(refused(64 * MIB).contains("too small"));
    assert!(refused(4096).contains("too small"));
    assert!(refused(257 * MIB).contains("that is to grow"));
    // Directories are spread over the groups, and inodes with them.
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    (0..4).for_each(|number| std::fs::create_dir(mount.join(format!("dir-{number}"))).unwrap());
    mount.unmount().unwrap();
    let message = refused(128 * MIB);
    assert!(message.contains("inodes are in what would go"), "{message}");
    assert!(message.contains("the smallest size"), "{message}");
}
