//! What the data fork of a file holds.

use undercroft_xfs_format::{DeviceNumber, FileType, ForkFormat, InodeCore};

use crate::disk::Disk;
use crate::map::{self, Map};
use crate::trail::MapFork;
use crate::trail::Trail;

/// The content of a file.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    None,
    /// The target of a symbolic link.
    Bytes(Box<[u8]>),
    /// A device number.
    Device(DeviceNumber),
    Map(Map),
}

/// The content of a file whose core is known; `literal` is the area of its forks as a free inode has it.
pub(crate) fn of_trail(
    disk: &Disk,
    core: &InodeCore,
    trail: &Trail,
    literal: Option<&[u8]>,
) -> Content {
    if core.data_format == ForkFormat::Extents && core.data_extents == 0 {
        // Nothing of it was written, if it has a size.
        return Content::Map(Map::default());
    }
    let own = trail.data.as_ref().map(|seen| &seen.value);
    let own =
        own.filter(|fork| fork.format == core.data_format && fork.extents == core.data_extents);
    let end = usize::from(core.forkoff) * 8;
    let stale = literal.map(|bytes| {
        let len = if end == 0 { bytes.len() } else { end.min(bytes.len()) };
        &bytes[..len]
    });
    let Some(fork) = own.map(|fork| &*fork.bytes).or(stale) else { return Content::None };
    match core.file_type() {
        Some(FileType::Symlink) if core.data_format == ForkFormat::Local => {
            let size = usize::try_from(core.size).unwrap_or(usize::MAX);
            fork.get(..size).map_or(Content::None, |target| Content::Bytes(target.into()))
        }
        Some(FileType::Character | FileType::Block) => {
            let number = fork.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            number.map(DeviceNumber::decode).map_or(Content::None, Content::Device)
        }
        Some(FileType::Regular | FileType::Directory | FileType::Symlink) => {
            map::of_fork(disk, core.number, MapFork::data(core, fork))
                .map_or(Content::None, Content::Map)
        }
        _ => Content::None,
    }
}
