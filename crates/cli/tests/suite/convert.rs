//! Disks copied into new files; QEMU compares.

use crate::run::{fails, sample, succeeds};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;
use undercroft_judges::Xfsprogs;

fn qemu_img(arguments: &[&str]) {
    let output = Command::new("qemu-img").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_disk_is_the_same_in_another_format() {
    let sample = sample(&["--size", "64M"]);
    let (qcow2, raw) = (sample.path("new.qcow2"), sample.path("new.img"));
    let said = succeeds(["convert", &sample.image, &qcow2]);
    assert!(said.contains("new.qcow2: 64.0 MiB, "), "{said}");
    qemu_img(&["check", &qcow2]);
    qemu_img(&["compare", "-f", "raw", "-F", "qcow2", &sample.image, &qcow2]);
    let json = succeeds(["convert", "--json", &qcow2, &raw]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["bytes"].as_u64(), json["skipped_bytes"].as_u64()), (Some(64 << 20), Some(0)));
    assert!(fs::read(&raw).unwrap() == fs::read(&sample.image).unwrap());
    assert!(fs::metadata(&raw).unwrap().blocks() * 512 < 32 << 20);
    let message = fails(1, ["convert", &qcow2, &raw]);
    assert!(message.contains("holds an XFS file system; name another file"), "{message}");
    let other = sample.path("other");
    succeeds(["convert", "--to", "qcow2", &raw, &other]);
    qemu_img(&["compare", "-f", "qcow2", "-F", "qcow2", &other, &qcow2]);
}

#[test]
fn free_space_is_left_out() {
    let sample = sample(&["--size", "64M"]);
    let big = sample.path("big");
    fs::write(&big, vec![7; 20 << 20]).unwrap();
    succeeds(["put", &sample.image, &big, "/big"]);
    succeeds(["rm", &sample.image, "/big"]);
    let (disk, small) = (sample.path("disk"), sample.path("small"));
    let file = File::create(&disk).unwrap();
    file.set_len(80 << 20).unwrap();
    let script = "label: gpt\nstart=2048, size=131072\n";
    let sfdisk = format!("printf '{script}' | sfdisk -q '{disk}'");
    assert!(Command::new("sh").args(["-c", &sfdisk]).status().unwrap().success());
    file.write_all_at(&fs::read(&sample.image).unwrap(), 1 << 20).unwrap();
    let json = succeeds(["convert", "--json", "--skip-free", &disk, &small]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["skipped_bytes"].as_u64().unwrap() > 30 << 20, "{json}");
    assert!(json["data_bytes"].as_u64().unwrap() < 10 << 20, "{json}");
    assert!(succeeds(["check", &small]).starts_with("clean"));
    assert_eq!(succeeds(["ls", &small]), succeeds(["ls", &sample.image]));
    let volume = fs::read(&small).unwrap()[1 << 20..65 << 20].to_vec();
    let cut = sample.path("cut");
    fs::write(&cut, volume).unwrap();
    Xfsprogs::newest().unwrap().repair_check(cut.as_ref()).unwrap();
}
