//! Which inodes are in what goes.

use crate::error::Error;
use crate::geometry::{Geometry, INODES_PER_CHUNK};
use crate::group_tree::first_inode_chunk;
use crate::maintain::shrink::size::Size;
use crate::scan::{GroupPart, for_each_from};
use crate::units::{AgInode, AgNumber, InodeNumber};
use crate::volume::Volume;
use std::ops::ControlFlow;

/// The inodes in what goes. In the last group that stays those of all chunks whose windows of 64
/// inodes reach behind its end, also where blocks are missing there: kernels and `xfs_repair` want
/// whole windows.
#[derive(Clone, Debug)]
pub(super) struct TailInodes {
    parts: Vec<GroupPart>,
    last: AgNumber,
    /// The first one of the last group that stays.
    first: AgInode,
    has_tail: bool,
}

impl TailInodes {
    /// # Errors
    /// A header or the tree of inodes of a group is damaged; the device failed.
    pub(super) fn new(volume: &Volume, size: Size) -> Result<Self, Error> {
        let geometry = volume.geometry();
        let parts: Vec<_> = size.tail(geometry).collect();
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
