//! The mappings of files, by all inodes.

use super::in_use::for_each_in_use;
use super::part::GroupPart;
use crate::bmap;
use crate::error::Error;
use crate::format::{RmapFlags, RmapOwner, RmapRecord};
use crate::inode::ForkKind;
use crate::units::{AgBlock, AgNumber, FileBlock, FsBlock};
use crate::volume::Volume;

/// Visits the mappings of all inodes in parts of groups, at most one of each group, ascending; they
/// are cut to it.
///
/// # Errors
/// An inode is damaged; the device failed.
pub(crate) fn for_each_mapping(
    volume: &Volume,
    parts: &[GroupPart],
    visit: &mut dyn FnMut(AgNumber, RmapRecord),
) -> Result<(), Error> {
    let geometry = volume.geometry();
    // The part that a run of blocks reaches into, and the rest of the run there.
    let rest = |start: FsBlock, len: u32| {
        let (ag, block) = geometry.split_block(start);
        let part = &parts[parts.binary_search_by_key(&ag, |part| part.ag).ok()?];
        let skipped = part.start.saturating_sub(block.0);
        (skipped < len).then(|| (ag, AgBlock(block.0 + skipped), skipped))
    };
    for_each_in_use(volume, &mut |number| {
        let inode = volume.inode(number).map_err(Error::into_damage)?;
        let (inode, owner) = (inode.read(), RmapOwner::inode(number));
        for (kind, fork) in
            [(ForkKind::Data, RmapFlags::empty()), (ForkKind::Attr, RmapFlags::ATTR_FORK)]
        {
            for extent in bmap::extents(volume, &inode, kind)?.as_slice() {
                let Some((ag, start, skipped)) = rest(extent.start, extent.len) else { continue };
                let state =
                    if extent.unwritten { RmapFlags::UNWRITTEN } else { RmapFlags::empty() };
                let offset = FileBlock(extent.offset.0 + u64::from(skipped));
                let (len, flags) = (extent.len - skipped, fork | state);
                visit(ag, RmapRecord { start, len, owner, offset, flags });
            }
            for block in bmap::tree_block_list(volume, &inode, kind)? {
                let Some((ag, start, _)) = rest(block, 1) else { continue };
                let flags = fork | RmapFlags::BMBT_BLOCK;
                visit(ag, RmapRecord { start, len: 1, owner, offset: FileBlock(0), flags });
            }
        }
        Ok(())
    })
}
