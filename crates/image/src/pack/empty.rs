//! Empty volumes.

use super::target::Target;
use super::{ImageFormat, PackError};
use undercroft_block::stack::{Description, DeviceReport};
use undercroft_xfs::format::{DeviceNumber, FileType, Superblock, Timestamp};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{NewInode, Times};

/// How to make an empty volume.
#[derive(Clone, Debug)]
pub struct EmptyOptions {
    /// The image: files to be made, or block devices.
    pub image: Description,
    /// Replace a file that exists, or overwrite what is on a device.
    pub force: bool,
    /// Return only when the image is on stable storage.
    pub durable: bool,
    /// Size, geometry, features and identity. A size of 0 takes all of block devices.
    pub volume: MkfsOptions,
    /// Permission bits of the root directory.
    pub root_mode: u16,
    /// Owner and group of the root directory.
    pub root_owner: (u32, u32),
    /// All times of the root directory.
    pub time: Timestamp,
}

/// An empty volume.
#[derive(Clone, Debug)]
pub struct Empty {
    /// Its superblock.
    pub superblock: Superblock,
    /// What passed through the devices: the whole one first, then those it is stacked on.
    pub devices: Vec<DeviceReport>,
}

/// Makes an empty volume.
///
/// # Errors
/// Everything that can be wrong with the options and the target, which is then as it was, unless
/// it is a block device, which holds no file system then.
pub fn make_empty(options: &EmptyOptions) -> Result<Empty, PackError> {
    let mut target = Target::open(&options.image, options.force, ImageFormat::Raw)?;
    let mut volume = target.format(&options.volume)?;
    if volume.size == 0 {
        let fixed = target.fixed_size();
        volume.size = fixed.ok_or_else(|| PackError::SizeNeeded(options.image.to_string()))?;
    }
    let plan = mkfs::plan(&volume)?;
    let device = target.device(volume.size)?;
    let time = options.time;
    let root = NewInode {
        mode: FileType::Directory.mode_bits() | options.root_mode,
        uid: options.root_owner.0,
        gid: options.root_owner.1,
        times: Times { access: time, modification: time, change: time, creation: time },
        device: DeviceNumber::default(),
        target: &[],
    };
    let made = mkfs::begin(&device, plan, &root).map_err(PackError::volume)?;
    let superblock = mkfs::finish(&made, options.durable).map_err(PackError::volume)?;
    let devices = DeviceReport::of_stack(&*device);
    drop((made, device));
    target.finish(options.durable, &mut |_| ())?;
    Ok(Empty { superblock, devices })
}
