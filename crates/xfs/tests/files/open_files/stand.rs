//! A volume in memory, and short ways to do things to it.

use std::convert::Infallible;
use std::sync::Arc;
use undercroft_block::{BlockDevice, MemoryDevice};
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, Volume};
use uuid::Uuid;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 4096;

/// The present.
pub(crate) const NOW: Timestamp = Timestamp { seconds: 1_700_000_000, nanoseconds: 5 };

/// An empty volume.
pub(crate) fn device(bytes: u64) -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(bytes));
    let plan = mkfs::plan(&MkfsOptions::new(bytes, Uuid::from_u128(7))).unwrap();
    let root = NewInode::new(FileType::Directory, 0o755);
    mkfs::finish(&mkfs::begin(&device, plan, &root).unwrap(), true).unwrap();
    device
}

/// A device open for changes.
pub(crate) fn live(device: &Arc<dyn BlockDevice>) -> Arc<Volume> {
    Arc::new(Volume::open_live(Arc::clone(device), &LiveOptions::default()).unwrap())
}

/// A device with an empty volume, which is open.
pub(crate) fn open(bytes: u64) -> (Arc<dyn BlockDevice>, Arc<Volume>) {
    let device = device(bytes);
    let volume = live(&device);
    (device, volume)
}

pub(crate) fn root(volume: &Volume) -> InodeNumber {
    volume.geometry().root_inode
}

/// Makes and opens a file in the root directory.
pub(crate) fn make(volume: &Arc<Volume>, name: &str) -> Result<OpenFile, Error> {
    let new = NewInode::new(FileType::Regular, 0o644);
    ops::make_open(volume, root(volume), name.as_bytes(), &new)
}

/// Removes a name of the root directory.
pub(crate) fn unlink(volume: &Volume, name: &str) -> Result<InodeNumber, Error> {
    ops::unlink(volume, root(volume), name.as_bytes(), NOW)
}

/// The number of a name of the root directory.
pub(crate) fn find(volume: &Volume, name: &str) -> Option<InodeNumber> {
    let root = volume.inode(root(volume)).unwrap();
    ops::lookup(volume, &root.read(), name.as_bytes()).unwrap()
}

/// The contents of a file of the root directory.
pub(crate) fn contents(volume: &Arc<Volume>, name: &str) -> Vec<u8> {
    let file = OpenFile::open(volume, find(volume, name).expect("the name exists")).unwrap();
    read_all(&file)
}

pub(crate) fn read_all(file: &OpenFile) -> Vec<u8> {
    let mut bytes = vec![0; file.size() as usize + 1];
    let len = file.read(0, &mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

/// As [`OpenFile::read`], by way of what is lent.
pub(crate) fn read_lent(file: &OpenFile, offset: u64, bytes: &mut [u8]) -> Result<usize, Error> {
    let range = offset..offset + bytes.len() as u64;
    let lent = file.lend(range, &mut Vec::new(), |at, lent| {
        let at = (at - offset) as usize;
        bytes[at..at + lent.len()].copy_from_slice(lent);
        Ok::<_, Infallible>(())
    })?;
    let Ok(done) = lent;
    Ok(done as usize)
}

/// Closes the volume, checks it whole, and opens it for reading.
pub(crate) fn close(device: &Arc<dyn BlockDevice>, volume: &Volume) -> Arc<Volume> {
    volume.close().unwrap();
    check_clean(device);
    Arc::new(Volume::open(Arc::clone(device)).unwrap())
}

pub(crate) fn check_clean(device: &Arc<dyn BlockDevice>) {
    let mut findings = Vec::new();
    let options = CheckOptions::default();
    let report = check(Arc::clone(device), &options, &mut |finding| findings.push(finding));
    assert!(report.unwrap().is_clean(), "{}", undercroft_testkit::xfs::check::describe(&findings));
}
