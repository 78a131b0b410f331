//! Devices that are shorter than the volume on them.

use std::sync::Arc;

use undercroft_block::{BlockDevice, MemoryDevice, Sector, read_exact_at, write_all_at};
use undercroft_fs::{FileSystem, OpenOptions};
use undercroft_judges::{Xfsprogs, kernel};
use undercroft_repair::{Plan, RepairError};
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use uuid::Uuid;

use crate::files;

const SIZE: u64 = 512 << 20;

/// The first bytes of a volume with files in the root directory, and in so many others.
fn short(directories: usize, bytes: u64) -> (Arc<dyn BlockDevice>, files::Files) {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    let plan = mkfs::plan(&MkfsOptions::new(SIZE, Uuid::from_u128(14))).unwrap();
    let volume = mkfs::begin(&device, plan, &NewInode::new(FileType::Directory, 0o755)).unwrap();
    mkfs::finish(&volume, false).unwrap();
    drop(volume);
    let fs = FileSystem::open(Arc::clone(&device), &OpenOptions::writable()).unwrap();
    for file in 0..100 {
        fs.write(format!("/file{file}"), vec![file as u8; 5000]).unwrap();
    }
    for directory in 0..directories {
        fs.create_dir(format!("/d{directory}")).unwrap();
        fs.write(format!("/d{directory}/file"), b"content").unwrap();
    }
    fs.close().unwrap();
    let before = files::of(Arc::clone(&device));
    let copy: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(bytes));
    let mut content = vec![0; bytes as usize];
    read_exact_at(device.as_ref(), Sector(0), &mut content).unwrap();
    write_all_at(copy.as_ref(), Sector(0), &content).unwrap();
    (copy, before)
}

#[test]
fn a_volume_ends_with_its_device_if_nothing_lies_behind() {
    if !kernel::available_or_report() {
        return;
    }
    let tools = Xfsprogs::newest().unwrap();
    let directory = tempfile::tempdir().unwrap();
    // In the middle of a group, just behind the start of one, and at one.
    for bytes in [400 << 20, (384 << 20) + (64 << 10), 384 << 20] {
        let (device, before) = short(0, bytes);
        let plan =
            Plan::find(Arc::clone(&device)).unwrap_or_else(|error| panic!("{bytes}: {error}"));
        assert!(!plan.is_sound() && plan.actions.iter().all(|action| action.loss.is_none()));
        plan.commit(Some(&directory.path().join(format!("{bytes}.undo")))).unwrap();
        assert_eq!(files::right(&before, &files::of(Arc::clone(&device))), before.len());
        assert!(Plan::find(Arc::clone(&device)).unwrap().is_sound());
        let mut content = vec![0; bytes as usize];
        read_exact_at(device.as_ref(), Sector(0), &mut content).unwrap();
        let image = directory.path().join("image");
        std::fs::write(&image, content).unwrap();
        tools.repair_check(&image).unwrap_or_else(|error| panic!("{bytes}: {error}"));
    }
}

#[test]
fn a_volume_with_something_behind_its_device_is_refused() {
    let (device, before) = short(8, 300 << 20);
    assert!(before.len() > 100);
    match Plan::find(device) {
        Err(RepairError::Short { end, needed }) => assert_eq!((end, needed), (300 << 20, SIZE)),
        Err(error) => panic!("{error}"),
        Ok(plan) => panic!("{:?}", plan.actions),
    }
}
