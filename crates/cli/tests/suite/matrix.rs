//! The table of `docs/recipes/disks.md`: formats, tables and managers, each with all verbs.

use crate::run::{crashed, program, succeeds};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use undercroft_judges::kernel;
use undercroft_judges::lvm::Lvm;

const MIB: u64 = 1 << 20;
/// Bytes of what is in a partition.
const PAYLOAD: u64 = 80 * MIB;
/// Where it is on a disk.
const START: u64 = 4 * MIB;

/// Rows of the table: the words of a table of partitions, and the script of sfdisk that makes it.
const TABLES: [(&str, &str); 4] = [
    ("none", ""),
    ("GPT", "label: gpt\nstart=2048, size=2048\nstart=8192, size=163840\n"),
    ("MBR", "label: dos\nstart=2048, size=2048, type=c\nstart=8192, size=163840, type=83\n"),
    (
        "MBR, logical",
        "label: dos\nstart=2048, size=190000, type=f\nstart=8192, size=163840, type=83\n",
    ),
];
/// Columns.
const MANAGERS: [&str; 4] = ["bare", "LVM", "LUKS", "RAID"];

struct Place(tempfile::TempDir);

impl Place {
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A volume whose journal a kernel has left to be replayed.
    fn volume(&self) -> Vec<u8> {
        fs::create_dir_all(self.file("tree")).unwrap();
        fs::write(self.file("tree/victim"), vec![7; 30_000]).unwrap();
        succeeds(["build", "--size", "64M", &self.path("tree"), &self.path("volume")]);
        crashed(&self.file("volume"), &self.file("dirty"));
        fs::read(self.file("dirty")).unwrap()
    }

    /// The volume in a manager, as what is in a partition.
    fn payload(&self, manager: &str, volume: &[u8]) -> Vec<u8> {
        let path = self.file(manager);
        fs::write(&path, volume).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(PAYLOAD).unwrap();
        match manager {
            "LVM" => {
                file.write_all_at(&[0; 1 << 20], 0).unwrap();
                let lvm = Lvm::attach(self.0.path(), &[manager]).unwrap();
                let disk = &lvm.disks()[0];
                lvm.run(&["pvcreate", disk]).unwrap();
                lvm.run(&["vgcreate", "-s", "1M", "vg", disk]).unwrap();
                lvm.run(&["lvcreate", "-an", "-Zn", "-Wn", "-n", "root", "-L", "64M", "vg"])
                    .unwrap();
                lvm.runs("vg/root").unwrap().write(volume).unwrap();
            }
            "LUKS" => {
                let mut cryptsetup = Command::new("cryptsetup");
                cryptsetup.args(["reencrypt", "--encrypt", "-q", "--reduce-device-size=16M"]);
                cryptsetup.args(["--force-offline-reencrypt", "--pbkdf=pbkdf2"]);
                cryptsetup.args(["--pbkdf-force-iterations=1000", "--key-file", &self.path("key")]);
                assert!(cryptsetup.arg(&path).status().unwrap().success());
            }
            "RAID" => {
                file.write_all_at(&superblock(volume.len() as u64 / 512), 4096).unwrap();
                file.write_all_at(volume, MIB).unwrap();
                let said = Command::new("mdadm").arg("--examine").arg(&path).output().unwrap();
                let said = String::from_utf8_lossy(&said.stdout).into_owned();
                assert!(said.contains(" - correct") && said.contains("raid1"), "{said}");
            }
            _ => {}
        }
        fs::read(path).unwrap()
    }

    /// A disk with that in it.
    fn disk(&self, format: &str, script: &str, payload: &[u8]) -> String {
        let raw = self.path("disk.raw");
        let file = File::create(&raw).unwrap();
        if script.is_empty() {
            file.write_all_at(payload, 0).unwrap();
        } else {
            file.set_len(START + PAYLOAD + 16 * MIB).unwrap();
            let mut command = Command::new("sfdisk");
            let mut sfdisk = command.args(["-q", &raw]).stdin(Stdio::piped()).spawn().unwrap();
            sfdisk.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            assert!(sfdisk.wait().unwrap().success());
            file.write_all_at(payload, START).unwrap();
        }
        let disk = self.path("disk.image");
        let way = match format {
            "raw" => return raw,
            "gzip" => "gzip --fast -c $1 > $2",
            "xz" => "xz -0 -c --block-size=8MiB $1 > $2",
            "zstd" => "zstd -q -c $1 > $2",
            "VMDK" => "qemu-img convert -f raw -O vmdk -o subformat=streamOptimized $1 $2",
            "VHD" => "qemu-img convert -f raw -O vpc -o force_size=on $1 $2",
            "VHDX" => "qemu-img convert -f raw -O vhdx $1 $2",
            "VDI" => "qemu-img convert -f raw -O vdi $1 $2",
            _ => "qemu-img convert -f raw -O qcow2 $1 $2",
        };
        let made = Command::new("sh").args(["-ec", way, "sh", &raw, &disk]).status();
        assert!(made.unwrap().success(), "{way}");
        disk
    }
}

/// A superblock of version 1.2 of a mirror with one leg, whose data start at 1 MiB.
fn superblock(sectors: u64) -> Vec<u8> {
    let mut block = vec![0; 256 + 2 * 2];
    let words: [(usize, u64); 12] = [
        (0, 0x0000_0001_a92b_4efc),
        (16, 0x1234_5678),
        (24, 0x9abc_def0),
        (72, 1),
        (80, sectors),
        (88, 0x0000_0001_0000_0000),
        (128, 2048),
        (136, sectors),
        (144, 8),
        (200, 7),
        (208, u64::MAX),
        (216, 0x0000_0002_0000_0000),
    ];
    for (at, word) in words {
        block[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    block[258..].fill(0xff);
    let word = |word: &[u8]| u64::from(u32::from_le_bytes(word.try_into().unwrap()));
    let sum: u64 = block.chunks_exact(4).map(word).sum();
    let sum = (sum as u32).wrapping_add((sum >> 32) as u32);
    block[216..220].copy_from_slice(&sum.to_le_bytes());
    block
}

/// All verbs, on a disk whose journal is to be replayed.
fn verbs(place: &Place, disk: &str, case: &str) {
    let key = place.path("key");
    let run = |arguments: &[&str]| {
        let (verb, rest) = arguments.split_first().unwrap();
        succeeds([&[*verb, "--key-file", &key], rest].concat())
    };
    assert!(run(&["ls", disk]).contains("early"), "{case}");
    assert_eq!(run(&["cat", disk, "/early"]), "early", "{case}");
    let out = place.path("out");
    run(&["extract", disk, &out]);
    assert_eq!(fs::read(Path::new(&out).join("victim")).unwrap(), vec![7; 30_000], "{case}");
    fs::remove_dir_all(&out).unwrap();
    assert!(run(&["replay", disk]).contains("replayed"), "{case}");
    run(&["rm", disk, "/victim"]);
    assert!(run(&["deleted", disk]).contains("/victim"), "{case}");
    run(&["put", disk, &key, "/new"]);
    if kernel::fuse_available_or_report() {
        let script = "cp new copy && sync -f . && cat copy";
        assert_eq!(run(&["mount", disk, "--exec", "sh", "-c", script]), "secret", "{case}");
    }
    run(&["shrink", "--size=min", disk]);
    assert_eq!(run(&["cat", disk, "/new"]), "secret", "{case}");
    assert!(run(&["check", disk]).starts_with("clean"), "{case}");
}

/// The verbs that read, on a disk whose journal would have to be replayed; and one that does not.
fn reading_verbs(place: &Place, disk: &str, case: &str) {
    let (key, cache) = (place.path("key"), place.path("cache"));
    let run = |arguments: &[&str]| {
        let (verb, rest) = arguments.split_first().unwrap();
        let mut command = program();
        command.arg(verb).args(["--key-file", &key]).args(rest).env("XDG_CACHE_HOME", &cache);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let read = |arguments: &[&str]| {
        let (is_done, said, why) = run(arguments);
        assert!(is_done, "{case}: {arguments:?}: {why}");
        said
    };
    assert!(read(&["ls", disk]).contains("early"), "{case}");
    assert_eq!(read(&["cat", disk, "/early"]), "early", "{case}");
    let out = place.path("out");
    read(&["extract", disk, &out]);
    assert_eq!(fs::read(Path::new(&out).join("victim")).unwrap(), vec![7; 30_000], "{case}");
    fs::remove_dir_all(&out).unwrap();
    read(&["deleted", disk]);
    if kernel::fuse_available_or_report() {
        assert_eq!(read(&["mount", disk, "--exec", "cat", "early"]), "early", "{case}");
    }
    let shrink = ["shrink", "--size=min", disk];
    for verb in [&["put", disk, &key, "/new"][..], &["replay", disk], &shrink] {
        let (is_done, _, why) = run(verb);
        assert!(!is_done && why.contains("only read"), "{case}: {verb:?}: {why}");
    }
}

#[test]
fn every_read_of_the_table_is_so() {
    let place = Place(tempfile::tempdir().unwrap());
    fs::write(place.file("key"), "secret").unwrap();
    let volume = place.volume();
    let payloads = MANAGERS.map(|manager| place.payload(manager, &volume));
    let page = include_str!("../../../../docs/recipes/disks.md");
    let formats = ["VMDK", "VHD", "VHDX", "VDI", "gzip", "xz", "zstd"];
    for (number, format) in formats.into_iter().enumerate() {
        let row = format!("| {format} | each |{}", " read |".repeat(MANAGERS.len()));
        assert!(page.contains(&row), "{row} is no row of the page");
        // With each table and each manager; all pairs of these, with one format or another.
        for (index, (table, script)) in TABLES.into_iter().enumerate() {
            let manager = (index + number) % MANAGERS.len();
            let disk = place.disk(format, script, &payloads[manager]);
            let case = format!("{format}, {table}, {}", MANAGERS[manager]);
            reading_verbs(&place, &disk, &case);
        }
    }
    let said = page.lines().filter(|line| line.contains("| each |")).count();
    assert_eq!(said, formats.len(), "rows of the page that are not tested");
}

#[test]
fn every_yes_of_the_table_is_so() {
    let place = Place(tempfile::tempdir().unwrap());
    fs::write(place.file("key"), "secret").unwrap();
    let volume = place.volume();
    let payloads = MANAGERS.map(|manager| place.payload(manager, &volume));
    let page = include_str!("../../../../docs/recipes/disks.md");
    let mut seen = 0;
    for format in ["raw", "qcow2"] {
        for (table, script) in TABLES {
            let row = format!("| {format} | {table} |{}", " yes |".repeat(MANAGERS.len()));
            assert!(page.contains(&row), "{row} is no row of the page");
            for (manager, payload) in MANAGERS.iter().zip(&payloads) {
                let disk = place.disk(format, script, payload);
                verbs(&place, &disk, &format!("{format}, {table}, {manager}"));
                seen += 1;
            }
        }
    }
    let said: usize = page
        .lines()
        .filter(|line| line.starts_with("| raw |") || line.starts_with("| qcow2 |"))
        .count();
    assert_eq!(said * MANAGERS.len(), seen, "rows of the page that are not tested");
}
