//! Volumes to work on.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice, MemoryDevice};
use undercroft_fs::{
    Clock, Existing, File, FileSystem, FileType, ImageError, InodeNumber, NewFile, OpenOptions,
    Timestamp,
};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::mkfs::{self, Feature, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

pub(crate) const SIZE: u64 = 128 << 20;

/// The time of a test: reproducible.
pub(crate) const NOW: Timestamp = Timestamp { seconds: 1_700_000_000, nanoseconds: 5 };

/// Makes an empty volume that fills `device`.
pub(crate) fn format(device: &Arc<dyn BlockDevice>) {
    format_with(device, &[]);
}

fn format_with(device: &Arc<dyn BlockDevice>, features: &[(Feature, bool)]) {
    let bytes = device.capacity().to_bytes().unwrap();
    let options = MkfsOptions::new(bytes, Uuid::from_u128(9));
    let plan = mkfs::plan(&MkfsOptions { features: features.to_vec(), ..options }).unwrap();
    let root = NewInode::new(FileType::Directory, 0o755);
    mkfs::finish(&mkfs::begin(device, plan, &root).unwrap(), true).unwrap();
}

/// An empty volume in memory.
pub(crate) fn memory() -> Arc<dyn BlockDevice> {
    memory_of(SIZE)
}

pub(crate) fn memory_of(size: u64) -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
    format(&device);
    device
}

/// An empty volume in a file.
pub(crate) fn image(path: &Path) -> Arc<dyn BlockDevice> {
    image_with(path, &[])
}

/// An empty volume in a file, with these features turned on or off.
pub(crate) fn image_with(path: &Path, features: &[(Feature, bool)]) -> Arc<dyn BlockDevice> {
    std::fs::File::create(path).unwrap().set_len(320 << 20).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(path, false).unwrap());
    format_with(&device, features);
    device
}

pub(crate) fn options() -> OpenOptions {
    OpenOptions::writable().with_clock(Clock::Fixed(NOW))
}

pub(crate) fn open(device: &Arc<dyn BlockDevice>) -> FileSystem {
    FileSystem::open(Arc::clone(device), &options()).unwrap()
}

/// A file system that is left as by a crash when it is dropped.
pub(crate) fn open_to_crash(device: &Arc<dyn BlockDevice>) -> FileSystem {
    let volume = Volume::open_live(Arc::clone(device), &LiveOptions::default()).unwrap();
    FileSystem::from_volume(Arc::new(volume)).with_clock(Clock::Fixed(NOW))
}

/// A new file system in memory.
pub(crate) fn fresh() -> FileSystem {
    open(&memory())
}

pub(crate) fn create(fs: &FileSystem, parent: InodeNumber, name: &str) -> File {
    fs.nodes().create(parent, name.as_bytes(), &NewFile::new(0o644), Existing::Refuse).unwrap().1
}

/// Closes the file system and checks the whole volume.
pub(crate) fn close_and_check(fs: FileSystem, device: &Arc<dyn BlockDevice>) {
    fs.close().unwrap();
    drop(fs);
    let mut findings = Vec::new();
    let options = CheckOptions::default();
    check(Arc::clone(device), &options, &mut |finding| findings.push(finding.to_string())).unwrap();
    assert!(findings.is_empty(), "{findings:#?}");
}

/// All that a file holds.
pub(crate) fn contents(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.size() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

/// Fails with the first place at which two contents differ, and not with all of both.
#[track_caller]
pub(crate) fn same(found: &[u8], expected: &[u8]) {
    let differs = found.iter().zip(expected).position(|(left, right)| left != right);
    let at = differs.map(|at| (at, found[at], expected[at]));
    assert_eq!((found.len(), at), (expected.len(), None), "length, and first difference");
}

#[test]
fn volumes_in_files_are_made_and_opened() {
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("image");
    let fs = FileSystem::format(&image, 64 << 20).unwrap();
    fs.write("/file", "kept").unwrap();
    // It has the file alone.
    assert!(matches!(OpenOptions::writable().open_image(&image), Err(ImageError::Open(_))));
    fs.close().unwrap();
    drop(fs);
    let fs = FileSystem::open_image(&image).unwrap();
    assert_eq!(fs.read("/file").unwrap(), b"kept");
    assert!(!fs.is_writable() && fs.write("/file", "").is_err());
    drop(fs);
    let error = FileSystem::format(&image, 64 << 20).unwrap_err();
    assert!(matches!(error, ImageError::Make { .. }), "{error:?}");
    assert_eq!(FileSystem::open_image(&image).unwrap().read("/file").unwrap(), b"kept");
    let small = scratch.path().join("small");
    assert!(matches!(FileSystem::format(&small, 1 << 20), Err(ImageError::Size(_))));
    assert!(!small.exists());
    let fs = OpenOptions::writable().open_image(&image).unwrap();
    fs.remove_file("/file").unwrap();
    fs.close().unwrap();
    undercroft_judges::Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
}
