//! Volumes in images of all formats: those that are only read, compressed ones, snapshots, stretches by hand.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::run::{fails, program, succeeds};

/// A directory with a disk of one partition, in which a file has this text.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let own = Self { home: tempfile::tempdir().unwrap() };
        fs::create_dir(own.at("tree")).unwrap();
        fs::write(own.at("tree/name"), "box\n").unwrap();
        fs::write(own.at("tree/data"), vec![7; 3 << 20]).unwrap();
        let build = ["build", "--disk=gpt", "--disk-size=100M"];
        succeeds([&build[..], &[&own.path("tree"), &own.path("disk")]].concat());
        own
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    /// Runs a command there, which must succeed.
    #[track_caller]
    fn shell(&self, command: &str) {
        let output =
            Command::new("sh").args(["-ec", command]).current_dir(self.home.path()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn images_that_are_only_read() {
    let own = Place::new();
    for (format, options, name) in [
        ("vmdk", "subformat=monolithicSparse", "a.vmdk"),
        ("vmdk", "subformat=streamOptimized", "b.vmdk"),
        ("vpc", "subformat=dynamic", "a.vhd"),
        ("vpc", "subformat=fixed,force_size=on", "b.vhd"),
        ("vhdx", "subformat=dynamic", "a.vhdx"),
        ("vdi", "static=off", "a.vdi"),
    ] {
        own.shell(&format!("qemu-img convert -f raw -O {format} -o {options} disk {name}"));
        let image = own.path(name);
        assert_eq!(succeeds(["cat", &image, "/name"]), "box\n", "{name}");
        let listed: Value = serde_json::from_str(&succeeds(["disks", "--json", &image])).unwrap();
        assert_eq!(listed["format"], name.split_once('.').unwrap().1);
        assert_eq!(listed["partitions"][0]["contents"], "an XFS file system");
        let message = fails(1, ["mkdir", &image, "/new"]);
        assert!(
            message.contains("only read") && message.contains("undercroft convert"),
            "{message}"
        );
        succeeds(["convert", &image, &own.path(&format!("{name}.raw"))]);
        own.shell(&format!("cmp -n $(stat -c %s disk) disk {name}.raw"));
    }
    own.shell("qemu-img convert -f raw -O vmdk -o subformat=monolithicFlat disk flat.vmdk");
    let message = fails(1, ["cat", &own.path("flat.vmdk"), "/name"]);
    assert!(message.contains("--backing"), "{message}");
    assert_eq!(succeeds(["cat", "--backing", &own.path("flat.vmdk"), "/name"]), "box\n");
}

#[test]
fn compressed_disks() {
    let own = Place::new();
    let cache = own.path("cache");
    let run = |arguments: &[&str]| {
        let output = program().args(arguments).env("XDG_CACHE_HOME", &cache).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.success())
    };
    for (way, name) in [
        ("gzip -c disk", "disk.gz"),
        ("xz -c --block-size=4MiB disk", "disk.xz"),
        ("zstd -qc disk", "disk.zst"),
    ] {
        own.shell(&format!("{way} > {name}"));
        let image = own.path(name);
        let (text, said, _) = run(&["cat", &image, "/name"]);
        assert_eq!(text, "box\n", "{name}: {said}");
        assert!(fs::read_dir(own.at("cache/undercroft")).unwrap().count() <= 1, "nothing is left");
        let (_, message, success) = run(&["mkdir", &image, "/new"]);
        assert!(!success && message.contains("only read"), "{message}");
        // One frame or block is said, as it takes time.
        let is_said = said.contains("decompressed from the front");
        assert_eq!(is_said, name == "disk.zst", "{said}");
    }
    own.shell("xz --format=lzma -kc disk > disk.lzma");
    fs::write(own.at("disk.bz2"), b"BZh91AY&SY").unwrap();
    fs::write(own.at("disk.lz4"), b"\x04\x22\x4d\x18\x64").unwrap();
    fs::write(own.at("disk.zip"), b"PK\x03\x04").unwrap();
    own.shell("xz -kc disk.zip > twice.xz");
    for (name, words) in [
        ("disk.bz2", "compressed with bzip2"),
        ("disk.lz4", "compressed with lz4"),
        ("disk.lzma", "compressed with lzma"),
        ("disk.zip", "a ZIP archive"),
        ("twice.xz", "a ZIP archive compressed with xz"),
    ] {
        let (_, message, success) = run(&["ls", &own.path(name)]);
        assert!(!success && message.contains(words), "{name}: {message}");
    }
}

#[test]
fn snapshots_are_listed_and_read() {
    let own = Place::new();
    let image = own.path("disk.qcow2");
    succeeds(["convert", &own.path("disk"), &image]);
    own.shell("qemu-img snapshot -c before disk.qcow2; echo new > new");
    succeeds(["put", "--force", &image, &own.path("new"), "/name"]);
    assert_eq!(succeeds(["cat", &image, "/name"]), "new\n");
    assert_eq!(succeeds(["cat", "--snapshot=before", &image, "/name"]), "box\n");
    let named = format!("file:snapshot=before({image})");
    assert_eq!(succeeds(["cat", &named, "/name"]), "box\n");
    let listed: Value = serde_json::from_str(&succeeds(["disks", "--json", &image])).unwrap();
    assert_eq!(listed["snapshots"][0]["name"], "before");
    assert!(succeeds(["disks", &image]).contains("@before"));
    let message = fails(1, ["cat", "--snapshot=after", &image, "/name"]);
    assert!(message.contains("\"before\""), "{message}");
    let message = fails(1, ["cat", "--snapshot=before", &own.path("disk"), "/name"]);
    assert!(message.contains("only qcow2"), "{message}");
    let message = fails(1, ["mkdir", "--snapshot=before", &image, "/new"]);
    assert!(message.contains("only read"), "{message}");
    assert!(succeeds(["disks", "--snapshot=before", &image]).contains("XFS"));
    own.shell("qemu-img check -q disk.qcow2");
}

#[test]
fn a_stretch_is_said_by_hand() {
    let own = Place::new();
    let disk = own.path("disk");
    let listed: Value = serde_json::from_str(&succeeds(["disks", "--json", &disk])).unwrap();
    let partition = &listed["partitions"][0];
    let (first, bytes) = (partition["first_byte"].as_u64().unwrap(), partition["bytes"].as_u64());
    let bytes = bytes.unwrap();
    let stretch = format!("{first},size={bytes}");
    assert_eq!(succeeds(["cat", "--offset", &stretch, &disk, "/name"]), "box\n");
    let get = "nbdinfo --size \"$NBD_URI\"";
    let size = succeeds(["serve", "--offset", &stretch, &disk, "--exec", "sh", "-c", get]);
    assert_eq!(size.trim(), bytes.to_string());
    // A volume does not grow over what is behind the stretch.
    let short = format!("{first},size={}", bytes - 512);
    let message = fails(1, ["cat", "--offset", &short, &disk, "/name"]);
    assert!(message.contains("truncated"), "{message}");
    for (wrong, words) in [
        (format!("{first},size=1E"), "behind the end"),
        (format!("{first},size=100"), "multiple of 512"),
        (format!("{first},length=100"), "BYTES,size=BYTES"),
    ] {
        let mut command = program();
        let output = command.args(["cat", "--offset", &wrong, &disk, "/name"]).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(words), "{wrong}: {message}");
    }
}
