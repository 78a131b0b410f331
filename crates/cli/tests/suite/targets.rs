//! Where an image goes: block devices, targets in use, and disks without room.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use undercroft_judges::mount::Access;
use undercroft_judges::tree::{Options, compare};
use undercroft_judges::{LoopDevice, LoopMount, Xfsprogs, kernel};

use crate::run::{fails, program, succeeds};

const MIB: u64 = 1 << 20;

/// A tree and a file of 40 MiB for a device to lie over.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("tree");
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        fs::write(root.join("data"), vec![5; 3_000_000]).unwrap();
        // The earlier content must not show through.
        let backing = File::create(home.path().join("backing")).unwrap();
        let noise = vec![0xa5; MIB as usize];
        (0..40).for_each(|_| (&backing).write_all(&noise).unwrap());
        Self { home }
    }

    fn tree(&self) -> String {
        self.home.path().join("tree").display().to_string()
    }

    fn backing(&self) -> PathBuf {
        self.home.path().join("backing")
    }
}

fn digest(path: &Path) -> Vec<u8> {
    Command::new("sha256sum").arg(path).output().unwrap().stdout
}

#[test]
fn a_block_device_as_target() {
    if !kernel::available_or_report() {
        return;
    }
    let place = Place::new();
    let (tree, backing) = (place.tree(), place.backing());
    let before = digest(&backing);
    let device = LoopDevice::attach(&backing).unwrap();
    let name = device.path().display().to_string();

    let message = fails(1, ["build", "--force", "--size", "80M", &tree, &name]);
    assert!(message.contains("has 41943040 bytes"), "{message}");
    assert_eq!(digest(&backing), before, "what is refused writes nothing");

    // There is nothing that could be lost.
    succeeds(["build", "--label", "device", &tree, &name]);
    assert!(succeeds(["info", &name]).contains("device"));
    assert!(succeeds(["check", &name]).starts_with("clean"));
    drop(device);
    Xfsprogs::newest().unwrap().repair_check(&backing).unwrap();
    let mount = LoopMount::new(&backing, Access::ReadOnly, &[]).unwrap();
    compare(Path::new(&tree), mount.path(), &Options::default()).unwrap().assert_same();
    let size = rustix::fs::statvfs(mount.path()).unwrap();
    assert!(size.f_blocks * size.f_frsize > 32 * MIB, "the volume takes all of the device");
    mount.unmount().unwrap();
    assert_eq!(LoopDevice::attached(&backing).unwrap(), [] as [PathBuf; 0]);
}

fn run_tool(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What is on a device is named, and goes with --force alone: as mkfs.xfs takes it.
#[test]
fn what_a_device_holds_is_not_lost_unasked() {
    if !kernel::available_or_report() {
        return;
    }
    let place = Place::new();
    let (tree, backing) = (place.tree(), place.backing());
    let device = LoopDevice::attach(&backing).unwrap();
    let name = device.path().display().to_string();
    let table = format!("printf 'label: gpt\\nsize=10M\\nsize=10M\\n' | sfdisk --quiet {name}");
    // The second table is without its first copy.
    let cut = format!("{table} && dd if=/dev/zero of={name} bs=4096 count=2 conv=notrunc,fsync");
    let makers: [(&[&str], &str); 5] = [
        (
            &["mkfs.ext4", "-qF", "-L", "data disk", &name],
            "ext4 file system labelled \"data disk\"",
        ),
        (&["mkfs.vfat", "-n", "STICK", &name], "a FAT file system labelled \"STICK\""),
        (&["mkswap", "-L", "pages", &name], "swap space labelled \"pages\""),
        (&["sh", "-c", &table], "a partition table (GPT) with the partitions 1, 2"),
        (&["sh", "-c", &cut], "a partition table (GPT) with the partitions 1, 2"),
    ];
    let theirs = Xfsprogs::newest().unwrap();
    let mkfs = theirs.tool("mkfs.xfs").unwrap();
    for (maker, named) in makers {
        run_tool(&["dd", "if=/dev/zero", &format!("of={name}"), "bs=1M", "count=40", "conv=fsync"]);
        run_tool(maker);
        let before = digest(&backing);
        for command in [&["mkfs", &name][..], &["build", &tree, &name]] {
            let message = fails(1, command);
            assert!(message.contains(named) && message.contains("--force"), "{message}");
        }
        assert!(!Command::new(mkfs).arg(&name).output().unwrap().status.success(), "{maker:?}");
        assert_eq!(digest(&backing), before, "what is refused writes nothing");
        succeeds(["mkfs", "--force", &name]);
        let message = fails(1, ["mkfs", &name]);
        assert!(message.contains("an XFS file system"), "{message}");
    }
}

/// Kernels mount no volume whose sectors are shorter than the blocks of its disk.
#[test]
fn sectors_are_no_shorter_than_the_blocks_of_the_disk() {
    if !kernel::available_or_report() {
        return;
    }
    let place = Place::new();
    let (tree, backing) = (place.tree(), place.backing());
    let device = LoopDevice::attach_with(&backing, 4096).unwrap();
    let name = device.path().display().to_string();
    let before = digest(&backing);
    let message = fails(2, ["mkfs", "--force", "--block-size", "1K", &name]);
    assert!(message.contains("has blocks of 4096 bytes"), "{message}");
    assert_eq!(digest(&backing), before, "what is refused writes nothing");
    let makers: [&[&str]; 3] = [
        &["mkfs", "--force", &name],
        &["build", "--force", "--verify", &tree, &name],
        &["build", "--force", "--sector-size", "512", &tree, &name],
    ];
    for maker in makers {
        succeeds(maker);
        assert!(succeeds(["info", "--json", &name]).contains("\"sector_size\":4096"), "{maker:?}");
        Xfsprogs::newest().unwrap().repair_check(device.path()).unwrap();
        let mount = LoopMount::new(device.path(), Access::ReadWrite, &[]).unwrap();
        fs::write(mount.join("more"), "more").unwrap();
        mount.unmount().unwrap();
    }
    succeeds(["build", "--force", "--disk", "gpt", &tree, &name]);
    let info = succeeds(["info", "--json", "--partition", "1", &name]);
    assert!(info.contains("\"sector_size\":4096"), "{info}");
}

#[test]
fn a_target_in_use_is_always_refused() {
    if !kernel::available_or_report() {
        return;
    }
    let place = Place::new();
    let (tree, backing) = (place.tree(), place.backing());
    let file = backing.display().to_string();
    succeeds(["build", "--force", &tree, &file]);
    let before = digest(&backing);
    let mount = LoopMount::new(&backing, Access::ReadOnly, &[]).unwrap();
    let device = LoopDevice::attached(&backing).unwrap().remove(0).display().to_string();
    for target in [&file, &device] {
        for force in [&[][..], &["--force"]] {
            let message = fails(1, [&["build", &tree, target], force].concat());
            let expected = format!("{target} is mounted at {}", mount.path().display());
            assert!(message.contains(&expected), "{message}");
            let message = fails(1, [&["mkfs", "--size", "32M", target], force].concat());
            assert!(message.contains(&expected), "{message}");
        }
    }
    mount.unmount().unwrap();
    assert_eq!(digest(&backing), before);

    // Held by something else than a mount, such as an array, swap, or a mounted partition.
    let device = LoopDevice::attach(&backing).unwrap();
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let holder = File::options().read(true).custom_flags(exclusive).open(device.path()).unwrap();
    let name = device.path().display().to_string();
    let message = fails(1, ["build", "--force", &tree, &name]);
    assert!(message.contains(&format!("{name} is in use")), "{message}");
    drop(holder);
    drop(device);
    assert_eq!(digest(&backing), before);
    assert_eq!(LoopDevice::attached(&backing).unwrap(), [] as [PathBuf; 0]);
}

#[test]
fn an_interrupted_build_leaves_no_volume_on_a_device() {
    if !kernel::available_or_report() {
        return;
    }
    let place = Place::new();
    let backing = place.backing();
    let device = LoopDevice::attach(&backing).unwrap();
    let name = device.path().display().to_string();
    succeeds(["build", "--force", &place.tree(), &name]);
    let child = program()
        .args(["build", "--force", "--uuid=2f5e0c3a-0000-4000-8000-000000000001", "-", &name])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    crate::interruption::interrupt_halfway(child, "TERM");
    let message = fails(1, ["info", &name]);
    assert!(message.starts_with("error: "), "{message}");
    drop(device);
    assert!(Xfsprogs::newest().unwrap().repair_check(&backing).is_err());
    let mut start = [0; 4];
    File::open(&backing).unwrap().read_exact(&mut start).unwrap();
    assert_ne!(&start, b"XFSB", "neither the new volume nor the old one");
}

#[test]
fn a_volume_too_small_names_a_size_that_is_enough() {
    let place = Place::new();
    let tree = place.tree();
    fs::write(Path::new(&tree).join("large"), vec![6; 30_000_000]).unwrap();
    let image = place.home.path().join("image").display().to_string();
    let message = fails(1, ["build", "--size", "20M", &tree, &image]);
    let (_, size) = message.split_once("use --size ").expect(&message);
    let size: String = size.chars().take_while(char::is_ascii_digit).collect();
    assert!(!Path::new(&image).exists());
    succeeds(["build", "--size", &size, &tree, &image]);
    assert_eq!(fs::metadata(&image).unwrap().len(), size.parse::<u64>().unwrap());
}

#[test]
fn a_disk_without_room() {
    if !kernel::available_or_report() {
        return;
    }
    let place = Place::new();
    let tree = place.tree();
    fs::write(Path::new(&tree).join("large"), vec![6; 24_000_000]).unwrap();
    let disk = place.home.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = |arguments: &[&str]| Command::new(arguments[0]).args(&arguments[1..]).status();
    let at = disk.display().to_string();
    assert!(mount(&["mount", "-t", "tmpfs", "-o", "size=8m", "none", &at]).unwrap().success());
    let message = fails(1, ["build", &tree, &disk.join("image").display().to_string()]);
    let left = fs::read_dir(&disk).unwrap().count();
    assert!(mount(&["umount", &at]).unwrap().success());
    assert!(message.contains("no space left") && message.contains("make room"), "{message}");
    assert_eq!(left, 0);
}
