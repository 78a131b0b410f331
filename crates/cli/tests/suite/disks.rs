//! Whole disks, judged by the programs that people use on disks.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use undercroft_judges::mount::Access;
use undercroft_judges::program::find;
use undercroft_judges::tree::{Options, compare};
use undercroft_judges::{LoopDevice, LoopMount, Xfsprogs, kernel};

use crate::run::{as_nobody, fails, succeeds};

const MIB: u64 = 1 << 20;

/// Runs a judge, which must be content; returns what it said.
#[track_caller]
fn judge(arguments: &[&str]) -> String {
    let program = find(arguments[0].as_ref());
    let program = program
        .unwrap_or_else(|| panic!("{} is missing; `cargo xtask test` installs it", arguments[0]));
    let mut command = Command::new(program);
    let answer = command.args(&arguments[1..]).env("LC_ALL", "C.UTF-8").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&answer.stdout), text(&answer.stderr));
    assert!(answer.status.success(), "{arguments:?}: {out}{err}");
    out + &err
}

/// A tree, an ESP's directory and a raw file.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        for directory in ["tree/etc", "esp/EFI/BOOT", "esp/loader/entries", "esp/empty"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        fs::write(at("tree/etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        fs::write(at("tree/data"), vec![5; 3_000_000]).unwrap();
        fs::write(at("esp/EFI/BOOT/BOOTX64.EFI"), vec![9; 700_001]).unwrap();
        fs::write(at("esp/loader/loader.conf"), "timeout 3\n").unwrap();
        fs::write(at("esp/vmlinuz-6.1.0-40-amd64"), vec![1; 512]).unwrap();
        fs::write(at("esp/no bytes \u{fc}.txt"), "").unwrap();
        for number in 0..40 {
            let name = format!("esp/loader/entries/machine-6.1.0-{number}-amd64.conf");
            fs::write(at(&name), format!("version {number}\n")).unwrap();
        }
        let raw: Vec<u8> = (0..3 * MIB / 2 + 77).map(|at| (at % 251) as u8).collect();
        fs::write(at("raw"), raw).unwrap();
        Self { home }
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    /// Arguments for a disk of all kinds of partitions.
    fn arguments(&self, disk: &str) -> Vec<String> {
        let (esp, raw) = (self.path("esp"), self.path("raw"));
        let mut all = vec!["build".to_owned(), "--disk=gpt".to_owned()];
        let partitions = [
            format!("esp:{esp}"),
            "root-x86-64:xfs,name=system".to_owned(),
            format!("linux:{raw},name=r\u{e4}w,uuid=11223344-5566-7788-99aa-bbccddeeff00"),
            "swap:5M".to_owned(),
        ];
        all.extend(partitions.map(|partition| format!("--partition={partition}")));
        all.extend([self.path("tree"), disk.to_owned()]);
        all
    }

    /// The names of everything beside the sources.
    fn made(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> =
            names.filter(|name| !["tree", "esp", "raw"].contains(&name.as_str())).collect();
        names.sort_unstable();
        names
    }

    /// Copies a partition out of a disk.
    fn cut(&self, disk: &str, start: u64, length: u64) -> PathBuf {
        let mut bytes = vec![0; length as usize];
        File::open(disk).unwrap().read_exact_at(&mut bytes, start).unwrap();
        let to = self.home.path().join(format!("cut-{start}"));
        fs::write(&to, bytes).unwrap();
        to
    }
}

/// Start and length of partition `number` in a report, in bytes.
fn place(report: &Value, number: usize) -> (u64, u64) {
    let partition = &report["disk"]["partitions"][number - 1];
    (partition["start"].as_u64().unwrap(), partition["bytes"].as_u64().unwrap())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_disk_of_all_kinds() {
    let own = Place::new();
    let disk = own.path("disk");
    let mut arguments = own.arguments(&disk);
    arguments.push("--json".to_owned());
    let report = json(&succeeds(&arguments));

    let verdict = judge(&["sgdisk", "-v", &disk]);
    assert!(verdict.contains("No problems found"), "{verdict}");
    let verdict = judge(&["sfdisk", "--verify", &disk]);
    assert!(verdict.contains("No errors detected"), "{verdict}");
    let table = json(&judge(&["sfdisk", "--json", &disk]));
    let table = &table["partitiontable"];
    assert_eq!(table["label"], "gpt");
    let lower = |value: &Value| value.as_str().unwrap().to_lowercase();
    assert_eq!(lower(&table["id"]), report["disk"]["uuid"]);
    let expected = [
        ("c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "esp"),
        ("4f68bce3-e8cd-4db1-96e7-fbcaf984b709", "system"),
        ("0fc63daf-8483-4772-8e79-3d69d8477de4", "r\u{e4}w"),
        ("0657fd6d-a4ab-43c4-84e5-0933c84b4f4f", "swap"),
    ];
    for (index, (kind, name)) in expected.into_iter().enumerate() {
        let (found, told) = (&table["partitions"][index], &report["disk"]["partitions"][index]);
        assert_eq!((lower(&found["type"]).as_str(), &found["name"]), (kind, &Value::from(name)));
        assert_eq!(told["type_uuid"], kind);
        assert_eq!(told["uuid"], lower(&found["uuid"]));
        let bytes = |key: &str| found[key].as_u64().unwrap() * 512;
        assert_eq!((bytes("start"), bytes("size")), place(&report, index + 1));
        assert!(bytes("start").is_multiple_of(MIB) && bytes("size").is_multiple_of(MIB));
    }
    assert_eq!(report["disk"]["partitions"][2]["uuid"], "11223344-5566-7788-99aa-bbccddeeff00");

    fat_is_sound(&own, &own.cut(&disk, place(&report, 1).0, place(&report, 1).1));
    let volume = own.cut(&disk, place(&report, 2).0, place(&report, 2).1);
    Xfsprogs::newest().unwrap().repair_check(&volume).unwrap();
    succeeds(["check", "--partition", "2", &disk]);
    let hosts = succeeds(["cat", "--partition", "2", &disk, "/etc/hosts"]);
    assert_eq!(hosts, "127.0.0.1 localhost\n");
    let raw = fs::read(own.cut(&disk, place(&report, 3).0, place(&report, 3).1)).unwrap();
    let (head, tail) = raw.split_at((3 * MIB / 2 + 77) as usize);
    assert!(head == fs::read(own.path("raw")).unwrap() && tail.iter().all(|byte| *byte == 0));
    let swap = own.cut(&disk, place(&report, 4).0, place(&report, 4).1).display().to_string();
    let found = judge(&["blkid", "--probe", "--output", "export", &swap]);
    assert!(found.contains("TYPE=swap") && found.contains("UUID="), "{found}");
}

/// The FAT is one that others read, and holds the directory.
fn fat_is_sound(own: &Place, fat: &Path) {
    let fat = fat.display().to_string();
    let verdict = judge(&["fsck.fat", "-n", "-v", &fat]);
    assert!(verdict.contains("32 bit entries") && !verdict.contains("differences"), "{verdict}");
    let out = own.home.path().join("cut-esp");
    fs::create_dir(&out).unwrap();
    judge(&["mcopy", "-s", "-n", "-i", &fat, "::/", &out.display().to_string()]);
    assert!(judge(&["mdir", "-i", &fat, "::/"]).contains("ESP"));
    let files = |root: &str| {
        let mut found = Vec::new();
        let mut directories = vec![PathBuf::from(root)];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(root).unwrap().to_owned();
                if path.is_dir() {
                    found.push((name, None));
                    directories.push(path);
                } else {
                    found.push((name, Some(fs::read(&path).unwrap())));
                }
            }
        }
        found.sort_unstable();
        found
    };
    let (ours, theirs) = (files(&own.path("esp")), files(&out.display().to_string()));
    let names = |list: &[(PathBuf, Option<Vec<u8>>)]| -> Vec<PathBuf> {
        list.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&ours), names(&theirs));
    assert!(ours == theirs, "contents differ");
}

#[test]
fn the_kernel_mounts_the_partition() {
    if !kernel::available_or_report() {
        return;
    }
    let own = Place::new();
    let disk = own.path("disk");
    let mut arguments = own.arguments(&disk);
    arguments.push("--json".to_owned());
    let (start, length) = place(&json(&succeeds(&arguments)), 2);
    let window = [format!("offset={start}"), format!("sizelimit={length}")];
    let mount = LoopMount::new(disk.as_ref(), Access::ReadOnly, &[&window[0], &window[1]]).unwrap();
    let tree = own.path("tree");
    compare(Path::new(&tree), mount.path(), &Options::default()).unwrap().assert_same();
    mount.unmount().unwrap();
}

/// What the help says of GRUB.
#[test]
fn grub_reads_volumes_of_presets_to_6_12() {
    let place = Place::new();
    let tree = place.path("boot");
    fs::create_dir_all(&tree).unwrap();
    fs::write(format!("{tree}/kernel"), vec![b'k'; 3_000_000]).unwrap();
    let image = place.path("grub.img");
    for preset in ["lts-4.19", "lts-5.10", "lts-6.6", "lts-6.12"] {
        succeeds(["build", "--force", "--preset", preset, &tree, &image]);
        judge(&["grub-fstest", &image, "cmp", "(loop0)/kernel", &format!("{tree}/kernel")]);
    }
}

#[test]
fn the_same_input_is_the_same_disk() {
    let own = Place::new();
    let disks = ["first", "second"].map(|name| own.path(name));
    for disk in &disks {
        succeeds(own.arguments(disk));
    }
    let first = fs::read(&disks[0]).unwrap();
    assert!(first == fs::read(&disks[1]).unwrap());
    // As another user, who owns nothing of it.
    let drop_box = own.home.path().join("cut-by-nobody");
    fs::create_dir(&drop_box).unwrap();
    std::os::unix::fs::chown(&drop_box, Some(65_534), Some(65_534)).unwrap();
    let third = drop_box.join("disk").display().to_string();
    let answer = as_nobody(own.home.path()).args(own.arguments(&third)).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    assert!(first == fs::read(&third).unwrap());
    // Other content of the same size in a partition: other identifiers.
    fs::write(own.path("esp/loader/loader.conf"), "timeout 4\n").unwrap();
    let changed = own.path("changed");
    succeeds(own.arguments(&changed));
    let disk_id =
        |disk: &str| json(&judge(&["sfdisk", "--json", disk]))["partitiontable"]["id"].clone();
    assert_ne!(disk_id(&changed), disk_id(&disks[0]));
}

#[test]
fn a_disk_for_qemu() {
    let own = Place::new();
    let names = ["raw-disk", "first.qcow2", "second.qcow2"].map(|name| own.path(name));
    succeeds(own.arguments(&names[0]));
    for name in &names[1..] {
        succeeds([own.arguments(name), vec!["--format=qcow2".to_owned()]].concat());
        let verdict = judge(&["qemu-img", "check", name]);
        assert!(verdict.contains("No errors were found"), "{verdict}");
        judge(&["qemu-img", "compare", "-f", "raw", "-F", "qcow2", &names[0], name]);
    }
    assert!(fs::read(&names[1]).unwrap() == fs::read(&names[2]).unwrap());
    let length = |name: &str| fs::metadata(name).unwrap().len();
    assert!(length(&names[1]) < length(&names[0]) / 4, "zeros are left out");
    assert_eq!(own.made(), ["first.qcow2", "raw-disk", "second.qcow2"]);
    // A bare volume, too.
    let volume = own.path("volume.qcow2");
    succeeds(["build", "--format=qcow2", "--size=40M", &own.path("tree"), &volume]);
    let about = json(&judge(&["qemu-img", "info", "--output=json", &volume]));
    assert_eq!(about["virtual-size"], 40 * MIB);
    // What is in them is what is in the tree.
    let tree = own.path("tree");
    for image in [&volume, &names[1]] {
        assert_eq!(succeeds(["ls", image]), succeeds(["ls", &names[0]]));
        succeeds(["check", image]);
        succeeds(["diff", image, &tree]);
    }
    let partition = format!("--partition=linux:{volume}");
    let out = own.path("out");
    let disk = ["build", "--disk=gpt", "--partition=root:xfs", &partition, &tree, &out];
    let message = fails(1, disk);
    assert!(message.contains("a qcow2 image; its bytes are not those of its disk"), "{message}");
}

/// A name that says another format than what is written misleads everyone who opens the file.
#[test]
fn names_of_formats_are_true() {
    let own = Place::new();
    let tree = own.path("tree");
    let format = |path: &str| {
        let about = json(&judge(&["qemu-img", "info", "--output=json", path]));
        about["format"].as_str().unwrap().to_owned()
    };
    let (named, raw, other) = (own.path("x.qcow2"), own.path("raw.qcow2"), own.path("x.vmdk"));
    succeeds(["build", &tree, &named]);
    assert_eq!(format(&named), "qcow2");
    succeeds(["build", "--format=raw", &tree, &raw]);
    assert_eq!(format(&raw), "raw");
    let message = fails(2, ["build", &tree, &other]);
    assert!(message.contains("qemu-img convert -O vmdk"), "{message}");
    let message = fails(2, ["mkfs", "--size=40M", &own.path("y.qcow2")]);
    assert!(message.contains("its name says qcow2"), "{message}");
    assert_eq!(own.made(), ["raw.qcow2", "x.qcow2"]);
}

#[test]
fn a_disk_of_a_given_size_is_filled() {
    let own = Place::new();
    let disk = own.path("disk");
    let build = ["build", "--disk=gpt", "--disk-size=200M", "--json"];
    let report = json(&succeeds([&build[..], &[&own.path("tree"), &disk]].concat()));
    assert_eq!(fs::metadata(&disk).unwrap().len(), 200 * MIB);
    assert_eq!(place(&report, 1), (MIB, 198 * MIB));
    assert_eq!(report["image_bytes"], 198 * MIB);
    assert!(judge(&["sgdisk", "-v", &disk]).contains("No problems found"));
    // With more partitions, and a volume that leaves some of it free.
    let partitions = ["--partition=swap:64M", "--partition=home:xfs", "--size=32M", "--force"];
    let report = succeeds([&build[..], &partitions, &[&own.path("tree"), &disk]].concat());
    assert_eq!(place(&json(&report), 2), (65 * MIB, 32 * MIB));
}

#[test]
fn a_block_device_becomes_a_disk() {
    if !kernel::available_or_report() {
        return;
    }
    let own = Place::new();
    let backing = own.home.path().join("backing");
    fs::write(&backing, vec![0xa5; (160 * MIB) as usize]).unwrap();
    let device = LoopDevice::attach(&backing).unwrap();
    let name = device.path().display().to_string();
    let mut arguments = own.arguments(&name);
    arguments.extend(["--force", "--json"].map(str::to_owned));
    let report = json(&succeeds(&arguments));
    drop(device);
    let disk = backing.display().to_string();
    assert!(judge(&["sgdisk", "-v", &disk]).contains("No problems found"));
    fat_is_sound(&own, &own.cut(&disk, place(&report, 1).0, place(&report, 1).1));
    let volume = own.cut(&disk, place(&report, 2).0, place(&report, 2).1);
    Xfsprogs::newest().unwrap().repair_check(&volume).unwrap();
    // What the device held before is gone from behind the content.
    let raw = fs::read(own.cut(&disk, place(&report, 3).0, place(&report, 3).1)).unwrap();
    assert!(raw[(3 * MIB / 2 + 77) as usize..].iter().all(|byte| *byte == 0));

    File::options().write(true).open(&backing).unwrap().set_len(70 * MIB).unwrap();
    let device = LoopDevice::attach(&backing).unwrap();
    let name = device.path().display().to_string();
    let message = fails(1, [own.arguments(&name), vec!["--force".to_owned()]].concat());
    assert!(message.contains("the disk has 73400320"), "{message}");
    let tree = own.path("tree");
    let message = fails(2, ["build", "--force", "--format=qcow2", &tree, &name]);
    assert!(message.contains("is not one regular file"), "{message}");
    let sized = ["build", "--force", "--disk=gpt", "--disk-size=60M", &tree, &name];
    assert!(fails(2, sized).contains("leave --disk-size out"));
}

#[test]
fn a_disk_with_large_blocks_has_a_table_in_these() {
    if !kernel::available_or_report() {
        return;
    }
    let own = Place::new();
    let backing = own.home.path().join("backing");
    File::create(&backing).unwrap().set_len(400 * MIB).unwrap();
    let device = LoopDevice::attach_with(&backing, 4096).unwrap();
    let name = device.path().display().to_string();
    let mut arguments = own.arguments(&name);
    arguments.extend(["--json", "--sector-size=4096"].map(str::to_owned));
    let report = json(&succeeds(&arguments));
    assert!(judge(&["sgdisk", "-v", &name]).contains("No problems found"));
    let table = json(&judge(&["sfdisk", "--json", &name]));
    assert_eq!(table["partitiontable"]["sectorsize"], 4096);
    let start = table["partitiontable"]["partitions"][1]["start"].as_u64().unwrap() * 4096;
    assert_eq!(start, place(&report, 2).0);
    succeeds(["check", "--partition", "2", &name]);
    drop(device);
    let disk = backing.display().to_string();
    let fat = own.cut(&disk, place(&report, 1).0, place(&report, 1).1).display().to_string();
    judge(&["fsck.fat", "-n", &fat]);
}

#[test]
fn wrong_disks_are_refused_and_leave_nothing() {
    let own = Place::new();
    let disk = own.path("disk");
    let (tree, esp, raw) = (own.path("tree"), own.path("esp"), own.path("raw"));
    let link = own.home.path().join("cut-links");
    fs::create_dir(&link).unwrap();
    std::os::unix::fs::symlink("x", link.join("link")).unwrap();
    let link = link.display().to_string();
    let case = own.home.path().join("cut-case");
    fs::create_dir(&case).unwrap();
    ["Name", "name"].iter().for_each(|name| fs::write(case.join(name), "").unwrap());
    let case = case.display().to_string();
    let pipe = own.path("cut-pipe");
    judge(&["mkfifo", &pipe]);
    let none = own.path("cut-none");
    let before = own.made();
    let id = "11223344-5566-7788-99aa-bbccddeeff00";
    let cases: &[(i32, &[&str], &str)] = &[
        (2, &["root:xfs", "root:xfs"], "2 partitions hold the volume"),
        (2, &["root-arm64:xfs", "root-arm64:1G"], "partitions 1 and 2 are both root-arm64"),
        (2, &["swap:1G"], "0 partitions hold the volume"),
        (2, &["boot:xfs"], "\"boot\" is no type of partition"),
        (2, &["root:xfs,size=1G"], "give it with --size"),
        (2, &["root:xfs", "swap:8K"], "swap space takes 40960 at least"),
        (2, &["root:xfs", "linux:0"], "partition 2 is empty"),
        (2, &[&format!("root:xfs,name={}", "n".repeat(37))], "its name has 37 units"),
        (2, &[&format!("root:xfs,uuid={id}"), &format!("swap:1M,uuid={id}")], "the same uuid"),
        (2, &["root:xfs", "linux:8E", "home:8E"], "longer than any disk"),
        (1, &["root:xfs", &format!("linux:{none}")], "cannot open"),
        (1, &["root:xfs", &format!("linux:{raw},size=1M")], "has 1572941 bytes, its partition 2"),
        (1, &["root:xfs", &format!("linux:{esp}")], "build an image of it first"),
        (1, &["root:xfs", &format!("linux:{pipe}")], "is a special file"),
        (1, &["root:xfs", &format!("esp:{raw}")], "is no FAT image"),
        (1, &["root:xfs", &format!("esp:{esp},size=20M")], "too small for it (partition 2)"),
        (1, &["root:xfs", &format!("esp:{link}")], "FAT holds files and directories only"),
        (1, &["root:xfs", &format!("esp:{case}")], "FAT does not tell this name from"),
    ];
    for (status, partitions, expected) in cases {
        let partitions = partitions.iter().map(|partition| format!("--partition={partition}"));
        let mut arguments = vec!["build".to_owned(), "--disk=gpt".to_owned()];
        arguments.extend(partitions.chain([tree.clone(), disk.clone()]));
        let message = fails(*status, &arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
    assert_eq!(own.made(), before);
}

#[test]
fn wrong_targets_are_refused_and_stay() {
    let own = Place::new();
    let (disk, tree, raw) = (own.path("disk"), own.path("tree"), own.path("raw"));
    let fixed = ["build", "--disk=gpt", "--disk-size=50M", &tree, &disk];
    let partitions = ["--partition=root:xfs", "--partition=swap:48M"];
    let message = fails(1, [&fixed[..], &partitions].concat());
    // What is left is too small for a volume: the message is that of a volume.
    assert!(message.starts_with("error: "), "{message}");
    let partitions = ["--partition=root:xfs", "--partition=swap:50M"];
    let message = fails(1, [&fixed[..], &partitions].concat());
    assert!(message.contains("partition 2 (swap) takes 52428800 bytes from"), "{message}");
    assert!(message.contains("the disk has 52428800") && message.contains("need"), "{message}");
    let message = fails(1, [&fixed[..], &["--size=49M"]].concat());
    assert!(message.contains("the disk has 52428800"), "{message}");
    let stack = format!("linear({disk},{disk}-2)");
    let message = fails(2, ["build", "--format=qcow2", &tree, &stack]);
    assert!(message.contains("a qcow2 image must be"), "{message}");
    fails(2, ["build", "--partition=root:xfs", &tree, &disk]);
    fails(2, ["build", "--disk=mbr", &tree, &disk]);
    assert_eq!(own.made(), [""; 0]);
    // What existed stays as it was.
    fs::write(&disk, "old").unwrap();
    fails(
        1,
        [
            "build",
            "--force",
            "--disk=gpt",
            "--partition=root:xfs",
            &format!("--partition=esp:{raw}"),
            &tree,
            &disk,
        ],
    );
    assert_eq!(fs::read(&disk).unwrap(), b"old");
}

#[test]
fn a_fat_image_is_taken_as_it_is() {
    let own = Place::new();
    let (disk, fat) = (own.path("disk"), own.path("cut-fat"));
    File::create(&fat).unwrap().set_len(8 * MIB).unwrap();
    judge(&["mkfs.fat", "-F", "16", "-s", "1", &fat]);
    judge(&["mcopy", "-i", &fat, &own.path("raw"), "::/RAW"]);
    let partitions = [format!("--partition=esp:{fat}"), "--partition=root:xfs".to_owned()];
    let mut arguments = vec!["build".to_owned(), "--disk=gpt".to_owned(), "--json".to_owned()];
    arguments.extend(partitions.into_iter().chain([own.path("tree"), disk.clone()]));
    let (start, length) = place(&json(&succeeds(&arguments)), 1);
    assert!(fs::read(own.cut(&disk, start, length)).unwrap() == fs::read(&fat).unwrap());
    let window = format!("{disk}@@{start}");
    assert!(judge(&["mdir", "-i", &window, "::/"]).contains("RAW"));
}
