//! What the kernel and `xfs_repair` say of a volume that was changed here.

use crate::volumes::{image_with, options, same};
use rustix::fs::{major, minor};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use undercroft_fs::{
    Allocation, Change, FileSystem, NewFile, Owner, RenameFlags, SetMode, SetTime, Timestamp,
};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_xfs::mkfs::Feature;

fn fill(fs: &FileSystem) {
    let root = fs.root();
    fs.create_dir_all("/upper/dir").unwrap();
    fs.create_dir("/work").unwrap();
    for name in ["gone", "kept", "over"] {
        fs.write(format!("/upper/{name}"), name).unwrap();
    }
    let [upper, work] = ["/upper", "/work"].map(|path| fs.metadata(path).unwrap().number);
    let leaving = RenameFlags { whiteout: Some(Owner { uid: 3, gid: 4 }), ..RenameFlags::REPLACE };
    fs.nodes().rename((upper, b"gone"), (work, b"moved"), leaving).unwrap();
    fs.nodes().rename((upper, b"kept"), (upper, b"over"), leaving).unwrap();
    fs.nodes().rename((upper, b"dir"), (work, b"dir"), leaving).unwrap();
    // In a directory in blocks.
    fs.create_dir("/many").unwrap();
    let many = fs.metadata("/many").unwrap().number;
    for number in 0..500 {
        let name = format!("a-rather-long-name-{number:04}");
        fs.write(format!("/many/{name}"), "").unwrap();
        if number % 3 == 0 {
            fs.nodes().rename((many, name.as_bytes()), (work, name.as_bytes()), leaving).unwrap();
        }
    }
    let file = fs.create_file("/file", &NewFile::new(0o640)).unwrap();
    file.write_at(0, &[1; 100_000]).unwrap();
    file.allocate(Allocation::PunchHole, 8192..16384).unwrap();
    fs.copy("/file", "/copy").unwrap();
    fs.open_file("/copy").unwrap().allocate(Allocation::Unshare, 0..50_000).unwrap();
    fs.nodes().set_xattr(file.number(), b"user.x", b"value", SetMode::Create).unwrap();
    let time = SetTime::To(Timestamp { seconds: 1_234_567_890, nanoseconds: 12 });
    let change = Change { modified: Some(time), uid: Some(5), ..Change::default() };
    file.set_attributes(&change).unwrap();
    let unnamed = fs.nodes().tmpfile(root, &NewFile::new(0o600)).unwrap();
    fs.nodes().link_file(&unnamed, root, b"named").unwrap();
}

#[test]
fn the_kernel_sees_whiteouts_and_all_else() {
    if !kernel::available_or_report() {
        return;
    }
    for features in [&[][..], &[(Feature::Parent, true)], &[(Feature::Reflink, false)]] {
        judge(features);
    }
}

fn judge(features: &[(Feature, bool)]) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("image");
    let device = image_with(&path, features);
    let fs = FileSystem::open(device, &options()).unwrap();
    fill(&fs);
    fs.close().unwrap();
    drop(fs);
    Xfsprogs::newest().unwrap().repair_check(&path).unwrap();
    let mount = LoopMount::new(&path, Access::ReadOnly, &[]).unwrap();
    let whiteout = |name: &str| {
        let found = std::fs::symlink_metadata(mount.join(name)).unwrap();
        assert!(found.file_type().is_char_device(), "{name}");
        assert_eq!((major(found.rdev()), minor(found.rdev())), (0, 0), "{name}");
        assert_eq!((found.mode() & 0o7777, found.uid(), found.gid()), (0, 3, 4), "{name}");
        assert_eq!(found.nlink(), 1, "{name}");
    };
    for name in ["upper/gone", "upper/kept", "upper/dir", "many/a-rather-long-name-0003"] {
        whiteout(name);
    }
    assert_eq!(std::fs::read(mount.join("work/moved")).unwrap(), b"gone");
    assert_eq!(std::fs::read(mount.join("upper/over")).unwrap(), b"kept");
    assert!(mount.join("work/dir").is_dir());
    assert_eq!(std::fs::metadata(mount.join("upper")).unwrap().nlink(), 2);
    let mut expected = vec![1; 100_000];
    expected[8192..16384].fill(0);
    for name in ["file", "copy"] {
        same(&std::fs::read(mount.join(name)).unwrap(), &expected);
    }
    let file = std::fs::metadata(mount.join("file")).unwrap();
    assert_eq!((file.mtime(), file.mtime_nsec(), file.uid()), (1_234_567_890, 12, 5));
    assert_eq!(std::fs::metadata(mount.join("named")).unwrap().nlink(), 1);
    mount.unmount().unwrap();
}
