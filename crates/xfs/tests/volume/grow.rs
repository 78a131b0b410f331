//! Volumes made larger, compared with what `xfs_growfs` makes of a copy.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_testkit::xfs::judged;
use undercroft_xfs::maintain;

const MIB: u64 = 1 << 20;

fn device(image: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, false).unwrap())
}

fn resize(image: &Path, size: u64) {
    OpenOptions::new().write(true).open(image).unwrap().set_len(size).unwrap();
}

/// A volume with some files by the kernel.
fn filled(image: &Path, size: u64, arguments: &[&str]) {
    Xfsprogs::newest().unwrap().mkfs(image, size, arguments).unwrap();
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    for number in 0..50_u8 {
        let path = mount.join(format!("file-{number}"));
        std::fs::write(path, vec![number; 20_000 * usize::from(number)]).unwrap();
    }
    mount.unmount().unwrap();
}

/// What superblock and headers say of the sizes.
fn sizes(image: &Path) -> String {
    let fields = "print dblocks agcount fdblocks icount ifree rootino";
    let mut commands = vec!["sb 0".to_owned(), fields.to_owned()];
    let xfsprogs = Xfsprogs::newest().unwrap();
    let count = xfsprogs.db(image, &["sb 0", "print agcount"]).unwrap();
    let count: u32 = count.trim().rsplit(' ').next().unwrap().parse().unwrap();
    for ag in 0..count {
        let group = [
            format!("sb {ag}"),
            "print dblocks agcount inprogress rootino".into(),
            format!("agf {ag}"),
            "print length".into(),
            format!("agi {ag}"),
            "print length".into(),
        ];
        commands.extend(group);
    }
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    xfsprogs.db(image, &commands).unwrap()
}

#[test]
fn grown_as_by_the_kernel() {
    if !kernel::available_or_report() {
        return;
    }
    let cases: [(&str, u64, u64, &[&str]); 5] = [
        ("a longer last group and new ones", 300, 1000, &["-d", "agsize=64m"]),
        ("new groups alone", 256, 512, &["-d", "agcount=4"]),
        ("a small group behind full ones", 256, 261, &["-d", "agcount=4"]),
        ("a longer last group alone", 300, 310, &["-d", "agsize=64m"]),
        ("1 KiB blocks, no rmapbt", 320, 777, &["-b", "size=1024", "-m", "rmapbt=0,reflink=0"]),
    ];
    for (name, from, to, arguments) in cases {
        let directory = tempfile::tempdir().unwrap();
        let (image, copy) = (directory.path().join("ours.img"), directory.path().join("its.img"));
        filled(&image, from * MIB, arguments);
        std::fs::copy(&image, &copy).unwrap();
        resize(&image, to * MIB);
        resize(&copy, to * MIB);
        let growth = maintain::grow(&device(&image), None).unwrap();
        assert!(growth.blocks > growth.blocks_before, "{name}: {growth:?}");
        judged::sound(&image, name);
        let mount = LoopMount::new(&copy, Access::ReadWrite, &[]).unwrap();
        let grown = Command::new("xfs_growfs").arg("-d").arg(mount.path()).output().unwrap();
        assert!(grown.status.success(), "{name}: {}", String::from_utf8_lossy(&grown.stderr));
        mount.unmount().unwrap();
        assert_eq!(sizes(&image), sizes(&copy), "{name}");
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        for number in 0..50_u8 {
            let bytes = std::fs::read(mount.join(format!("file-{number}"))).unwrap();
            assert_eq!(bytes, vec![number; 20_000 * usize::from(number)], "{name}");
        }
        // The new space is of use.
        let added = (growth.blocks - growth.blocks_before) << if from == 320 { 10 } else { 12 };
        std::fs::write(mount.join("large"), vec![7; added as usize]).unwrap();
        mount.unmount().unwrap();
        judged::sound(&image, name);
    }
}

#[test]
fn what_cannot_grow_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("small.img");
    Xfsprogs::newest().unwrap().mkfs(&image, 64 * MIB, &["-d", "agcount=2"]).unwrap();
    let before = std::fs::read(&image).unwrap();
    let refused = |size| maintain::grow(&device(&image), size).unwrap_err().to_string();
    let message = refused(Some(32 * MIB));
    assert!(message.contains("16384 blocks and cannot shrink"), "{message}");
    let message = refused(Some(100 * MIB));
    assert!(message.contains("the device has 67108864 bytes"), "{message}");
    assert!(std::fs::read(&image).unwrap() == before, "the volume was changed");
    resize(&image, 64 * MIB + 63 * 4096);
    // A rest that makes no group is nothing to gain.
    let growth = maintain::grow(&device(&image), None).unwrap();
    assert_eq!((growth.blocks, growth.groups), (growth.blocks_before, growth.groups_before));
    resize(&image, 64 * MIB);
    judged::sound(&image, "nothing to gain");
}

/// The least rest behind full groups that becomes one.
#[test]
fn the_smallest_group_is_that_of_the_kernel() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (image, copy) = (directory.path().join("ours.img"), directory.path().join("its.img"));
    filled(&image, 64 * MIB, &["-d", "agcount=2"]);
    let whole = 64 * MIB + 64 * 4096;
    std::fs::copy(&image, &copy).unwrap();
    resize(&image, whole);
    resize(&copy, whole);
    assert_eq!(maintain::grow(&device(&image), None).unwrap().groups, 3);
    judged::sound(&image, "64 blocks");
    let mount = LoopMount::new(&copy, Access::ReadWrite, &[]).unwrap();
    let grown = Command::new("xfs_growfs").arg("-d").arg(mount.path()).output().unwrap();
    assert!(grown.status.success(), "{}", String::from_utf8_lossy(&grown.stderr));
    mount.unmount().unwrap();
    assert_eq!(sizes(&image), sizes(&copy));
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    std::fs::write(mount.join("more"), vec![3; 1 << 20]).unwrap();
    mount.unmount().unwrap();
    judged::sound(&image, "64 blocks, in use");
}
