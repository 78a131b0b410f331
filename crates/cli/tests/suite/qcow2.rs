//! Volumes in qcow2 images: looked at, changed, mounted; QEMU and xfs_repair judge.

use crate::run::{fails, succeeds};
use std::fs;
use std::path::Path;
use std::process::Command;
use undercroft_judges::{Xfsprogs, kernel};

/// A qcow2 with a partition table, whose last partition is a volume with `/etc/hosts`.
fn disk(home: &Path) -> String {
    let path = |name: &str| home.join(name).display().to_string();
    fs::create_dir_all(home.join("tree/etc")).unwrap();
    fs::create_dir_all(home.join("esp/EFI")).unwrap();
    fs::write(home.join("tree/etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    let (esp, tree, disk) = (format!("esp:{}", path("esp")), path("tree"), path("disk.qcow2"));
    succeeds([
        "build",
        "--disk=gpt",
        "--partition",
        &esp,
        "--partition=root:xfs",
        "--label=system",
        &tree,
        &disk,
    ]);
    disk
}

/// Fails unless the container and the volume in it are sound.
fn judge(disk: &str) {
    let check = Command::new("qemu-img").args(["check", disk]).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    let raw = format!("{disk}.raw");
    let converted = Command::new("qemu-img").args(["convert", "-O", "raw", disk, &raw]).status();
    assert!(converted.unwrap().success());
    let volume = format!("{disk}.volume");
    let table = Command::new("sfdisk").args(["--json", &raw]).output().unwrap();
    let table: serde_json::Value = serde_json::from_slice(&table.stdout).unwrap();
    let last = &table["partitiontable"]["partitions"].as_array().unwrap()[1];
    let bytes = fs::read(&raw).unwrap();
    let number = |field: &str| last[field].as_u64().unwrap() as usize * 512;
    fs::write(&volume, &bytes[number("start")..][..number("size")]).unwrap();
    Xfsprogs::newest().unwrap().repair_check(Path::new(&volume)).unwrap();
}

#[test]
fn a_volume_in_a_qcow2_is_changed_where_it_is() {
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    assert_eq!(succeeds(["cat", &disk, "/etc/hosts"]), "127.0.0.1 localhost\n");
    let big = home.path().join("big").display().to_string();
    fs::write(&big, vec![7; 3 << 20]).unwrap();
    succeeds(["put", &disk, &big, "/big"]);
    succeeds(["rm", &disk, "/etc/hosts"]);
    judge(&disk);
    assert_eq!(succeeds(["ls", &disk]), "big\netc\n");
    let copy = home.path().join("copy").display().to_string();
    succeeds(["get", &disk, "/big", &copy]);
    assert!(fs::read(copy).unwrap() == vec![7; 3 << 20]);
    // What was removed is found as on any disk.
    assert!(succeeds(["deleted", &disk]).contains("/etc/hosts"));
    // Its bytes as they are hold no volume.
    let said = fails(1, ["ls", "--format=raw", &disk]);
    assert!(said.contains("a qcow2 image"), "{said}");
}

#[test]
fn a_volume_in_a_qcow2_is_mounted() {
    if !kernel::fuse_available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    let script = "cp etc/hosts etc/copy && mkdir made && sync -f . && cat etc/copy";
    let said = succeeds(["mount", &disk, "--exec", "sh", "-c", script]);
    assert_eq!(said, "127.0.0.1 localhost\n");
    judge(&disk);
    assert_eq!(succeeds(["ls", &disk]), "etc\nmade\n");
}

#[test]
fn changes_to_another_image_are_read_when_it_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    let top = home.path().join("top").display().to_string();
    let options = "backing_file=disk.qcow2,backing_fmt=qcow2";
    let create = ["create", "-qf", "qcow2", "-o", options, &top];
    assert!(Command::new("qemu-img").args(create).status().unwrap().success());
    let before = fs::read(&disk).unwrap();
    let said = fails(1, ["ls", &top]);
    assert!(said.contains("disk.qcow2") && said.contains("--backing"), "{said}");
    succeeds(["mkdir", "--backing", &top, "/new"]);
    assert_eq!(succeeds(["ls", "--backing", &top]), "etc\nnew\n");
    assert_eq!(succeeds(["ls", &disk]), "etc\n");
    assert!(fs::read(&disk).unwrap() == before);
}

#[test]
fn disks_shows_what_is_inside() {
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    let said = succeeds(["disks", &disk]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert!(lines[0].starts_with("NAME") && lines[0].ends_with("UUID"), "{said}");
    let has = |line: &str, words: &[&str]| words.iter().all(|word| line.contains(word));
    assert!(has(lines[1], &["disk.qcow2", "qcow2", "partition table (GPT)"]), "{said}");
    assert!(has(lines[2], &["├─1 \"esp\"", "EFI", "FAT file system"]), "{said}");
    assert!(has(lines[3], &["└─2 \"root", "XFS file system", "system"]), "{said}");
    let info: serde_json::Value =
        serde_json::from_str(&succeeds(["info", "--json", &disk])).unwrap();
    assert!(lines[3].ends_with(info["uuid"].as_str().unwrap()), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&succeeds(["disks", "--json", &disk])).unwrap();
    assert_eq!((&json["format"], &json["table"]), (&"qcow2".into(), &"gpt".into()));
    assert_eq!(json["partitions"][1]["label"], "system");
    assert_eq!(json["partitions"][1]["uuid"], info["uuid"]);
    // A volume alone, of another file system.
    let other = home.path().join("other").display().to_string();
    fs::write(&other, []).unwrap();
    fs::File::options().write(true).open(&other).unwrap().set_len(32 << 20).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-L", "data", &other]).status();
    assert!(made.unwrap().success());
    let uuid = Command::new("blkid").args(["-p", "-o", "value", "-s", "UUID", &other]).output();
    let uuid = String::from_utf8(uuid.unwrap().stdout).unwrap();
    let said = succeeds(["disks", &other]);
    assert!(has(&said, &["raw", "ext4 file system", "data", uuid.trim()]), "{said}");
}
