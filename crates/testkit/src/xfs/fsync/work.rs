//! Volumes to write files in.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice, MemoryDevice};
use undercroft_judges::Xfsprogs;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, Volume};
use uuid::Uuid;

fn new(kind: FileType) -> NewInode<'static> {
    NewInode { uid: 1, gid: 2, ..NewInode::new(kind, 0o755) }
}

/// Makes an empty volume that fills `device`.
pub fn format(device: &Arc<dyn BlockDevice>) {
    let bytes = device.capacity().to_bytes().unwrap();
    let plan = mkfs::plan(&MkfsOptions::new(bytes, Uuid::from_u128(9))).unwrap();
    let volume = mkfs::begin(device, plan, &new(FileType::Directory)).unwrap();
    mkfs::finish(&volume, true).unwrap();
}

/// An empty volume in a file.
pub fn make(image: &Path, bytes: u64) {
    std::fs::File::create(image).unwrap().set_len(bytes).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    format(&device);
}

pub fn memory(bytes: u64) -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(bytes));
    format(&device);
    device
}

pub fn open(device: Arc<dyn BlockDevice>, dirty_bytes: u64) -> Arc<Volume> {
    let options = LiveOptions { dirty_bytes, ..LiveOptions::default() };
    Arc::new(Volume::open_live(device, &options).unwrap())
}

pub fn open_image(image: &Path, dirty_bytes: u64) -> Arc<Volume> {
    open(Arc::new(FileDevice::open(image, false).unwrap()), dirty_bytes)
}

pub fn create(volume: &Arc<Volume>, name: &str) -> OpenFile {
    try_create(volume, name).unwrap()
}

pub fn try_create(volume: &Arc<Volume>, name: &str) -> Result<OpenFile, Error> {
    let root = volume.geometry().root_inode;
    ops::make_open(volume, root, name.as_bytes(), &new(FileType::Regular))
}

/// Writes bytes that the caller keeps, or shares with the volume.
pub fn write(file: &OpenFile, offset: u64, bytes: &[u8]) -> Result<(), Error> {
    let now = Timestamp { seconds: 1_700_000_000, nanoseconds: 5 };
    if offset.is_multiple_of(3) {
        return file.write(offset, bytes, now);
    }
    file.write_shared(offset, &Arc::new(bytes.to_vec()), 0..bytes.len(), now)
}

/// All that a file holds.
pub fn read(file: &OpenFile) -> Vec<u8> {
    let mut bytes = vec![0xff; file.size() as usize];
    assert_eq!(file.read(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// Contents that tell one file, and one place in it, from others.
pub fn contents(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number.wrapping_mul(31) ^ at.wrapping_mul(7) ^ (at >> 8)) as u8).collect()
}

#[track_caller]
pub fn repair_is_content(image: &Path) {
    Xfsprogs::newest().unwrap().repair_check(image).unwrap();
}
