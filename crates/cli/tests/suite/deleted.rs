//! Removed files listed and copied out, from volumes of the kernel's XFS.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};

use crate::ann;
use crate::run::{fails, program, succeeds};

/// A volume from which `home/ann` was removed.
fn volume(home: &Path) -> String {
    let image = ann::volume(home, |ann, root| {
        ann::set_attribute(&ann.join("letter.txt"), "user.color", b"red");
        fs::write(root.join("stays"), "here").unwrap();
    });
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
    let names = succeeds(["deleted", "-0", &image]);
    let mut names: Vec<_> = names.strip_suffix('\0').unwrap().split('\0').collect();
    names.sort_unstable();
    assert_eq!(names.len(), 6, "{names:?}");
    assert_eq!(names[2..4], ["/home/ann/deep/copy.txt", "/home/ann/letter.txt"]);
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

/// All of a removed directory, back in the volume; names that exist again get a number.
#[test]
fn removed_files_go_back_where_they_were() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = volume(home.path());
    succeeds(["mkdir", &image, "--parents", "/home/ann"]);
    let other = home.path().join("other");
    fs::write(&other, "another letter\n").unwrap();
    succeeds(["put", &image, &other.display().to_string(), "/home/ann/letter.txt"]);

    let message = fails(2, ["undelete", "--in-place", &image]);
    assert!(message.contains("--all"), "{message}");
    let message = fails(1, ["undelete", "--in-place", &image, "/home/bob"]);
    assert!(message.contains("undercroft deleted"), "{message}");
    let json: Value =
        serde_json::from_str(&succeeds(["undelete", "--in-place", "--json", &image, "/home/ann"]))
            .unwrap();
    assert_eq!((&json["files"], &json["failed"]), (&2.into(), &0.into()), "{json}");
    Xfsprogs::newest().unwrap().repair_check(Path::new(&image)).unwrap();
    let cat = |path: &str| succeeds(["cat", &image, path]);
    assert_eq!(cat("/home/ann/letter.txt"), "another letter\n");
    assert_eq!(cat("/home/ann/letter.txt.1"), "dear Bob\n");

    let mount = LoopMount::new(Path::new(&image), Access::ReadWrite, &[]).unwrap();
    let ann = mount.join("home/ann");
    assert_eq!(fs::read(ann.join("picture.jpg")).unwrap(), vec![7; 100_000]);
    assert_eq!(fs::read_link(ann.join("link")).unwrap(), Path::new("letter.txt"));
    let [letter, copy] =
        ["letter.txt.1", "deep/copy.txt"].map(|name| fs::metadata(ann.join(name)).unwrap());
    assert_eq!((letter.ino(), letter.nlink()), (copy.ino(), 2));
    let picture = fs::metadata(ann.join("picture.jpg")).unwrap();
    assert_eq!((picture.uid(), picture.gid()), (1000, 1001));
    let mut value = [0; 8];
    let len = rustix::fs::getxattr(ann.join("letter.txt.1"), "user.color", &mut value).unwrap();
    assert_eq!(&value[..len], b"red");
    mount.unmount().unwrap();

    // All of it is back: there is nothing that can be got back another time, or it is left alone.
    let again = program().args(["undelete", "--in-place", &image, "/home/ann"]).output().unwrap();
    let names = succeeds(["ls", &image, "/home/ann"]);
    assert!(!names.contains("letter.txt.2") && !names.contains("link.1"), "{names} {again:?}");
}

#[test]
fn a_file_whose_blocks_are_in_use_is_not_put_back() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image").display().to_string();
    Xfsprogs::newest().unwrap().mkfs(Path::new(&image), 320 << 20, &[]).unwrap();
    let mount = LoopMount::new(Path::new(&image), Access::ReadWrite, &[]).unwrap();
    fs::write(mount.join("file"), vec![7; 100_000]).unwrap();
    mount.unmount().unwrap();
    succeeds(["clone", &image, "/file", "/clone"]);
    succeeds(["rm", &image, "/file"]);
    let list = succeeds(["deleted", &image]);
    assert!(list.starts_with("shared "), "{list}");
    let message = fails(1, ["undelete", "--in-place", &image, "/file"]);
    assert!(message.contains("undercroft deleted"), "{message}");
    assert!(!succeeds(["ls", &image, "/"]).contains("file"));
}

#[test]
fn removed_files_become_a_volume_and_a_wipe_leaves_none() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = volume(home.path());
    let new = home.path().join("new").display().to_string();
    let told = succeeds(["undelete", &image, "/home/ann", "--to-image", &new]);
    assert!(told.contains("2 files"), "{told}");
    Xfsprogs::newest().unwrap().repair_check(Path::new(&new)).unwrap();
    assert_eq!(succeeds(["cat", &new, "/home/ann/deep/copy.txt"]), "dear Bob\n");

    succeeds(["rm", "-r", "--wipe", &new, "/home"]);
    Xfsprogs::newest().unwrap().repair_check(Path::new(&new)).unwrap();
    let bytes = fs::read(&new).unwrap();
    assert!(!bytes.windows(9).any(|window| window == b"dear Bob\n"));
}
