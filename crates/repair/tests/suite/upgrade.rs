//! Features turned on and off on volumes that the kernel filled: xfs_repair and the kernel judge them.

use std::path::Path;
use std::sync::Arc;

use undercroft_block::{
    BlockDevice, FileDevice, MemoryDevice, Sector, read_exact_at, write_all_at,
};
use undercroft_judges::mount::{Access, LoopMount};
use undercroft_judges::{Xfsprogs, kernel};
use undercroft_repair::{RepairError, UndoFile, Upgrade, Wanted};
use undercroft_xfs::format::{Features, Superblock};
use undercroft_xfs::mkfs::{Feature, Preset};

use crate::files;

const SIZE: u64 = 320 << 20;

/// What the kernel puts on a volume.
const SCRIPT: &str = "\
    for d in $(seq 8); do mkdir -p d$d/deep/deeper; \
      for i in $(seq 60); do head -c $((i * 700)) /dev/urandom > d$d/file-$i; done; \
      ln d$d/file-1 link-$d; ln -s $(head -c $((d * 70)) /dev/zero | tr '\\0' s) d$d/link; \
      mkfifo d$d/deep/fifo; done; \
    for i in $(seq 150); do : > d5/a-name-with-a-long-tail-that-fills-blocks-$i; done; \
    setfattr -n user.big -v $(head -c 9000 /dev/zero | tr '\\0' x) d4/file-3; \
    for i in $(seq 40); do setfattr -n user.$i -v $(head -c 60 /dev/zero | tr '\\0' y) d4/file-4; done; \
    fallocate -l 2M d6/full; for i in $(seq 0 60); do fallocate -p -o $((i * 32768)) -l 4096 d6/full; done; \
    if cp --reflink=always d6/full d7/copy 2>/dev/null; then cp --reflink=always d6/full d7/again; fi";

/// A format with few features.
pub(crate) const OLD: &[&str] = &[
    "-m",
    "finobt=1,inobtcount=0,rmapbt=0,reflink=0,bigtime=0",
    "-i",
    "nrext64=0,exchange=0",
    "-n",
    "parent=0",
];

/// A volume by `mkfs.xfs` and the kernel.
pub(crate) fn volume(arguments: &[&str]) -> Arc<dyn BlockDevice> {
    volume_with(SIZE, arguments, SCRIPT)
}

pub(crate) fn volume_with(size: u64, arguments: &[&str], script: &str) -> Arc<dyn BlockDevice> {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("made");
    Xfsprogs::newest().unwrap().mkfs(&image, size, arguments).unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    let mut shell = std::process::Command::new("bash");
    let done = shell.args(["-ec", script]).current_dir(mount.path()).status();
    assert!(done.unwrap().success());
    mount.unmount().unwrap();
    let bytes = std::fs::read(&image).unwrap();
    let device = Arc::new(MemoryDevice::new(bytes.len() as u64));
    write_all_at(device.as_ref(), Sector(0), &bytes).unwrap();
    device
}

fn bytes_of(device: &Arc<dyn BlockDevice>) -> Vec<u8> {
    let mut bytes = vec![0; device.capacity().0 as usize * 512];
    read_exact_at(device.as_ref(), Sector(0), &mut bytes).unwrap();
    bytes
}

/// Makes a volume a sparse file.
pub(crate) fn write(device: &Arc<dyn BlockDevice>, image: &Path) {
    let bytes = bytes_of(device);
    let file = std::fs::File::create(image).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    let to = FileDevice::open(image, false).unwrap();
    for (index, piece) in (0..).zip(bytes.chunks(1 << 16)) {
        if piece.iter().any(|byte| *byte != 0) {
            write_all_at(&to, Sector(index * 128), piece).unwrap();
        }
    }
}

fn superblock(device: &Arc<dyn BlockDevice>) -> Superblock {
    let mut first = vec![0; 4096];
    read_exact_at(device.as_ref(), Sector(0), &mut first).unwrap();
    Superblock::decode(&first).unwrap()
}

pub(crate) fn features(device: &Arc<dyn BlockDevice>) -> Features {
    superblock(device).features
}

fn preset(preset: Preset) -> Wanted {
    Wanted { preset: Some(preset), features: Vec::new() }
}

fn single(features: &[(Feature, bool)]) -> Wanted {
    Wanted { preset: None, features: features.to_vec() }
}

fn upgrade(device: &Arc<dyn BlockDevice>, wanted: &Wanted) -> Result<(), RepairError> {
    Upgrade::find(Arc::clone(device), wanted)?.commit(None)
}

/// Has xfs_repair, the kernel and xfs_repair again look at a volume.
fn judge(name: &str, device: &Arc<dyn BlockDevice>, tools: &[Xfsprogs]) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    write(device, &image);
    for tools in tools {
        tools.repair_check(&image).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]);
    let mount = mount.unwrap_or_else(|error| panic!("{name}: {error}"));
    let script = "mv d1 d2/moved; rm -r d3; cp -a d5 d9; sync; for i in $(seq 300); do echo $i > d4/$i; done";
    let mut shell = std::process::Command::new("bash");
    let done = shell.args(["-ec", script]).current_dir(mount.path()).status();
    assert!(done.unwrap().success(), "{name}");
    mount.unmount().unwrap();
    for tools in tools {
        tools.repair_check(&image).unwrap_or_else(|error| panic!("{name}, used: {error}"));
    }
}

/// Upgrades a volume and has it judged; data of files must not be written.
fn upgraded(name: &str, format: &[&str], wanted: &Wanted) -> Arc<dyn BlockDevice> {
    let device = volume(format);
    let before = files::of(Arc::clone(&device));
    assert!(before.len() > 400, "{name}: {}", before.len());
    upgrade(&device, wanted).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(files::of(Arc::clone(&device)), before, "{name}");
    let mut tools = vec![Xfsprogs::newest().unwrap()];
    let incompat = features(&device).incompat.bits();
    // Neither exchange nor parent pointers are known to older ones.
    if incompat & 0xc0 == 0 {
        tools.push(Xfsprogs::distribution().unwrap());
    }
    judge(name, &device, &tools);
    device
}

#[test]
fn volumes_of_the_kernel_get_the_features_of_presets() {
    if !kernel::available_or_report() {
        return;
    }
    let small = [OLD, &["-b", "size=1024"]].concat();
    let large = [OLD, &["-i", "size=2048", "-n", "size=16384", "-s", "size=4096"]].concat();
    let striped = [OLD, &["-d", "su=64k,sw=4"]].concat();
    for (name, format) in
        [("plain", OLD), ("small", &small), ("large", &large), ("striped", &striped)]
    {
        let device = upgraded(name, format, &preset(Preset::Linux6_12));
        assert!(features(&device).rmapbt() && features(&device).nrext64(), "{name}");
    }
    let device = upgraded("newest", OLD, &preset(Preset::Default));
    assert!(features(&device).parent_pointers());
}

#[test]
fn features_are_turned_on_and_off_one_by_one() {
    if !kernel::available_or_report() {
        return;
    }
    let cases: [(&str, &[&str], Wanted); 6] = [
        ("parent", &["-n", "parent=0"], single(&[(Feature::Parent, true)])),
        ("reflink", OLD, single(&[(Feature::Reflink, true)])),
        ("rmapbt", &["-m", "rmapbt=0", "-n", "parent=0"], single(&[(Feature::Rmapbt, true)])),
        ("rmapbt off", &["-m", "rmapbt=1"], single(&[(Feature::Rmapbt, false)])),
        ("bigtime", OLD, single(&[(Feature::Bigtime, true), (Feature::Exchange, true)])),
        (
            "trees of inodes off",
            &["-n", "parent=0"],
            single(&[(Feature::Finobt, false), (Feature::Inobtcount, false)]),
        ),
    ];
    for (name, format, wanted) in cases {
        let device = upgraded(name, format, &wanted);
        let again = Upgrade::find(device, &wanted).unwrap();
        assert!(again.is_done() && again.bytes() == (0, 0), "{name}");
    }
}

/// A journal that kernels would not take for the new features becomes longer.
#[test]
fn a_journal_that_is_too_short_becomes_longer() {
    if !kernel::available_or_report() {
        return;
    }
    let format = [OLD, &["-l", "size=1408b"]].concat();
    let device = upgraded("short journal", &format, &preset(Preset::Linux6_12));
    assert!(superblock(&device).log_blocks > 1408);
}

/// Blocks of files are read at most: what an upgrade writes is elsewhere.
#[test]
fn data_of_files_are_not_written() {
    if !kernel::available_or_report() {
        return;
    }
    let device = volume(OLD);
    let before = bytes_of(&device);
    let free = free_blocks(&device);
    upgrade(&device, &preset(Preset::Default)).unwrap();
    let after = bytes_of(&device);
    let blocks = before.chunks(4096).zip(after.chunks(4096));
    let changed = blocks.enumerate().filter(|(_, (old, new))| old != new);
    let in_use: Vec<_> = changed.filter(|(block, _)| !free.contains(block)).collect();
    // Headers of groups, inodes, blocks of attributes: all of them say what they are.
    for (block, (old, _)) in &in_use {
        let is_metadata = [&b"XFSB"[..], b"XAGF", b"IN"].iter().any(|magic| old.starts_with(magic))
            || old[8..10] == [0x3e, 0xbe]
            || old[8..10] == [0x3b, 0xee]
            || old.starts_with(b"XARM");
        assert!(is_metadata, "block {block} holds something else");
    }
    assert!(in_use.len() > 50, "{}", in_use.len());
}

/// The blocks that are free on a volume with blocks of 4 KiB.
fn free_blocks(device: &Arc<dyn BlockDevice>) -> std::collections::HashSet<usize> {
    use undercroft_recover::{Disk, pieces};
    use undercroft_xfs::units::AgNumber;
    let disk = Disk::new(Arc::clone(device)).unwrap();
    let geometry = superblock(device).geometry();
    let mut free = std::collections::HashSet::new();
    for ag in (0..geometry.ag_count).map(AgNumber) {
        for record in pieces::free(&disk, ag).unwrap() {
            let first = (geometry.ag_sector(ag, record.start).0 / 8) as usize;
            free.extend(first..first + record.len as usize);
        }
    }
    free
}

#[test]
fn an_undo_file_makes_the_volume_what_it_was() {
    if !kernel::available_or_report() {
        return;
    }
    let device = volume(OLD);
    let (before, free) = (bytes_of(&device), free_blocks(&device));
    let directory = tempfile::tempdir().unwrap();
    let undo = directory.path().join("undo");
    let wanted = preset(Preset::Default);
    Upgrade::find(Arc::clone(&device), &wanted).unwrap().commit(Some(&undo)).unwrap();
    assert!(features(&device).parent_pointers());
    UndoFile::open(&undo).unwrap().take_back(&device).unwrap();
    let after = bytes_of(&device);
    let blocks = before.chunks(4096).zip(after.chunks(4096)).enumerate();
    let other = blocks.filter(|(block, (old, new))| old != new && !free.contains(block)).count();
    assert_eq!(other, 0);
    judge("taken back", &device, &[Xfsprogs::newest().unwrap()]);
}

/// What cannot be is refused, and nothing is written.
#[test]
fn what_cannot_be_is_refused_by_name() {
    if !kernel::available_or_report() {
        return;
    }
    let refused = |format: &[&str], script: &str, size: u64, wanted: &Wanted| {
        let device = volume_with(size, format, script);
        let before = bytes_of(&device);
        let error = upgrade(&device, wanted).unwrap_err().to_string();
        assert!(bytes_of(&device) == before, "{error}");
        error
    };
    let rmapbt = single(&[(Feature::Rmapbt, true)]);
    let error =
        refused(&["-m", "rmapbt=0,finobt=0,reflink=0", "-n", "parent=0"], "", SIZE, &rmapbt);
    assert!(error.contains("root directory at inode 128 and not at 64"), "{error}");
    let error = refused(&[], "", SIZE, &single(&[(Feature::Parent, false)]));
    assert!(error.contains("parent cannot be turned off"), "{error}");
    let script = "head -c 99999 /dev/zero > a; cp --reflink=always a b";
    let error = refused(&[], script, SIZE, &single(&[(Feature::Reflink, false)]));
    assert!(error.contains("2 files share blocks"), "{error}");
    let error = refused(&[], "", SIZE, &single(&[(Feature::Finobt, false)]));
    assert!(error.contains("inobtcount needs finobt"), "{error}");
    let sparse = ["-i", "sparse=0", "-n", "parent=0"];
    let script = "for i in $(seq 2000); do : > $i; done";
    let error = refused(&sparse, script, SIZE, &single(&[(Feature::Sparse, true)]));
    assert!(error.contains("chunks of inodes do not begin"), "{error}");
    let fill = "i=0; while fallocate -l 1M $i 2>/dev/null; do i=$((i + 1)); done; true";
    let format = ["-m", "rmapbt=0", "-n", "parent=0"];
    let error = refused(&format, fill, SIZE, &rmapbt);
    assert!(error.contains("too little free space"), "{error}");
}

#[test]
fn a_damaged_volume_is_left_alone() {
    if !kernel::available_or_report() {
        return;
    }
    let device = volume(OLD);
    let root = superblock(&device).root_inode;
    let sector = superblock(&device).geometry().inode_sector(root);
    write_all_at(device.as_ref(), Sector(sector.0 + 1), &[7; 512]).unwrap();
    let before = bytes_of(&device);
    let error = upgrade(&device, &preset(Preset::Default)).unwrap_err().to_string();
    assert!(error.contains("inode 129") && error.contains("undercroft repair"), "{error}");
    assert!(bytes_of(&device) == before);
}
