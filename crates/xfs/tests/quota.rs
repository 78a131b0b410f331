//! Volumes whose kernel counts quotas: they can be changed, and are counted anew afterwards.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::FileDevice;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{OpenFile, Volume};

const USER: u32 = 4711;

/// Blocks of 1 KiB and inodes that the kernel has counted for the user.
fn counted(mount: &Path) -> (u64, u64) {
    let report = |kind: &str| {
        let commands = format!("quota -u -N -n {kind} {USER}");
        let output = Command::new("xfs_quota")
            .args(["-x", "-c", &commands])
            .arg(mount)
            .output()
            .expect("xfs_quota is part of xfsprogs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        number.unwrap_or(0)
    };
    (report("-b"), report("-i"))
}

#[test]
fn a_volume_with_quotas_is_changed_and_counted_anew() {
    if !kernel::available_or_report("a_volume_with_quotas_is_changed_and_counted_anew") {
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let image = scratch.path().join("volume.img");
    let tools = Xfsprogs::distribution().expect("xfsprogs is installed");
    tools.mkfs(&image, 320 << 20, &[]).expect("a volume");
    let mount = LoopMount::new(&image, Access::ReadWrite, &["uquota"]).expect("a mount");
    std::fs::write(mount.join("theirs"), vec![1; 100_000]).expect("a file");
    chown(mount.join("theirs"), Some(USER), None).expect("another owner");
    mount.unmount().expect("an unmount");

    let device = Arc::new(FileDevice::open(&image, false).expect("a device"));
    let volume = Volume::open_live(device, &LiveOptions::default()).expect("open for changes");
    assert!(volume.counted_quotas());
    let volume = Arc::new(volume);
    let new = NewInode { uid: USER, ..NewInode::new(FileType::Regular, 0o644) };
    let root = volume.geometry().root_inode;
    let number = ops::make(&volume, root, b"ours", &new).expect("a new file");
    let file = OpenFile::open(&volume, number).expect("open");
    file.write(0, &[2; 50_000], Timestamp::default()).expect("a write");
    drop(file);
    volume.close().expect("closed");
    let device = Arc::new(FileDevice::open(&image, true).expect("a device"));
    assert!(!Volume::open(device).expect("open").counted_quotas(), "it still says it counts");

    tools.repair_check(&image).expect("sound");
    Xfsprogs::newest().expect("newest xfsprogs").repair_check(&image).expect("sound");
    let mount = LoopMount::new(&image, Access::ReadWrite, &["uquota"]).expect("a mount");
    let blocks: u64 = ["theirs", "ours"]
        .map(|name| std::fs::metadata(mount.join(name)).expect("its metadata").blocks() / 2)
        .iter()
        .sum();
    assert_eq!(counted(mount.path()), (blocks, 2));
    mount.unmount().expect("an unmount");
}
