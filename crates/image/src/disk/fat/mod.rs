//! A new FAT32 file system from a directory (Microsoft, FAT: General Overview of On-Disk Format,
//! version 1.03; UEFI specification, section 13.3).
//!
//! Everything is known before the first byte is written, so every file and directory is one run of
//! clusters, in the order of the tree: directories first. Names that are no upper-case 8.3 names
//! also have long ones. All times are the first that FAT can tell, 1980-01-01 00:00.

mod directory;
mod geometry;
mod names;
mod tree;
mod write;

pub(super) use geometry::is_fat;

use super::DiskError;
use super::copy::Copier;
use geometry::Geometry;
use std::path::Path;
use tree::Tree;
use undercroft_block::Window;

/// Least length of a file system that gets its length from its content: room for another kernel.
const COMFORT: u64 = 64 << 20;

/// A file system that is checked and can be made.
#[derive(Debug)]
pub(super) struct FatPlan {
    label: [u8; 11],
    tree: Tree,
    geometry: Geometry,
}

impl FatPlan {
    /// Looks at the whole directory `root`. The file system has `size` bytes, or what its content
    /// needs and as much again, at least 64 MiB.
    pub(super) fn new(
        root: &Path,
        label: &str,
        number: usize,
        size: Option<u64>,
        sector: u64,
    ) -> Result<Self, DiskError> {
        let tree = Tree::read(root)?;
        let fits = |bytes| {
            let geometry = Geometry::new(bytes, sector)?;
            (tree.clusters(geometry.cluster) <= geometry.clusters).then_some(geometry)
        };
        let wanted = size.unwrap_or_else(|| COMFORT.max(tree.bytes().saturating_mul(2)));
        let geometry = match fits(wanted) {
            Some(geometry) => geometry,
            None => {
                let path = root.to_owned();
                let Some(least) = Geometry::least(wanted, sector, fits) else {
                    let what = format!("{} bytes are more than FAT32 can hold", tree.bytes());
                    return Err(DiskError::Fat { path, what });
                };
                match size {
                    None => least,
                    Some(size) => {
                        let needed = least.bytes();
                        return Err(DiskError::FatTooSmall { path, number, size, needed });
                    }
                }
            }
        };
        let mut name = [b' '; 11];
        for (place, byte) in name.iter_mut().zip(label.bytes()) {
            *place = byte.to_ascii_uppercase();
        }
        Ok(Self { label: name, tree, geometry })
    }

    /// Length in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.geometry.bytes()
    }

    /// Writes the file system to `window`, which reads as zeros and starts at byte `start` of the
    /// disk.
    pub(super) fn write(
        &self,
        window: &Window,
        start: u64,
        copier: &mut Copier<'_>,
    ) -> Result<(), DiskError> {
        write::Writer::new(self, window).write(start, copier)
    }
}
