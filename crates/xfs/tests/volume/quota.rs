//! Volumes that count quotas: they can be changed, and say afterwards that nothing was counted, so
//! that a kernel with quotas counts anew.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice, Sector, read_exact_at, write_all_at};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_xfs::Volume;
use undercroft_xfs::format::{FileType, checksum, superblock};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::volume::LiveOptions;

/// Users and groups, accounted, enforced and checked.
const FLAGS: [u8; 2] = [0x01, 0xc7];

/// Says in the superblock that quotas are counted, as a kernel with quotas does.
fn count_quotas(image: &Path) {
    let device = FileDevice::open(image, false).expect("a device");
    let mut sector = [0; 512];
    read_exact_at(&device, Sector(0), &mut sector).expect("a superblock");
    sector[176..178].copy_from_slice(&FLAGS);
    checksum::stamp(&mut sector, superblock::CRC_OFFSET);
    write_all_at(&device, Sector(0), &sector).expect("written");
}

#[test]
fn a_volume_that_counts_quotas_is_changed_and_counts_no_more() {
    let scratch = tempfile::tempdir().expect("a directory");
    let image = scratch.path().join("volume.img");
    let tools = Xfsprogs::distribution().expect("xfsprogs is installed");
    tools.mkfs(&image, 320 << 20, &[]).expect("a volume");
    count_quotas(&image);

    let open = |read_only| -> Arc<dyn BlockDevice> {
        Arc::new(FileDevice::open(&image, read_only).expect("a device"))
    };
    let volume = Volume::open_live(open(false), &LiveOptions::default()).expect("for changes");
    assert!(volume.counted_quotas());
    let new = NewInode { uid: 4711, ..NewInode::new(FileType::Regular, 0o644) };
    ops::make(&volume, volume.geometry().root_inode, b"ours", &new).expect("a new file");
    volume.close().expect("closed");
    assert!(!Volume::open(open(true)).expect("open").counted_quotas(), "it says it counts");

    tools.repair_check(&image).expect("sound");
    Xfsprogs::newest().expect("newest xfsprogs").repair_check(&image).expect("sound");
    if kernel::available_or_report() {
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).expect("a mount");
        assert!(mount.join("ours").exists());
        mount.unmount().expect("an unmount");
    }
}
