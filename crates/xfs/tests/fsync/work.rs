//! Volumes to write files in.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice, MemoryDevice};
use undercroft_judges::Xfsprogs;
use undercroft_xfs::data::{Files, FilesOptions};
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::inode::Inode;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume};
use uuid::Uuid;

fn new(kind: FileType) -> NewInode<'static> {
    NewInode { uid: 1, gid: 2, ..NewInode::new(kind, 0o755) }
}

/// Makes an empty volume that fills `device`.
pub(crate) fn format(device: &Arc<dyn BlockDevice>) {
    let bytes = device.capacity().to_bytes().unwrap();
    let plan = mkfs::plan(&MkfsOptions::new(bytes, Uuid::from_u128(9))).unwrap();
    let volume = mkfs::begin(device, plan, &new(FileType::Directory)).unwrap();
    mkfs::finish(&volume, true).unwrap();
}

/// An empty volume in a file.
pub(crate) fn make(image: &Path, bytes: u64) {
    std::fs::File::create(image).unwrap().set_len(bytes).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    format(&device);
}

pub(crate) fn memory(bytes: u64) -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(bytes));
    format(&device);
    device
}

pub(crate) fn open(device: Arc<dyn BlockDevice>, dirty_bytes: u64) -> Files {
    let volume = Volume::open_live(device, &LiveOptions::default()).unwrap();
    Files::new(Arc::new(volume), &FilesOptions { dirty_bytes }).unwrap()
}

pub(crate) fn open_image(image: &Path, dirty_bytes: u64) -> Files {
    open(Arc::new(FileDevice::open(image, false).unwrap()), dirty_bytes)
}

pub(crate) fn create(files: &Files, name: &str) -> Arc<Inode> {
    try_create(files, name).unwrap()
}

pub(crate) fn try_create(files: &Files, name: &str) -> Result<Arc<Inode>, Error> {
    let volume = files.volume();
    let root = volume.geometry().root_inode;
    volume.inode(ops::make(volume, root, name.as_bytes(), &new(FileType::Regular))?)
}

pub(crate) fn write(
    files: &Files,
    file: &Arc<Inode>,
    offset: u64,
    bytes: &[u8],
) -> Result<(), Error> {
    let now = Timestamp { seconds: 1_700_000_000, nanoseconds: 5 };
    files.write(file, offset, &Arc::new(bytes.to_vec()), 0..bytes.len(), now)
}

/// All that a file holds.
pub(crate) fn read(files: &Files, file: &Inode) -> Vec<u8> {
    let state = file.read();
    let mut bytes = vec![0; state.core.size as usize];
    ops::read_at(files.volume(), &state, 0, &mut bytes).unwrap();
    bytes
}

/// Contents that tell one file, and one place in it, from others.
pub(crate) fn contents(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number.wrapping_mul(31) ^ at.wrapping_mul(7) ^ (at >> 8)) as u8).collect()
}

#[track_caller]
pub(crate) fn repair_is_content(image: &Path) {
    Xfsprogs::newest().unwrap().repair_check(image).unwrap();
}
