//! Volumes on logical volumes of LVM: found, read, changed; LVM and xfs_repair judge.

use crate::run::{fails, says, succeeds};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use undercroft_judges::lvm::{Lvm, Runs};
use undercroft_judges::{Xfsprogs, kernel};

const MIB: u64 = 1 << 20;

/// Files that are the disks of a group `vg` with a volume `root` in stripes, which has a volume of XFS,
/// and an empty one, `swap`.
struct Disks {
    home: tempfile::TempDir,
    root: Runs,
}

impl Disks {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        fs::create_dir_all(path("tree/etc")).unwrap();
        fs::write(path("tree/etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        fs::write(path("tree/big"), vec![7; 3 << 20]).unwrap();
        let (tree, image) = (text(&path("tree")), text(&path("image")));
        succeeds(["build", "--size", "64M", "--label", "system", &tree, &image]);
        for name in ["a.img", "b.img"] {
            File::create(path(name)).unwrap().set_len(48 * MIB).unwrap();
        }
        let lvm = Lvm::attach(home.path(), &["a.img", "b.img"]).unwrap();
        let disks = lvm.disks();
        lvm.run(&["pvcreate", &disks[0], &disks[1]]).unwrap();
        lvm.run(&["vgcreate", "-s", "1M", "vg", &disks[0], &disks[1]]).unwrap();
        let create = ["lvcreate", "-an", "-Zn", "-Wn", "-n"];
        lvm.run(&[&create[..], &["root", "-i2", "-I16k", "-L64M", "vg"]].concat()).unwrap();
        lvm.run(&[&create[..], &["swap", "-L8M", "vg"]].concat()).unwrap();
        let root = lvm.runs("vg/root").unwrap();
        root.write(&fs::read(path("image")).unwrap()).unwrap();
        drop(lvm);
        Self { home, root }
    }

    /// Both disks, in words.
    fn all(&self) -> String {
        format!("lvm({},{})", self.path("a.img"), self.path("b.img"))
    }

    fn path(&self, name: &str) -> String {
        text(&self.home.path().join(name))
    }

    /// Fails unless LVM and xfs_repair find nothing wrong.
    fn judge(&self) {
        let volume = self.home.path().join("volume");
        fs::write(&volume, self.root.read().unwrap()).unwrap();
        Xfsprogs::newest().unwrap().repair_check(&volume).unwrap();
        let lvm = Lvm::attach(self.home.path(), &["a.img", "b.img"]).unwrap();
        lvm.run(&["vgck", "vg"]).unwrap();
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_volume_on_several_disks_is_read_and_changed() {
    let disks = Disks::new();
    let all = disks.all();
    assert_eq!(succeeds(["cat", &all, "/etc/hosts"]), "127.0.0.1 localhost\n");
    let note = says(["ls", &all]);
    assert!(note.contains("belongs to LVM; the volume is in logical volume vg/root"), "{note}");
    succeeds(["mkdir", "--lv", "vg/root", &all, "/new"]);
    succeeds(["rm", "--lv", "vg/root", &all, "/etc/hosts"]);
    assert!(succeeds(["check", &all]).starts_with("clean"));
    assert!(succeeds(["deleted", &all]).contains("/etc/hosts"));
    assert!(succeeds(["shrink", "--size=min", &all]).contains("groups"));
    succeeds(["grow", &all]);
    disks.judge();
    let out = disks.path("out");
    succeeds(["extract", &all, &out]);
    assert!(fs::read(format!("{out}/big")).unwrap() == vec![7; 3 << 20]);
    assert_eq!(fs::metadata(disks.path("a.img")).unwrap().len(), 48 * MIB);
}

#[test]
fn a_volume_on_several_disks_is_mounted() {
    if !kernel::fuse_available_or_report() {
        return;
    }
    let disks = Disks::new();
    let script = "cp etc/hosts etc/copy && sync -f . && cat etc/copy";
    let said = succeeds(["mount", "-o", "lv=vg/root", &disks.all(), "--exec", "sh", "-c", script]);
    assert_eq!(said, "127.0.0.1 localhost\n");
    disks.judge();
}

#[test]
fn what_is_on_disks_is_listed() {
    let disks = Disks::new();
    let all = disks.all();
    let table = succeeds(["disks", &all]);
    for words in
        ["a.img  ", "physical volume of LVM", "vg/root", "XFS file system", "system", "vg/swap"]
    {
        assert!(table.contains(words), "{words}: {table}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&succeeds(["disks", "--json", &all])).unwrap();
    let volumes = &json["disks"][0]["logical_volumes"];
    assert_eq!((&volumes[0]["group"], &volumes[0]["name"]), (&"vg".into(), &"root".into()));
    assert_eq!(volumes[0]["bytes"], 64 * MIB);
    assert_eq!(volumes[0]["label"], "system");
    assert_eq!(json["disks"][1]["label"], "vg");
    let message = fails(1, ["ls", "--lv", "vg/none", &all]);
    assert!(message.contains("there is no logical volume vg/none:"), "{message}");
    assert!(message.contains("vg/root (logical volume, 64.0 MiB): an XFS"), "{message}");
    let message = fails(1, ["ls", "--lv", "vg/swap", &all]);
    assert!(message.contains("begins with zeroes"), "{message}");
    // One of them alone has half of the stripes.
    let message = fails(1, ["ls", &disks.path("a.img")]);
    assert!(message.contains("needs the physical volume"), "{message}");
    let message = fails(1, ["ls", "--lv", "vg/root", &disks.path("a.img")]);
    assert!(message.contains("as in 'lvm(a.img,b.img)'"), "{message}");
    fails(2, ["ls", "--lv", "root", &all]);
    fails(2, ["ls", "--lv", "vg/root", "--offset", "1M", &all]);
}

#[test]
fn a_group_in_partitions_is_found_by_itself() {
    let disks = Disks::new();
    let disk = disks.path("disk.img");
    let file = File::options().create_new(true).read(true).write(true).open(&disk).unwrap();
    file.set_len(128 * MIB).unwrap();
    let mut sfdisk =
        Command::new("sfdisk").args(["--quiet", &disk]).stdin(Stdio::piped()).spawn().unwrap();
    let script = "label: gpt\nstart=2048, size=4096\nstart=8192, size=98304\nstart=106496, size=98304, name=more\n";
    sfdisk.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(sfdisk.wait().unwrap().success());
    file.write_all_at(&fs::read(disks.path("a.img")).unwrap(), 8192 * 512).unwrap();
    file.write_all_at(&fs::read(disks.path("b.img")).unwrap(), 106_496 * 512).unwrap();
    let note = says(["ls", &disk]);
    assert!(note.contains("the volume is in logical volume vg/root of partition 2"), "{note}");
    succeeds(["mkdir", &disk, "/new"]);
    succeeds(["mkdir", "--lv", "/dev/vg/root", &disk, "/newer"]);
    assert_eq!(succeeds(["ls", &disk]), "big\netc\nnew\nnewer\n");
    assert!(succeeds(["check", &disk]).starts_with("clean"));
    // A qcow2 of the same.
    let image = disks.path("disk.qcow2");
    let convert = ["convert", "-O", "qcow2", &disk, &image];
    assert!(Command::new("qemu-img").args(convert).status().unwrap().success());
    assert_eq!(succeeds(["ls", &image]), "big\netc\nnew\nnewer\n");
    succeeds(["rm", &image, "/new", "-r"]);
    assert!(Command::new("qemu-img").args(["check", &image]).status().unwrap().success());
    assert_eq!(succeeds(["ls", "--lv", "vg/root", &image]), "big\netc\nnewer\n");
    // Whose start is damaged: the copy of the table is sound.
    file.write_all_at(&[0; 1024], 512).unwrap();
    assert_eq!(succeeds(["ls", &disk]), "big\netc\nnew\nnewer\n");
}
