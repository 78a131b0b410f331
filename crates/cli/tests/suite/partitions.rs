//! Volumes in the partitions of a disk.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use crate::run::{Sample, fails, sample, says, succeeds};

/// First sector of the second and of the third partition.
const STARTS: [u64; 2] = [8192, 8192 + 131_072];

/// A volume labelled "twelve" of 32 MiB, and a disk whose second partition is a copy of it. The first
/// has a FAT file system, and the third nothing.
fn disk(label: &str) -> (Sample, String) {
    let sample = sample(&["--size", "32M", "--label", "twelve"]);
    let disk = sample.path(label);
    File::create(&disk).unwrap().set_len(160 << 20).unwrap();
    let mut sfdisk = Command::new("sfdisk")
        .args(["--quiet", &disk])
        .stdin(Stdio::piped())
        .spawn()
        .expect("sfdisk, in the Debian package fdisk");
    let named = |name: &str| match label {
        "gpt" => format!(", name=\"{name}\""),
        _ => String::new(),
    };
    let script = format!(
        "label: {label}\nstart=2048, size=4096{}\nstart={}, size=131072{}\nstart={}, size=32768\n",
        named("boot"),
        STARTS[0],
        named("data"),
        STARTS[1]
    );
    sfdisk.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(sfdisk.wait().unwrap().success());
    let fat = sample.path("fat");
    File::create(&fat).unwrap().set_len(2 << 20).unwrap();
    let made = Command::new("mkfs.fat").args(["-n", "ESP", &fat]).stdout(Stdio::null()).status();
    assert!(made.expect("mkfs.fat, in the Debian package dosfstools").success());
    let file = File::options().write(true).open(&disk).unwrap();
    file.write_all_at(&fs::read(fat).unwrap(), 2048 * 512).unwrap();
    file.write_all_at(&fs::read(&sample.image).unwrap(), STARTS[0] * 512).unwrap();
    (sample, disk)
}

#[test]
fn the_only_volume_of_a_disk_is_taken_by_itself() {
    for label in ["gpt", "dos"] {
        let (_sample, disk) = disk(label);
        let by_number = succeeds(["cat", "--partition", "2", &disk, "etc/hosts"]);
        let by_offset = succeeds(["cat", "--offset", "4M", &disk, "etc/hosts"]);
        assert_eq!((by_number.as_str(), by_number.len()), (by_offset.as_str(), 20));
        assert_eq!(succeeds(["cat", "--partition", "twelve", &disk, "etc/hosts"]), by_number);
        let itself = succeeds(["cat", &disk, "etc/hosts"]);
        assert_eq!(itself, by_number);
        let note = says(["ls", &disk]);
        assert!(note.contains("the volume is in partition 2"), "{note}");
        assert!(succeeds(["check", &disk]).starts_with("clean"));
        succeeds(["mkdir", &disk, "/new"]);
        assert_eq!(succeeds(["ls", "--partition", "2", &disk]), "etc\nnew\n");
        // What is behind the volume is left alone.
        succeeds(["shrink", "--size", "min", &disk]);
        assert_eq!(fs::metadata(&disk).unwrap().len(), 160 << 20);
        let message = fails(1, ["ls", "--partition", "1", &disk]);
        assert!(message.contains("it holds a FAT file system labelled \"ESP\""), "{message}");
        let message = fails(1, ["ls", "--partition", "3", &disk]);
        assert!(message.contains("begins with zeroes"), "{message}");
    }
}

#[test]
fn partitions_have_names() {
    let (_sample, disk) = disk("gpt");
    assert_eq!(succeeds(["ls", "--partition", "data", &disk]), "etc\n");
    let message = fails(1, ["ls", "--partition", "root", &disk]);
    assert!(message.contains("there is no partition \"root\":"), "{message}");
    let line =
        "; 2 (Linux file system \"data\", 64.0 MiB): an XFS file system labelled \"twelve\"; 3";
    assert!(message.contains(line), "{message}");
}

#[test]
fn a_disk_with_several_volumes_or_none_is_told_with_its_partitions() {
    let (sample, disk) = disk("gpt");
    let small = sample.path("small");
    succeeds(["mkfs", "--size", "16M", &small]);
    let file = File::options().write(true).open(&disk).unwrap();
    file.write_all_at(&fs::read(small).unwrap(), STARTS[1] * 512).unwrap();
    for command in ["ls", "check"] {
        let message = fails(1, [command, &disk]);
        assert!(message.contains("choose one with --partition, by number, name or"), "{message}");
        assert!(message.contains(": 1 (Linux file system \"boot\", 2.0 MiB): a FAT"), "{message}");
        assert!(message.contains("; 3 (Linux file system, 16.0 MiB): an XFS"), "{message}");
        assert!(!message.contains("magic"), "{message}");
    }
    for start in STARTS {
        file.write_all_at(&[0; 4096], start * 512).unwrap();
    }
    let message = fails(1, ["ls", &disk]);
    assert!(message.contains("a disk with partitions, none of them with XFS:"), "{message}");
}
