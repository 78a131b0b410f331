//! Removed files listed and copied out, from volumes of the kernel's XFS.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};

use crate::run::{fails, program, succeeds};

/// A volume from which `home/ann` was removed.
fn volume(home: &Path) -> String {
    let image = home.join("image");
    Xfsprogs::newest().unwrap().mkfs(&image, 320 << 20, &[]).unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    let ann = mount.join("home/ann");
    fs::create_dir_all(ann.join("deep")).unwrap();
    fs::write(ann.join("letter.txt"), "dear Bob\n").unwrap();
    fs::hard_link(ann.join("letter.txt"), ann.join("deep/copy.txt")).unwrap();
    fs::write(ann.join("picture.jpg"), vec![7; 100_000]).unwrap();
    std::os::unix::fs::symlink("letter.txt", ann.join("link")).unwrap();
    std::os::unix::fs::chown(ann.join("picture.jpg"), Some(1000), Some(1001)).unwrap();
    let name = ann.join("letter.txt");
    rustix::fs::setxattr(&name, "user.color", b"red", rustix::fs::XattrFlags::empty()).unwrap();
    fs::write(mount.join("stays"), "here").unwrap();
    mount.unmount().unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    fs::remove_dir_all(mount.join("home/ann")).unwrap();
    mount.unmount().unwrap();
    image.display().to_string()
}

#[test]
fn removed_files_are_listed_and_come_back() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = volume(home.path());
    let before = fs::read(&image).unwrap();

    let list = succeeds(["deleted", &image]);
    assert_eq!(list.lines().count(), 5, "{list}");
    assert!(list.lines().all(|line| line.starts_with("whole ")), "{list}");
    assert!(list.contains("/home/ann/deep/copy.txt /home/ann/letter.txt"), "{list}");
    assert!(list.contains("/home/ann/link -> letter.txt"), "{list}");
    let list = succeeds(["deleted", &image, "--name", "*.jpg", "--owner", "1000"]);
    assert!(list.lines().count() == 1 && list.contains("100000"), "{list}");
    assert_eq!(succeeds(["deleted", &image, "/home/bob"]), "");
    assert_eq!(succeeds(["deleted", &image, "--larger", "1M"]), "");
    let json: Value = serde_json::from_str(&succeeds(["deleted", &image, "--json"])).unwrap();
    let files = json["files"].as_array().unwrap();
    let picture = files.iter().find(|file| file["size"] == 100_000).unwrap();
    assert_eq!(picture["paths"][0]["name"], "/home/ann/picture.jpg");
    assert_eq!((&picture["uid"], &picture["state"]), (&1000.into(), &"whole".into()));

    let to = |name: &str| home.path().join(name).display().to_string();
    succeeds(["undelete", &image, "/home/ann", &to("rescued")]);
    let ann = home.path().join("rescued/home/ann");
    assert_eq!(fs::read(ann.join("letter.txt")).unwrap(), b"dear Bob\n");
    assert_eq!(fs::read(ann.join("picture.jpg")).unwrap(), vec![7; 100_000]);
    assert_eq!(fs::read_link(ann.join("link")).unwrap(), Path::new("letter.txt"));
    let [letter, copy] =
        ["letter.txt", "deep/copy.txt"].map(|name| fs::metadata(ann.join(name)).unwrap());
    assert_eq!((letter.ino(), letter.nlink()), (copy.ino(), 2));
    assert_eq!(fs::metadata(ann.join("picture.jpg")).unwrap().uid(), 1000);
    let mut value = [0; 8];
    let len = rustix::fs::getxattr(ann.join("letter.txt"), "user.color", &mut value).unwrap();
    assert_eq!(&value[..len], b"red");
    assert_eq!(fs::read(&image).unwrap(), before, "the volume was written to");
}

#[test]
fn removed_files_become_an_archive_and_what_is_not_there_is_named() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = volume(home.path());
    let archive = home.path().join("archive");
    let to = fs::File::create(&archive).unwrap();
    let status = program().args(["undelete", &image, "--all", "-"]).stdout(to).status();
    assert!(status.unwrap().success());
    let list = Command::new("tar").arg("tf").arg(&archive).stdin(Stdio::null()).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.contains("./home/ann/letter.txt\n"), "{list}");
    // A tree of its own, which can be built.
    let built = home.path().join("built").display().to_string();
    succeeds(["build", &archive.display().to_string(), &built]);
    assert_eq!(succeeds(["cat", &built, "/home/ann/letter.txt"]), "dear Bob\n");

    let nowhere = home.path().join("nowhere").display().to_string();
    let message = fails(1, ["undelete", &image, "/home/bob", &nowhere]);
    assert!(message.contains("undercroft deleted"), "{message}");
    assert!(!Path::new(&nowhere).exists());
    let message = fails(2, ["undelete", &image, &nowhere]);
    assert!(message.contains("--all"), "{message}");
}
