//! Inodes in use, by the chunks of the groups.

use crate::error::Error;
use crate::format::InodeChunkRecord;
use crate::geometry::{Geometry, INODES_PER_CHUNK};
use crate::group_tree::first_inode_chunk;
use crate::units::{AgInode, AgNumber, InodeNumber};
use crate::volume::Volume;
use std::ops::ControlFlow;

/// Visits the inodes in use of a group, from one on.
pub(crate) fn for_each_from(
    volume: &Volume,
    ag: AgNumber,
    first: AgInode,
    visit: &mut dyn FnMut(InodeNumber) -> Result<ControlFlow<()>, Error>,
) -> Result<ControlFlow<()>, Error> {
    let (geometry, mut from) = (volume.geometry(), first);
    while let Some(chunk) = first_inode_chunk(volume, ag, from)? {
        volume.prefetch_inodes(in_use(geometry, ag, &chunk));
        for number in in_use(geometry, ag, &chunk) {
            if visit(number)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let Some(next) = chunk.start.0.checked_add(INODES_PER_CHUNK) else { break };
        from = AgInode(next);
    }
    Ok(ControlFlow::Continue(()))
}

/// Visits all inodes in use of a volume.
pub(crate) fn for_each_in_use(
    volume: &Volume,
    visit: &mut dyn FnMut(InodeNumber) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut visit = |number| visit(number).map(ControlFlow::Continue);
    (0..volume.geometry().ag_count)
        .try_for_each(|ag| for_each_from(volume, AgNumber(ag), AgInode(0), &mut visit).map(drop))
}

/// The inodes of a chunk that are in use.
pub(crate) fn in_use(
    geometry: &Geometry,
    ag: AgNumber,
    chunk: &InodeChunkRecord,
) -> impl Iterator<Item = InodeNumber> {
    let (used, start) = (chunk.existing() & !chunk.free, chunk.start.0);
    (0..INODES_PER_CHUNK)
        .filter(move |index| used & 1 << index != 0)
        .map(move |index| geometry.inode_number(ag, AgInode(start + index)))
}
