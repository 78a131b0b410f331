//! Forms of volumes that are seldom: large blocks and sectors, scattered directory blocks, shared files.

use std::sync::Arc;

use undercroft_block::{BlockDevice, MemoryDevice, Sector, read_exact_at, write_all_at};
use undercroft_fs::{FileSystem, OpenOptions};
use undercroft_judges::{Xfsprogs, kernel};
use undercroft_repair::{Plan, RepairError};
use undercroft_xfs::format::{BufferKind, FileType, Superblock};
use undercroft_xfs::mkfs::{self, Feature, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use uuid::Uuid;

use crate::files;

const SIZE: u64 = 320 << 20;

/// A volume with directories of several blocks, files, links and clones.
pub(crate) fn volume(options: &MkfsOptions) -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(options.size));
    let plan = mkfs::plan(options).unwrap();
    let volume = mkfs::begin(&device, plan, &NewInode::new(FileType::Directory, 0o755)).unwrap();
    mkfs::finish(&volume, false).unwrap();
    drop(volume);
    let fs = FileSystem::open(Arc::clone(&device), &OpenOptions::writable()).unwrap();
    for directory in 0..5 {
        fs.create_dir(format!("/d{directory}")).unwrap();
    }
    // In turn, so that blocks of directories do not lie side by side.
    for file in 0..600 {
        for directory in 0..5 {
            let name = format!("/d{directory}/{}-{file}", "name-that-is-long".repeat(2));
            fs.write(name, vec![file as u8; 1700 * (file % 5) + directory]).unwrap();
        }
    }
    fs.close().unwrap();
    device
}

fn bytes_of(device: &Arc<dyn BlockDevice>) -> Vec<u8> {
    let mut bytes = vec![0; device.capacity().0 as usize * 512];
    read_exact_at(device.as_ref(), Sector(0), &mut bytes).unwrap();
    bytes
}

/// Zeroes some of the blocks of each kind; returns how many kinds there are.
fn damage(device: &Arc<dyn BlockDevice>, round: usize) -> usize {
    let bytes = bytes_of(device);
    let block = Superblock::decode(&bytes[..65_536]).unwrap().geometry().block_size();
    let mut kinds: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, bytes) in bytes.chunks_exact(block).enumerate() {
        let Some(kind) = BufferKind::of_block(bytes) else { continue };
        let name = format!("{kind:?}");
        match kinds.iter_mut().find(|(known, _)| *known == name) {
            Some((_, places)) => places.push(index),
            None => kinds.push((name, vec![index])),
        }
    }
    for (_, places) in &kinds {
        let place = places[round * 7 % places.len()];
        let sector = Sector((place * block / 512) as u64);
        // The superblock stays: another test takes it away.
        if place != 0 {
            write_all_at(device.as_ref(), sector, &vec![0; block]).unwrap();
        }
    }
    kinds.len()
}

fn repaired(name: &str, options: &MkfsOptions, least: usize) {
    let tools = Xfsprogs::newest().unwrap();
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let device = volume(options);
        let before = files::of(Arc::clone(&device));
        assert!(Plan::find(Arc::clone(&device)).unwrap().is_sound(), "{name}");
        assert!(damage(&device, round) > 4, "{name}");
        let plan =
            Plan::find(Arc::clone(&device)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!plan.is_sound(), "{name}");
        let undo = directory.path().join(format!("{round}.undo"));
        plan.commit(Some(&undo)).unwrap();
        let image = directory.path().join("image");
        std::fs::write(&image, bytes_of(&device)).unwrap();
        tools.repair_check(&image).unwrap_or_else(|error| panic!("{name}: {error}"));
        let right = files::right(&before, &files::of(device));
        assert!(right * 100 >= before.len() * least, "{name}: {right} of {}", before.len());
    }
}

fn options() -> MkfsOptions {
    MkfsOptions::new(SIZE, Uuid::from_u128(11))
}

#[test]
fn volumes_of_other_block_sizes_are_repaired() {
    if !kernel::available_or_report() {
        return;
    }
    let sizes = [(1024, Some(8192)), (4096, Some(65_536)), (65_536, None)];
    for (block_size, dir_block_size) in sizes {
        let options = MkfsOptions { block_size, dir_block_size, ..options() };
        repaired(&format!("blocks of {block_size}"), &options, 50);
    }
}

#[test]
fn volumes_of_large_sectors_and_few_features_are_repaired() {
    if !kernel::available_or_report() {
        return;
    }
    repaired("sectors of 4 KiB", &MkfsOptions { sector_size: 4096, ..options() }, 80);
    let features = [Feature::Rmapbt, Feature::Parent, Feature::Exchange].map(|it| (it, false));
    let plain = MkfsOptions { features: features.to_vec(), ..options() };
    repaired("no reverse mappings, no parent pointers", &plain, 50);
}

/// What cannot be repaired here is refused with the way to go.
#[test]
fn what_is_not_repaired_is_refused_by_name() {
    if !kernel::available_or_report() {
        return;
    }
    let tools = Xfsprogs::newest().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let refused = |name: &str, options: &[&str]| {
        let image = directory.path().join(name);
        tools.mkfs(&image, 512 << 20, options).unwrap();
        let device = undercroft_block::FileDevice::open(&image, true).unwrap();
        match Plan::find(Arc::new(device)) {
            Err(RepairError::NotSupported(what)) => what,
            Err(error) => panic!("{name}: {error}"),
            Ok(_) => panic!("{name} is not refused"),
        }
    };
    let old = refused("old", &["-f", "-m", "crc=0,finobt=0,rmapbt=0,reflink=0"]);
    assert!(old.contains("version 4") && old.contains("xfs_repair"), "{old}");
    let log = directory.path().join("log");
    std::fs::write(&log, []).unwrap();
    let log_size = "size=64m";
    let name = format!("logdev={},{log_size}", log.display());
    std::fs::File::options().write(true).open(&log).unwrap().set_len(64 << 20).unwrap();
    let elsewhere = refused("elsewhere", &["-f", "-l", &name]);
    assert!(elsewhere.contains("journal is on another device"), "{elsewhere}");
    let realtime = directory.path().join("realtime");
    std::fs::write(&realtime, []).unwrap();
    std::fs::File::options().write(true).open(&realtime).unwrap().set_len(64 << 20).unwrap();
    let name = format!("rtdev={}", realtime.display());
    let realtime = refused("with-realtime", &["-f", "-r", &name]);
    assert!(realtime.contains("realtime device"), "{realtime}");
}
