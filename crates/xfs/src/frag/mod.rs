//! How a volume's space is laid out: extents of files, their distance from where they should be,
//! free space by length, and a picture of it all.
//!
//! Definitions: docs/algorithms/locality.md#distances and
//! docs/algorithms/locality.md#fragmentation-factor. Only the final mappings are looked at, so a
//! volume of any writer will do; one whose journal is not empty is seen as the last write-back left
//! it.

mod below;
mod free_space;
mod histogram;
mod holders;
mod locality;
mod picture;

use crate::group_tree;
pub use below::below;
pub use free_space::{FreeSpace, for_each_free};
pub use histogram::{Bucket, Histogram};
pub use holders::{BlockHolder, block_holders};
pub use locality::Locality;
use locality::Step;
pub use picture::{Cell, Picture};

use crate::bmap;
use crate::error::Error;
use crate::format::{Extent, FileType, InodeChunkRecord, InodeFlags};
use crate::inode::{ForkKind, InodeState};
use crate::read_ahead::pipeline;
use crate::units::{AgInode, AgNumber, InodeNumber};
use crate::volume::Volume;
use std::iter;

/// Whose mappings are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Data of regular files.
    #[default]
    Files,
    /// Data of regular files, directories and symbolic links.
    Everything,
}

impl Selection {
    /// Whether an inode belongs to it.
    #[must_use]
    pub fn contains(self, inode: &InodeState) -> bool {
        match self {
            Self::Files => inode.file_type() == FileType::Regular,
            Self::Everything => matches!(
                inode.file_type(),
                FileType::Regular | FileType::Directory | FileType::Symlink
            ),
        }
    }
}

/// The measurement.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Inodes selected.
    pub inodes: u64,
    /// Those of them with extents.
    pub mapped_inodes: u64,
    /// Extents, those merged that continue each other in file and volume.
    pub actual: u64,
    /// Extents as they are stored.
    pub stored: u64,
    /// Runs of the files without a gap: the least number of extents possible.
    pub ideal: u64,
    /// Inodes by their number of extents, those without any left out.
    pub extents_per_inode: Histogram,
    /// Distances of extents from their hints.
    pub locality: Locality,
    /// Free space.
    pub free: FreeSpace,
    /// Used and free space by place.
    pub picture: Picture,
}

impl Layout {
    /// Extents that could be saved, as a part of all, in per cent.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let saved = self.actual.saturating_sub(self.ideal);
        if self.actual == 0 { 0.0 } else { saved as f64 * 100.0 / self.actual as f64 }
    }
}

/// Measures the inodes of a volume that are `wanted`, its free space, and draws all of it.
///
/// # Errors
/// A structure is damaged, or the device failed.
pub fn measure(volume: &Volume, wanted: impl Fn(&InodeState) -> bool) -> Result<Layout, Error> {
    let mut layout = Layout {
        inodes: 0,
        mapped_inodes: 0,
        actual: 0,
        stored: 0,
        ideal: 0,
        extents_per_inode: Histogram::default(),
        locality: Locality::new(volume.geometry()),
        free: FreeSpace::default(),
        picture: Picture::new(volume.geometry()),
    };
    for ag in (0..volume.geometry().ag_count).map(AgNumber) {
        let Layout { free, picture, .. } = &mut layout;
        free.add(volume, ag, |extent| picture.add(ag, extent, Cell::Free))?;
        let mut chunks = Vec::new();
        group_tree::inode_chunks(volume, ag, |chunk| chunks.push(chunk))?;
        let chunks = pipeline(chunks.iter(), |next| {
            volume.prefetch_inodes(next.iter().flat_map(|chunk| inodes_of(volume, ag, chunk)));
        });
        for number in chunks.flat_map(|chunk| inodes_of(volume, ag, chunk)) {
            let inode = volume.inode(number).map_err(Error::into_damage)?;
            let inode = inode.read();
            layout.add(volume, &inode, wanted(&inode))?;
        }
    }
    Ok(layout)
}

/// The inodes of a chunk that are in use.
fn inodes_of<'a>(
    volume: &'a Volume,
    ag: AgNumber,
    chunk: &InodeChunkRecord,
) -> impl Iterator<Item = InodeNumber> + use<'a> {
    let (start, used) = (chunk.start, !chunk.free);
    (0..u32::from(InodeChunkRecord::INODES))
        .filter(move |index| used >> index & 1 == 1)
        .map(move |index| volume.geometry().inode_number(ag, AgInode(start.0 + index)))
}

impl Layout {
    fn add(&mut self, volume: &Volume, inode: &InodeState, wanted: bool) -> Result<(), Error> {
        let data = inode.file_type() == FileType::Regular;
        // Blocks of the realtime section are numbered on their own.
        if inode.core.flags.contains(InodeFlags::REALTIME) || !(wanted || data) {
            return Ok(());
        }
        let geometry = volume.geometry();
        let stored = bmap::extents(volume, inode, ForkKind::Data)?.as_slice();
        let home = geometry.inode_fs_block(inode.number);
        let far = geometry.ag_blocks / 100;
        let extents = merged(stored, |left, right| {
            geometry.split_block(left.start).0 == geometry.split_block(right.start).0
        });
        let hints = iter::once(None).chain(extents.iter().copied().map(Some));
        for (extent, before) in extents.iter().zip(hints) {
            let step = Step::between(geometry, home, before, *extent);
            if data {
                let cell = if step.is_beyond(far) { Cell::FarData } else { Cell::Data };
                self.picture.add_extent(geometry, *extent, cell);
            }
            if wanted {
                self.locality.add(step);
                let continues = before.is_some_and(|before: Extent| before.end() == extent.offset);
                self.ideal += u64::from(!continues);
            }
        }
        if wanted {
            self.inodes += 1;
            self.stored += stored.len() as u64;
            self.actual += extents.len() as u64;
            if !extents.is_empty() {
                self.mapped_inodes += 1;
                self.extents_per_inode.add(extents.len() as u64);
            }
        }
        Ok(())
    }
}

/// Joins extents that are adjacent in the file and on the volume, in any state.
fn merged(extents: &[Extent], same_group: impl Fn(&Extent, &Extent) -> bool) -> Vec<Extent> {
    let mut merged: Vec<Extent> = Vec::with_capacity(extents.len());
    for extent in extents {
        if let Some(last) = merged.last_mut()
            && last.end() == extent.offset
            && last.start.0 + u64::from(last.len) == extent.start.0
            && same_group(last, extent)
            && let Some(len) = last.len.checked_add(extent.len)
        {
            last.len = len;
        } else {
            merged.push(*extent);
        }
    }
    merged
}
