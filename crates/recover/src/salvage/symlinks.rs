//! Targets of symbolic links that do not fit the inode.

use undercroft_xfs_format::{BufferKind, FileType, symlink_part, verify_symlink};

use crate::content::Content;
use crate::directory;
use crate::disk::Disk;
use crate::found::FoundFile;
use crate::map::Map;

/// Reads the targets that are in blocks.
pub(super) fn read(disk: &Disk, files: &mut [FoundFile]) {
    for file in files.iter_mut().filter(|file| file.kind == Some(FileType::Symlink)) {
        if let Content::Map(map) = &file.content {
            let target = target(disk, map, file.size);
            file.content = target.map_or(Content::None, Content::Bytes);
        }
    }
}

fn target(disk: &Disk, map: &Map, size: u64) -> Option<Box<[u8]>> {
    let geometry = &disk.geometry;
    let size = usize::try_from(size).ok()?;
    let mut target = Vec::new();
    for extent in &map.extents {
        // Targets have three blocks at most.
        let bytes = disk.blocks(extent.start, extent.len.min(4)).ok()?;
        let sector = geometry.sector(extent.start).0;
        let is_sound = directory::is_sound(geometry, &bytes, BufferKind::Symlink, sector);
        if !is_sound || verify_symlink(&bytes, geometry).is_err() {
            return None;
        }
        target.extend_from_slice(symlink_part(&bytes, geometry, target.len(), size).ok()?);
    }
    (target.len() == size && size > 0).then(|| target.into())
}
