//! What is left of a removed file: in its inode after us as after the kernel, and nothing after a wipe.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};
use undercroft_testkit::xfs::judged;
use undercroft_xfs::Volume;
use undercroft_xfs::format::{FileType, Superblock, Timestamp};
use undercroft_xfs::ops::{self, NewInode, Wiping};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;

/// The time of removals by us.
const NOW: Timestamp = Timestamp { seconds: 1_800_000_000, nanoseconds: 7 };

/// Files of all forms, by name. Their bytes are 0x5a; their directory is `kept`, with others that stay.
fn make(image: &Path, options: &[&str]) -> BTreeMap<String, u64> {
    Xfsprogs::newest().unwrap().mkfs(image, 320 << 20, options).unwrap();
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    let kept = mount.join("kept");
    fs::create_dir(&kept).unwrap();
    let mut numbers = BTreeMap::new();
    for (name, pieces) in [("empty", 0), ("one", 1), ("list", 9), ("tree", 300), ("steps", 19)] {
        let file = fs::File::create(kept.join(name)).unwrap();
        for piece in 0..pieces {
            file.write_all_at(&[0x5a; 4096], piece * 16384).unwrap();
        }
        file.sync_all().unwrap();
        fs::write(kept.join(format!("stays-{name}")), "x").unwrap();
    }
    let value = |len: usize| vec![b'v'; len];
    for (name, len) in [("short-attribute", 10), ("leaf", 900), ("remote", 9000)] {
        fs::write(kept.join(name), "attributes").unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(kept.join(name), "user.value", &value(len), flags).unwrap();
    }
    symlink("target", kept.join("short-link")).unwrap();
    symlink("t".repeat(800), kept.join("long-link")).unwrap();
    let mode = rustix::fs::Mode::from(0o644);
    let (kind, number) = (rustix::fs::FileType::Fifo, 0);
    rustix::fs::mknodat(rustix::fs::CWD, kept.join("pipe"), kind, mode, number).unwrap();
    for entry in fs::read_dir(&kept).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with("stays") {
            numbers.insert(name, entry.metadata().unwrap().ino());
        }
    }
    mount.unmount().unwrap();
    numbers
}

/// The bytes of an inode in its place.
fn inode(image: &Path, number: u64) -> Vec<u8> {
    let file = fs::File::open(image).unwrap();
    let mut start = vec![0; 4096];
    file.read_exact_at(&mut start, 0).unwrap();
    let geometry = Superblock::decode(&start).unwrap().geometry();
    let (ag, agino) = geometry.split_inode(InodeNumber(number));
    let (block, index) = geometry.inode_block(agino);
    let size = geometry.inode_size();
    let at = geometry.ag_sector(ag, block).0 * 512 + u64::from(index) * size as u64;
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, at).unwrap();
    bytes
}

fn open(image: &Path) -> Volume {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    Volume::open_live(device, &LiveOptions::default()).unwrap()
}

fn kept(volume: &Volume) -> InodeNumber {
    let root = volume.inode(volume.geometry().root_inode).unwrap();
    let root = root.read();
    ops::lookup(volume, &root, b"kept").unwrap().unwrap()
}

/// Where the size is.
const SIZE: std::ops::Range<usize> = 56..64;

/// A core without the fields that say when: time of change, its count, position; without the checksum, and the
/// size, which a kernel takes from files.
fn without_times(core: &[u8]) -> Vec<u8> {
    let mut core = core.to_vec();
    for range in [48..56, SIZE, 100..120] {
        core[range].fill(0);
    }
    core
}

#[test]
fn a_removed_file_leaves_what_it_leaves_under_a_kernel() {
    if !kernel::available_or_report() {
        return;
    }
    const CORE: usize = 176;
    for options in [&[][..], &["-n", "parent=0"], &["-b", "size=1024"]] {
        let home = tempfile::tempdir().unwrap();
        let (ours, its) = (home.path().join("ours"), home.path().join("its"));
        let numbers = make(&ours, options);
        image::copy(&ours, &its).unwrap();
        let before: BTreeMap<_, _> =
            numbers.iter().map(|(name, number)| (name, inode(&ours, *number))).collect();

        let volume = open(&ours);
        let directory = kept(&volume);
        for name in numbers.keys() {
            ops::unlink(&volume, directory, name.as_bytes(), NOW).unwrap();
        }
        volume.close().unwrap();
        drop(volume);
        let mount = LoopMount::new(&its, Access::ReadWrite, &[]).unwrap();
        numbers.keys().for_each(|name| fs::remove_file(mount.join("kept").join(name)).unwrap());
        mount.unmount().unwrap();

        for (name, number) in &numbers {
            let what = format!("{options:?}, {name}");
            let (left, left_by_kernel) = (inode(&ours, *number), inode(&its, *number));
            assert_eq!(left[CORE..], before[name][CORE..], "{what}: the area of the forks");
            assert_eq!(left_by_kernel[CORE..], left[CORE..], "{what}: a kernel");
            assert_eq!(left[SIZE], before[name][SIZE], "{what}: the size");
            assert_eq!(
                without_times(&left_by_kernel[..CORE]),
                without_times(&left[..CORE]),
                "{what}: the core"
            );
        }
        judged::sound(&ours, "removed");
        used_again(&ours, numbers.len());
    }
}

/// Takes the free inodes for new files, some by us and some by the kernel.
fn used_again(image: &Path, count: usize) {
    let volume = open(image);
    let directory = kept(&volume);
    for number in 0..count / 2 {
        let new = NewInode::new(FileType::Regular, 0o600);
        let name = format!("new-{number}");
        let made = ops::make(&volume, directory, name.as_bytes(), &new).unwrap();
        let inode = volume.inode(made).unwrap();
        assert!(ops::attributes(&volume, &inode.read()).unwrap().is_empty());
        assert!(inode.read().data.is_empty());
    }
    volume.close().unwrap();
    drop(volume);
    judged::sound(image, "used again");
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    for number in count / 2..count {
        fs::write(mount.join("kept").join(format!("new-{number}")), "again").unwrap();
    }
    mount.unmount().unwrap();
    judged::sound(image, "used again by a kernel");
}

/// Bytes of files, names and attributes are in the journal alone.
#[test]
fn a_wiped_file_leaves_nothing_outside_of_the_journal() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image");
    Xfsprogs::newest().unwrap().mkfs(&image, 320 << 20, &[]).unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    let keys = mount.join("kept/keys");
    fs::create_dir_all(&keys).unwrap();
    // The directories are long enough to have blocks.
    for number in 0..60 {
        fs::write(mount.join(format!("kept/stays-with-a-long-name-{number}")), "x").unwrap();
        fs::write(keys.join(format!("secret-name-{number}")), "secret-data".repeat(2000)).unwrap();
    }
    let large = fs::File::create(mount.join("kept/secret-name-large")).unwrap();
    (0..300).for_each(|piece| large.write_all_at(b"secret-data", piece * 16384).unwrap());
    drop(large);
    let (flags, value) = (rustix::fs::XattrFlags::empty(), "secret-value".repeat(500));
    rustix::fs::setxattr(keys.join("secret-name-7"), "user.x", value.as_bytes(), flags).unwrap();
    symlink("secret-target".repeat(60), mount.join("kept/secret-name-link")).unwrap();
    fs::write(mount.join("kept/shared"), "held-by-both".repeat(1000)).unwrap();
    let (from, to) = (mount.join("kept/shared"), mount.join("kept/secret-name-clone"));
    let mut copy = Command::new("cp");
    assert!(copy.arg("--reflink=always").args([&from, &to]).status().unwrap().success());
    mount.unmount().unwrap();

    let volume = open(&image);
    let directory = kept(&volume);
    let mut wiping = Wiping::new(&volume);
    wiping.remove_all(directory, b"keys", NOW).unwrap();
    for name in ["secret-name-large", "secret-name-link", "secret-name-clone"] {
        wiping.remove(directory, name.as_bytes(), NOW).unwrap();
    }
    wiping.finish().unwrap();
    let geometry = volume.geometry().clone();
    volume.close().unwrap();
    drop(volume);
    judged::sound(&image, "wiped");

    let mut bytes = fs::read(&image).unwrap();
    let log = geometry.sector(geometry.log_start).0 as usize * 512;
    let log = log..log + ((geometry.log_blocks as usize) << geometry.block_log);
    assert!(find(&bytes[log.clone()], b"secret-name").is_some(), "the journal keeps its history");
    bytes[log].fill(0);
    for word in ["secret-name", "secret-data", "secret-value", "secret-target"] {
        let at = find(&bytes, word.as_bytes());
        assert_eq!(at, None, "{word}: {:?}", at.map(|at| at / 4096));
    }
    assert!(find(&bytes, b"held-by-both").is_some());
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word)
}
