//! Directory blocks whose file system blocks are scattered, and of which the journal held only some
//! (docs/format/journal/replay.md#scattered-blocks).
//!
//! A kernel logs the pieces of such a block that changed, each as a buffer of its own. Only the
//! first has a header, and its checksum is over all of them: it can be made only when the mapping
//! of the directory is known, at the end.

use super::images::found_kind;
use crate::bmap;
use crate::cache::BufferAddress;
use crate::error::Error;
use crate::format::{FileType, Header};
use crate::geometry::Geometry;
use crate::inode::ExtentList;
use crate::inode::ForkKind;
use crate::units::{FileBlock, InodeNumber};
use crate::volume::Volume;
use std::collections::BTreeSet;
use std::sync::Arc;
use undercroft_block::{BlockDevice, Sector, read_exact_at, write_all_at};

/// The replayed pieces of scattered directory blocks.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// First sectors of pieces that were replayed without the others.
    alone: BTreeSet<Sector>,
    /// Directories that changed: a change of a block changes the times of its directory.
    directories: BTreeSet<InodeNumber>,
}

impl Pieces {
    pub(super) fn add(&mut self, first: Sector) {
        self.alone.insert(first);
    }

    pub(super) fn add_directory(&mut self, number: InodeNumber) {
        self.directories.insert(number);
    }

    /// Makes the checksums of scattered directory blocks. Everything that was replayed is on the
    /// device.
    pub(super) fn join(&self, device: &Arc<dyn BlockDevice>) -> Result<(), Error> {
        if self.alone.is_empty() {
            return Ok(());
        }
        let volume = Volume::open_unreplayed(Arc::clone(device))?;
        for number in &self.directories {
            match self.join_directory(&volume, device.as_ref(), *number) {
                // Freed since, or damaged in a way that a later read will find.
                Err(error) if error.is_damage() => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn join_directory(
        &self,
        volume: &Volume,
        device: &dyn BlockDevice,
        number: InodeNumber,
    ) -> Result<(), Error> {
        let inode = volume.inode(number).map_err(Error::into_damage)?;
        let inode = inode.read();
        if inode.core.mode == 0 || inode.file_type() != FileType::Directory {
            return Ok(());
        }
        let extents = bmap::extents(volume, &inode, ForkKind::Data)?;
        let unit = u64::from(volume.geometry().dir_block_blocks());
        let starts = extents.as_slice().iter().flat_map(|extent| {
            (extent.offset.0 / unit..=(extent.end().0 - 1) / unit).map(move |index| index * unit)
        });
        for start in starts.collect::<BTreeSet<_>>() {
            let parts = parts(volume.geometry(), extents, start..start + unit);
            let is_alone = parts.iter().any(|(first, sectors)| {
                let end = Sector(first.0 + u64::from(*sectors));
                self.alone.range(*first..end).next().is_some()
            });
            let address = BufferAddress::scattered(&parts);
            if is_alone && address.len() == volume.geometry().dir_block_size() {
                join(device, &address, volume.geometry())?;
            }
        }
        Ok(())
    }
}

/// Where the file blocks `range` are.
fn parts(
    geometry: &Geometry,
    extents: &ExtentList,
    range: std::ops::Range<u64>,
) -> Vec<(Sector, u32)> {
    let mut parts = Vec::new();
    let mut at = range.start;
    while let Some(part) = extents.first_in(FileBlock(at), FileBlock(range.end)) {
        parts.push((geometry.sector(part.start), part.len * geometry.sectors_per_block()));
        at = part.end().0;
    }
    parts
}

/// Makes the checksum of the block at `address`, and keeps the position that its header has.
fn join(
    device: &dyn BlockDevice,
    address: &BufferAddress,
    geometry: &Geometry,
) -> Result<(), Error> {
    let mut bytes = vec![0; address.len()];
    let mut rest = &mut bytes[..];
    for (sector, sectors) in address.parts() {
        let (part, others) = rest.split_at_mut(*sectors as usize * 512);
        read_exact_at(device, *sector, part)?;
        rest = others;
    }
    let Some(header) = found_kind(&bytes).and_then(Header::of) else { return Ok(()) };
    let Some(position) = header.lsn(&bytes) else { return Ok(()) };
    header.stamp(&mut bytes, position, geometry.block_size());
    // The stamp is in the first piece.
    let (first, sectors) = address.parts()[0];
    Ok(write_all_at(device, first, &bytes[..sectors as usize * 512])?)
}
