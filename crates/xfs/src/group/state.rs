//! The headers of one group, decoded, and its free list.

use super::base::GroupBase;
use super::last_pick::{LastPick, Pick};
use super::recent::RecentBlocks;
use super::reserved::Reserved;
use super::summary::GroupSummary;
use super::usable::longest_usable;
use crate::busy::BusyExtents;
use crate::cache::{BufferRef, EditGuard};
use crate::error::Error;
use crate::format::{Agf, Agi, AllocRecord, BufferKind, HeaderError, TreeHeights, TreeKind, agfl};
use crate::geometry::Geometry;
use crate::space::{FreeSpace, Pool};
use crate::units::{AgBlock, AgInode, AgNumber};
use std::sync::Arc;

/// Headers of one group, decoded.
#[derive(Debug)]
pub struct GroupState {
    /// Which group.
    pub number: AgNumber,
    /// Free-space header.
    pub agf: Agf,
    /// Inode header.
    pub agi: Agi,
    /// Blocks set aside for the growth of trees.
    pub reserved: Reserved,
    /// Extents whose freeing is not durable yet.
    pub busy: Arc<BusyExtents>,
    /// Blocks taken ahead of the data of a bulk load: neither free nor anybody's.
    pub(crate) room: Option<AllocRecord>,
    summary: Arc<GroupSummary>,
    /// Free blocks, and the longest extent of them, when no inode was to be had.
    without_inodes: Option<(u32, u32)>,
    /// Blocks that the volume's count of free space has of this group.
    counted: i64,
    buffers: HeaderBuffers,
    stored: StoredHeaders,
    /// Of its trees.
    recent: RecentBlocks,
    last_pick: LastPick,
}

#[derive(Debug)]
struct HeaderBuffers {
    agf: BufferRef,
    agi: BufferRef,
    agfl: BufferRef,
}

/// The headers as their buffers have them: no other code changes those.
#[derive(Debug)]
struct StoredHeaders {
    agf: Agf,
    agi: Agi,
}

impl GroupState {
    /// Reads the headers of a group.
    ///
    /// # Errors
    /// A header is damaged, or the device failed.
    pub(super) fn load(
        base: &GroupBase<'_>,
        number: AgNumber,
        busy: &Arc<BusyExtents>,
        summary: &Arc<GroupSummary>,
    ) -> Result<Self, Error> {
        let geometry = base.geometry;
        base.prefetch_headers(std::iter::once(number));
        let buffers = HeaderBuffers {
            agf: base.header(number, 1, BufferKind::Agf)?,
            agi: base.header(number, 2, BufferKind::Agi)?,
            agfl: base.header(number, 3, BufferKind::Agfl)?,
        };
        let damaged = |structure, index, defect: HeaderError| Error::Header {
            structure,
            sector: geometry.header_sector(number, index),
            defect,
        };
        let agf = Agf::decode(&buffers.agf.read(), geometry);
        let agi = Agi::decode(&buffers.agi.read(), geometry);
        // What depends on the group or on another header is not the cache's to check.
        Agf::verify(&buffers.agf.read(), geometry, number)
            .and_then(|()| agfl::ring(&agf, geometry).map(drop))
            .map_err(|error| damaged("AGF", 1, error))?;
        Agi::verify(&buffers.agi.read(), geometry, number)
            .map_err(|error| damaged("AGI", 2, error))?;
        agfl::verify(&buffers.agfl.read(), geometry, number)
            .map_err(|error| damaged("AGFL", 3, error))?;
        let stored = StoredHeaders { agf: agf.clone(), agi: agi.clone() };
        let mut state = Self {
            number,
            agf,
            agi,
            stored,
            reserved: Reserved::new(geometry, number),
            busy: Arc::clone(busy),
            room: None,
            summary: Arc::clone(summary),
            without_inodes: None,
            counted: 0,
            buffers,
            recent: RecentBlocks::default(),
            last_pick: LastPick::default(),
        };
        state.count(base.free_space);
        state.publish(geometry, base.heights);
        Ok(state)
    }

    /// Updates the summary of the group for other threads.
    pub(crate) fn publish(&self, geometry: &Geometry, heights: &TreeHeights) {
        let reserved = self.reserved.outstanding(&self.agf, &self.agi, Pool::Ordinary);
        let is_same = self.without_inodes == Some((self.agf.free_blocks, self.agf.longest));
        let without_inodes = is_same && self.agi.free_count == 0;
        let longest = longest_usable(geometry, heights, &self.agf, reserved);
        self.summary.publish(longest, without_inodes);
    }

    /// Remembers that there is no inode to be had, until something changes.
    pub(crate) fn set_without_inodes(&mut self) {
        self.without_inodes = Some((self.agf.free_blocks, self.agf.longest));
    }

    /// Brings the volume's count of free space in line with the group.
    fn count(&mut self, free_space: &FreeSpace) {
        let outstanding = self.reserved.outstanding(&self.agf, &self.agi, Pool::Ordinary);
        let free = i64::from(self.agf.free_blocks) + i64::from(self.agf.free_list_count);
        let now = free - i64::from(outstanding);
        free_space.add(now - self.counted);
        self.counted = now;
    }

    /// Leaves free blocks out of what the volume's count is [told](Self::count) next: a transaction has
    /// them among those that it gives back.
    pub(crate) fn tell_less(&mut self, blocks: u32) {
        self.counted += i64::from(blocks);
    }

    /// Writes what changed in the headers into their buffers, which `edit` opens for change.
    pub(crate) fn store(
        &mut self,
        free_space: &FreeSpace,
        mut edit: impl FnMut(&BufferRef) -> EditGuard<'_>,
    ) {
        self.count(free_space);
        if self.stored.agf != self.agf {
            self.agf.encode_changes(&mut edit(&self.buffers.agf).edit());
            self.stored.agf.clone_from(&self.agf);
        }
        if self.stored.agi != self.agi {
            self.agi.encode_changes(&mut edit(&self.buffers.agi).edit());
            self.stored.agi.clone_from(&self.agi);
        }
    }

    /// The oldest block of the free list; `None` if the list is empty.
    ///
    /// # Errors
    /// The list names a block that cannot be on it.
    pub fn peek_at_list(&self, geometry: &Geometry) -> Result<Option<AgBlock>, Error> {
        let mut agf = self.agf.clone();
        agfl::take_head(&mut agf, &self.buffers.agfl.read(), geometry)
            .map_err(|error| self.corrupt("AGFL", AgBlock(0), &error.to_string()))
    }

    /// The first block of the free list that `wanted` accepts.
    pub(crate) fn on_list(
        &self,
        geometry: &Geometry,
        wanted: impl Fn(AgBlock) -> bool,
    ) -> Option<AgBlock> {
        agfl::live(&self.agf, &self.buffers.agfl.read(), geometry).find(|block| wanted(*block))
    }

    /// The blocks of the free list.
    pub(crate) fn list(&self, geometry: &Geometry) -> Vec<AgBlock> {
        agfl::live(&self.agf, &self.buffers.agfl.read(), geometry).collect()
    }

    /// Takes the oldest block off the free list.
    ///
    /// # Errors
    /// The list is empty although a tree needs a block: the group is full or its headers lie.
    pub fn take_from_list(&mut self, geometry: &Geometry) -> Result<AgBlock, Error> {
        match agfl::take_head(&mut self.agf, &self.buffers.agfl.read(), geometry) {
            Ok(Some(block)) => Ok(block),
            Ok(None) => Err(self.corrupt("AGFL", AgBlock(0), "the free list is empty")),
            Err(error) => Err(self.corrupt("AGFL", AgBlock(0), &error.to_string())),
        }
    }

    /// Puts a free list of kernels before 4.5 in order, whose buffer `edit` opens for change.
    pub(crate) fn renew_list(
        &mut self,
        geometry: &Geometry,
        edit: impl FnOnce(&BufferRef) -> EditGuard<'_>,
    ) {
        if agfl::is_short(&self.agf, geometry) {
            agfl::renew(&mut self.agf, &mut edit(&self.buffers.agfl).edit(), geometry);
        }
    }

    /// Appends a block to the free list, whose buffer `edit` opens for change.
    ///
    /// # Errors
    /// The list is full: its length in the AGF is wrong.
    pub(crate) fn put_on_list(
        &mut self,
        geometry: &Geometry,
        block: AgBlock,
        edit: impl FnOnce(&BufferRef) -> EditGuard<'_>,
    ) -> Result<(), Error> {
        let mut list = edit(&self.buffers.agfl);
        if agfl::put_tail(&mut self.agf, &mut list.edit(), geometry, block) {
            return Ok(());
        }
        drop(list);
        Err(self.corrupt("AGFL", block, "the free list is full"))
    }

    /// The block of a tree that the steps before this one used, if it is the one at `block`.
    pub(crate) fn recent_block(
        &self,
        tree: TreeKind,
        level: usize,
        block: AgBlock,
    ) -> Option<BufferRef> {
        self.recent.find(tree, level, block)
    }

    /// Records the block of a tree that a step used.
    pub(crate) fn remember_block(
        &mut self,
        tree: TreeKind,
        level: usize,
        block: AgBlock,
        buffer: &BufferRef,
    ) {
        self.recent.remember(tree, level, block, buffer);
    }

    /// The chunk that the last inode for a child of `parent`, in this group or (`None`) elsewhere, came
    /// from, if the next one does, too.
    #[inline]
    pub(crate) fn last_pick(&self, parent: Option<AgInode>) -> Option<Pick> {
        self.last_pick.get(parent)
    }

    /// Remembers the choice for a child of `parent`. It is good until a tree of chunks
    /// [changes](Self::forget_pick).
    pub(crate) fn set_last_pick(&mut self, parent: Option<AgInode>, pick: Pick) {
        self.last_pick.set(parent, pick);
    }

    /// Told of each change of a tree of chunks.
    #[inline]
    pub(crate) fn forget_pick(&mut self) {
        self.last_pick.forget();
    }

    /// An error for damage found in this group.
    #[must_use]
    pub fn corrupt(&self, structure: &'static str, block: AgBlock, what: &str) -> Error {
        Error::Group { structure, group: self.number, block, what: what.to_owned() }
    }
}
