//! Which inodes are in what goes.

use crate::error::Error;
use crate::format::InodeChunkRecord;
use crate::geometry::{Geometry, INODES_PER_CHUNK};
use crate::group_tree::first_inode_chunk;
use crate::maintain::shrink::size::{GroupPart, Size};
use crate::units::{AgInode, AgNumber, InodeNumber};
use crate::volume::Volume;
use std::ops::ControlFlow;

/// The inodes in what goes. In the last group that stays those of all chunks whose windows of 64
/// inodes reach behind its end, also where blocks are missing there: kernels and `xfs_repair` want
/// whole windows.
#[derive(Clone, Debug)]
pub(super) struct DoomedInodes {
    parts: Vec<GroupPart>,
    last: AgNumber,
    /// The first one of the last group that stays.
    first: AgInode,
    has_tail: bool,
}

impl DoomedInodes {
    /// # Errors
    /// A header or the tree of inodes of a group is damaged; the device failed.
    pub(super) fn new(volume: &Volume, size: Size) -> Result<Self, Error> {
        let geometry = volume.geometry();
        let parts: Vec<_> = size.doomed(geometry).collect();
        let last = size.last_group();
        let end = first_behind(geometry, size.last);
        let has_tail = parts.iter().any(|part| part.ag == last);
        let mut first = end;
        if has_tail {
            // At most one chunk lies across the end.
            let across = AgInode(end.0.saturating_sub(INODES_PER_CHUNK - 1));
            let chunk = first_inode_chunk(volume, last, across)?;
            first = chunk.map_or(end, |chunk| chunk.start.min(end));
        }
        Ok(Self { parts, last, first, has_tail })
    }

    /// The first inode behind the end of the last group that stays, if there can be one.
    pub(super) fn first_of_tail(&self) -> Option<(AgNumber, AgInode)> {
        self.has_tail.then_some((self.last, self.first))
    }

    /// Whether an inode is in what goes.
    pub(super) fn contains(&self, geometry: &Geometry, number: InodeNumber) -> bool {
        let (ag, inode) = geometry.split_inode(number);
        ag > self.last || (self.has_tail && ag == self.last && inode >= self.first)
    }

    /// Visits those in use, ascending, until `visit` breaks; it may free them.
    pub(super) fn for_each(
        &self,
        volume: &Volume,
        mut visit: impl FnMut(InodeNumber) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        for part in &self.parts {
            let first = if part.ag == self.last { self.first } else { AgInode(0) };
            if for_each_from(volume, part.ag, first, &mut visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The first inode at or behind a block of a group.
fn first_behind(geometry: &Geometry, block: u32) -> AgInode {
    let first = u64::from(block) << geometry.inodes_per_block_log();
    AgInode(u32::try_from(first).unwrap_or(u32::MAX))
}

/// Visits the inodes in use of a group, from one on.
pub(super) fn for_each_from(
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
pub(in crate::maintain::shrink) fn for_each_in_use(
    volume: &Volume,
    visit: &mut dyn FnMut(InodeNumber) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut visit = |number| visit(number).map(ControlFlow::Continue);
    (0..volume.geometry().ag_count)
        .try_for_each(|ag| for_each_from(volume, AgNumber(ag), AgInode(0), &mut visit).map(drop))
}

/// The inodes of a chunk that are in use.
pub(in crate::maintain::shrink) fn in_use(
    geometry: &Geometry,
    ag: AgNumber,
    chunk: &InodeChunkRecord,
) -> impl Iterator<Item = InodeNumber> {
    let (used, start) = (chunk.existing() & !chunk.free, chunk.start.0);
    (0..INODES_PER_CHUNK)
        .filter(move |index| used & 1 << index != 0)
        .map(move |index| geometry.inode_number(ag, AgInode(start + index)))
}
