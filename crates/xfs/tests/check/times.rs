//! Times out of range, about which `xfs_repair -n` is silent when the wide encoding holds them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::FileDevice;
use undercroft_judges::Xfsprogs;
use undercroft_testkit::xfs::check::{check_image, describe};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{Finding, Location, Severity};
use undercroft_xfs::format::stamp_inode_crc;

const SIZE: u64 = 64 << 20;
const MTIME: usize = 40;
const NANOSECONDS: usize = MTIME + 4;

/// Makes a clean volume and changes its root directory with `change`; returns the findings, and
/// whether `xfs_repair -n` is silent.
fn findings_after(arguments: &[&str], change: impl FnOnce(&mut [u8])) -> (Vec<Finding>, bool) {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let image = scratch.path().join("image");
    let tools = Xfsprogs::newest().expect("run `cargo xtask judges`");
    tools.mkfs(&image, SIZE, arguments).expect("mkfs.xfs takes the arguments");
    let (report, _) = check_image(&image).expect("a superblock");
    assert!(report.is_clean(), "{report:?}");
    edit_root(&image, change);
    let silent = tools.repair_check(&image).is_ok();
    (check_image(&image).expect("a superblock").1, silent)
}

/// Changes the bytes of the root inode and makes their checksum right.
fn edit_root(image: &Path, change: impl FnOnce(&mut [u8])) {
    let device = Arc::new(FileDevice::open(image, true).expect("the image opens"));
    let volume = Volume::open(device).expect("a sound volume");
    let geometry = volume.geometry();
    let (ag, inode) = geometry.split_inode(geometry.root_inode);
    let (block, index) = geometry.inode_block(inode);
    let size = geometry.inode_size();
    let place = geometry.ag_sector(ag, block).0 * 512 + u64::from(index) * size as u64;
    let mut bytes = vec![0; size];
    let file = File::options().read(true).write(true).open(image).expect("the image opens");
    file.read_exact_at(&mut bytes, place).expect("the image is long enough");
    change(&mut bytes);
    stamp_inode_crc(&mut bytes);
    file.write_all_at(&bytes, place).expect("the image is writable");
}

#[test]
fn a_time_behind_the_wide_range_is_found() {
    let (findings, silent) = findings_after(&[], |inode| inode[MTIME..MTIME + 8].fill(0xff));
    assert!(silent && findings.len() == 1, "{}", describe(&findings));
    assert_eq!((findings[0].field, findings[0].severity), ("mtime", Severity::Error));
    assert!(matches!(findings[0].location, Location::Inode(_)));
}

#[test]
fn a_second_of_too_many_nanoseconds_is_found() {
    let arguments = ["-m", "bigtime=0"];
    let change = |inode: &mut [u8]| {
        inode[NANOSECONDS..NANOSECONDS + 4].copy_from_slice(&1_000_000_000_u32.to_be_bytes());
    };
    let (findings, silent) = findings_after(&arguments, change);
    assert!(!silent && findings.len() == 1, "{}", describe(&findings));
    assert_eq!(findings[0].field, "mtime");
}
