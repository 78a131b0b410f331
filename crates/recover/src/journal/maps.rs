//! Leaves of maps, as the journal has them: extents that files had at a time.

use undercroft_xfs_format::units::InodeNumber;
use undercroft_xfs_format::{BufferItem, Extent, Geometry, HeaderLayout, TreeKind};

use super::buffers::Buffers;

/// Blocks of the trees of maps.
#[derive(Default)]
pub(super) struct Maps {
    blocks: Buffers,
}

impl Maps {
    /// Takes the item of a block; hands over the extents in it that were logged now, with the file
    /// that they belong to.
    pub(super) fn add(
        &mut self,
        geometry: &Geometry,
        (item, data): (&BufferItem, &[&[u8]]),
    ) -> Option<(InodeNumber, Vec<Extent>)> {
        let layout = HeaderLayout::new(TreeKind::Bmbt, geometry.features.crc);
        let is_map =
            |block: &[u8]| Some(HeaderLayout::magic(block)) == layout.magic_of(TreeKind::Bmbt);
        let owner = |block: &[u8]| layout.owner(block).filter(|_| is_map(block));
        let logged = self.blocks.add(item, data, geometry.block_size(), owner)?;
        let file = InodeNumber(owner(logged.block)?);
        if HeaderLayout::level(logged.block) != 0 {
            return None;
        }
        let count = usize::from(HeaderLayout::numrecs(logged.block));
        let records = logged.block[layout.header_len()..].chunks_exact(Extent::LEN).take(count);
        let is_new = |index: usize| {
            let start = layout.header_len() + index * Extent::LEN;
            let end = start + Extent::LEN;
            logged.runs.iter().any(|run| run.start < end && start < run.end)
        };
        let records = records.enumerate().filter(|(index, _)| is_new(*index));
        let extents = records.map(|(_, record)| Extent::decode(record));
        let sound = |extent: &Extent| {
            extent.validate().is_ok() && geometry.valid_extent(extent.start, extent.len.into())
        };
        Some((file, extents.filter(sound).collect()))
    }
}
