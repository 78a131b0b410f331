//! `undercroft upgrade`: what it tells, what it changes, and what it refuses.

use std::fs;
use std::path::Path;

use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};

use crate::run::{fails, succeeds};

/// A volume of few features with some files, built from a tree.
fn old(directory: &Path) -> String {
    let tree = directory.join("tree");
    for name in ["a", "b", "c"] {
        fs::create_dir_all(tree.join(name)).unwrap();
        fs::write(tree.join(name).join("file"), name.repeat(5000)).unwrap();
    }
    let image = directory.join("disk.img").to_str().unwrap().to_owned();
    succeeds(["build", "--size", "96M", "--preset", "lts-5.4", tree.to_str().unwrap(), &image]);
    image
}

#[test]
fn features_are_turned_on_and_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let image = old(directory.path());
    let before = fs::read(&image).unwrap();
    let told = succeeds(["upgrade", "--to", "lts-6.12", "--dry-run", &image]);
    assert!(told.starts_with("to be turned on: inobtcount, bigtime, rmapbt, nrext64\n"), "{told}");
    assert!(told.contains("the journal moves into free space"), "{told}");
    assert!(fs::read(&image).unwrap() == before, "a plan changes nothing");
    let copy = directory.path().join("copy.img").to_str().unwrap().to_owned();
    fs::write(&copy, &before).unwrap();
    let undo = directory.path().join("undo").to_str().unwrap().to_owned();
    let told = succeeds(["upgrade", "--to", "default", "--undo", &undo, &image]);
    assert!(told.contains("parent pointers: 6\n"), "{told}");
    Xfsprogs::newest().unwrap().repair_check(Path::new(&image)).unwrap();
    succeeds(["diff", &copy, &image]);
    assert_eq!(succeeds(["upgrade", "--to", "default", &image]), "nothing to change\n");
    let message = fails(1, ["upgrade", "--features", "+exchange", "--undo", &undo, &copy]);
    assert!(message.contains("undo"), "{message}");
    let told = succeeds(["upgrade", "--undo-with", &undo, &image]);
    assert!(told.starts_with("the upgrade is taken back"), "{told}");
    succeeds(["check", &image]);
    let told =
        succeeds(["upgrade", "--json", "--features", "+rmapbt,+finobt", "--dry-run", &image]);
    let report: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(report["on"], serde_json::json!(["rmapbt"]));
    assert_eq!(report["changed"], false);
}

#[test]
fn what_is_wrong_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let image = old(directory.path());
    let before = fs::read(&image).unwrap();
    let message = fails(2, ["upgrade", "--features", "+quota", &image]);
    assert!(
        message.contains("there is no feature quota") && message.contains("nrext64"),
        "{message}"
    );
    let message = fails(2, ["upgrade", "--features", "rmapbt", &image]);
    assert!(message.contains("+NAME"), "{message}");
    let message = fails(2, ["upgrade", "--to", "lts-3.10", &image]);
    assert!(message.contains("lts-6.12"), "{message}");
    assert!(fails(2, ["upgrade", &image]).contains("--to"));
    assert!(fs::read(&image).unwrap() == before);
    let version_4 = directory.path().join("v4");
    let tools = Xfsprogs::newest().unwrap();
    tools.mkfs(&version_4, 320 << 20, &["-m", "crc=0,finobt=0,rmapbt=0,reflink=0"]).unwrap();
    let message = fails(1, ["upgrade", "--features", "+crc", version_4.to_str().unwrap()]);
    assert!(message.contains("version 4") && message.contains("undercroft copy"), "{message}");
}

/// One that is mounted is left alone; what the kernel left is replayed first.
#[test]
fn a_journal_is_replayed_first() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (mounted, dirty) = (directory.path().join("mounted"), directory.path().join("dirty"));
    let tools = Xfsprogs::newest().unwrap();
    tools.mkfs(&mounted, 320 << 20, &["-m", "rmapbt=0", "-n", "parent=0"]).unwrap();
    let mount = LoopMount::new(&mounted, Access::ReadWrite, &[]).unwrap();
    fs::write(mount.join("early"), "early").unwrap();
    let file = fs::File::open(mount.join("early")).unwrap();
    file.sync_all().unwrap();
    image::copy(&mounted, &dirty).unwrap();
    let message = fails(1, ["upgrade", "--features", "+rmapbt", mounted.to_str().unwrap()]);
    assert!(message.contains("is mounted at"), "{message}");
    drop(file);
    mount.unmount().unwrap();
    let dirty = dirty.to_str().unwrap();
    let told = succeeds(["upgrade", "--features", "+rmapbt,+parent", dirty]);
    assert!(told.contains("the journal was replayed"), "{told}");
    assert_eq!(succeeds(["cat", dirty, "/early"]), "early");
    tools.repair_check(Path::new(dirty)).unwrap();
}
