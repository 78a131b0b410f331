//! Volumes to change, and changes.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, DataPlacement, NewInode};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume};

pub fn new(kind: FileType) -> NewInode<'static> {
    NewInode { uid: 1, gid: 2, ..NewInode::new(kind, 0o755) }
}

/// An empty volume of ours in a file.
pub fn make(image: &Path, options: &MkfsOptions) {
    let file = std::fs::File::create(image).unwrap();
    file.set_len(options.size).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    let plan = mkfs::plan(options).unwrap();
    let volume = mkfs::begin(&device, plan, &new(FileType::Directory)).unwrap();
    mkfs::finish(&volume, false).unwrap();
}

pub fn open(image: &Path) -> Volume {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    Volume::open_live(device, &LiveOptions::default()).unwrap()
}

pub fn create(
    volume: &Volume,
    parent: InodeNumber,
    name: &str,
    kind: FileType,
) -> Result<InodeNumber, Error> {
    create_sized(volume, parent, name, kind, &[], 0)
}

/// Creates a file with attributes, and with blocks of unspecified contents.
pub fn create_sized(
    volume: &Volume,
    parent: InodeNumber,
    name: &str,
    kind: FileType,
    attributes: &[(&[u8], &[u8])],
    size: u64,
) -> Result<InodeNumber, Error> {
    let target = vec![b't'; if kind == FileType::Symlink { 900 } else { 0 }];
    let new = NewInode { target: &target, ..new(kind) };
    let mut trans = volume.begin()?;
    let mut parent = volume.lock_inode(parent)?;
    let mut inode = ops::create(&mut trans, &mut parent, name.as_bytes(), &new)?;
    ops::set_attributes(&mut trans, &mut inode, attributes.iter().copied())?;
    if size > 0 {
        let mut placement = DataPlacement::new(volume.geometry());
        let data = std::iter::once(0..size);
        ops::allocate_file(&mut trans, &mut inode, size, data, &mut placement)?;
    }
    let number = inode.number;
    trans.commit(&mut [&mut parent, &mut inode])?;
    Ok(number)
}

pub fn link(volume: &Volume, parent: InodeNumber, name: &str, target: InodeNumber) {
    let mut trans = volume.begin().unwrap();
    let mut parent = volume.lock_inode(parent).unwrap();
    let mut inode = volume.lock_inode(target).unwrap();
    ops::add_link(&mut trans, &mut parent, name.as_bytes(), &mut inode).unwrap();
    trans.commit(&mut [&mut parent, &mut inode]).unwrap();
}
