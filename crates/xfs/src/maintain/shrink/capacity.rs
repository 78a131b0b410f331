//! Whether the contents of what goes fit in what stays.

use super::journal;
use super::size::{SLACK, Size};
use super::tail_contents::Obstacle;
use crate::alloc;
use crate::btree::Bnobt;
use crate::error::Error;
use crate::group::{Reserved, free_list_needed};
use crate::group_tree::{free_extents, inode_chunks, staging_extents};
use crate::recovery::{Leftovers, journal_can_move};
use crate::space::Pool;
use crate::units::{AgBlock, AgNumber};
use crate::volume::Volume;

/// Blocks that kernels set aside of a whole volume, and the share of it.
const SET_ASIDE_MAX: u64 = 8192;
const SET_ASIDE_SHARE: u64 = 20;

/// What moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    /// Blocks of files.
    pub(super) blocks: u64,
    /// Inodes.
    pub(super) inodes: u64,
}

/// The blocks of a group.
#[derive(Clone, Copy, Debug, Default)]
struct GroupCapacity {
    length: u64,
    free: u64,
    /// Free ones that it needs for its free list and its trees.
    kept: u64,
}

impl GroupCapacity {
    /// Blocks that others can have.
    fn free(self) -> u64 {
        self.free.saturating_sub(self.kept + u64::from(SLACK))
    }

    /// Blocks that they have.
    fn used(self) -> u64 {
        self.length.saturating_sub(self.free())
    }

    /// Blocks that the group lacks for itself, with so many more.
    fn missing(self, slack: u32) -> u64 {
        (self.kept + u64::from(slack)).saturating_sub(self.free)
    }
}

/// Free inodes, and places of new chunks.
#[derive(Clone, Copy, Debug, Default)]
struct InodeCapacity {
    free: u64,
    chunks: u64,
}

/// The room of the groups of a volume.
#[derive(Clone, Copy)]
pub(super) struct Capacity<'v> {
    volume: &'v Volume,
    /// The journal takes one of them, or they are freed, ahead of all that moves.
    leftovers: &'v Leftovers,
}

impl<'v> Capacity<'v> {
    pub(super) const fn new(volume: &'v Volume, leftovers: &'v Leftovers) -> Self {
        Self { volume, leftovers }
    }

    /// The room in the first `length` blocks of a group, as a part of a volume of the size `size`. The
    /// group keeps a full free list, the space that its trees may grow into, and that for what they have
    /// behind.
    fn room(self, size: Size, ag: AgNumber, length: u32) -> Result<GroupCapacity, Error> {
        let volume = self.volume;
        let full = volume.geometry().ag_length(ag);
        let geometry = size.superblock(volume.superblock()).geometry();
        let Some(mut guard) = volume.lock_group(ag, true)? else {
            return Ok(GroupCapacity::default());
        };
        let group = guard.state();
        let need = Reserved::new(&geometry, ag).outstanding(&group.agf, &group.agi, Pool::Ordinary);
        let listed = free_list_needed(&geometry, volume.heights(), &group.agf);
        let need = need + listed.saturating_sub(group.agf.free_list_count);
        let (mut free, mut own) = (u64::from(group.agf.free_blocks), 0);
        if length < full {
            own = alloc::own_blocks_behind(volume, group, AgBlock(length))?.into();
        }
        drop(guard);
        if length < full {
            free = 0;
            free_extents::<Bnobt>(volume, ag, |extent| {
                let end = extent.start.0.saturating_add(extent.len).min(length);
                free += u64::from(end.saturating_sub(extent.start.0));
            })?;
            // It moves first.
            free += u64::from(journal::leaves(volume.geometry(), size, ag, length));
        }
        // Freed ahead of all else.
        staging_extents(volume, ag, |extent| {
            let end = extent.start.0.saturating_add(extent.len).min(length);
            free += u64::from(end.saturating_sub(extent.start.0));
        })?;
        free += self.leftovers.blocks_in(volume.geometry(), ag, length);
        Ok(GroupCapacity { length: length.into(), free, kept: u64::from(need) + own })
    }

    /// What keeps `moving` blocks from fitting, if they do not, where a short last group has `slack`
    /// more for itself.
    pub(super) fn shortage(
        self,
        size: Size,
        moving: Moving,
        slack: u32,
    ) -> Result<Option<Obstacle>, Error> {
        let (geometry, free) = (self.volume.geometry(), self.free_in(size)?);
        let Moving { blocks: mut moving, inodes } = moving;
        if inodes > 0 {
            let room = self.inode_room(size)?;
            let chunk = u64::from(geometry.chunk_inodes());
            let wanted = inodes.saturating_sub(room.free).div_ceil(chunk);
            if wanted > room.chunks {
                let room = room.free.saturating_add(room.chunks.saturating_mul(chunk));
                return Ok(Some(Obstacle::Chunks { needed: inodes, room }));
            }
            moving += wanted * u64::from(geometry.chunk_blocks());
        }
        let ag = size.last_group();
        if size.last < geometry.ag_length(ag) {
            let missing = self.room(size, ag, size.last)?.missing(slack);
            if missing > 0 {
                return Ok(Some(Obstacle::Space { needed: moving + missing, free: 0 }));
            }
        }
        // Pieces need records, and the tree of a file another block.
        let mut needed = moving + moving / 100;
        if journal::is_in_tail(geometry, size) {
            needed += u64::from(geometry.log_blocks);
            if !self.has_place_for_journal(size)? {
                let group = geometry.split_block(geometry.log_start).0;
                return Ok(Some(Obstacle::Journal { group }));
            }
        }
        let short = needed > free && needed > 0;
        Ok(short.then_some(Obstacle::Space { needed, free }))
    }

    /// Whether a group but the first has a free extent for the journal, and the room.
    fn has_place_for_journal(self, size: Size) -> Result<bool, Error> {
        let (volume, geometry) = (self.volume, self.volume.geometry());
        if !journal_can_move(geometry) {
            return Ok(false);
        }
        if self.leftovers.place(geometry, |ag, end| size.holds(geometry, ag, end)).is_some() {
            return Ok(true);
        }
        for ag in (1..size.groups).map(AgNumber) {
            let length = size.length(geometry, ag);
            let mut longest = 0;
            if self.room(size, ag, length)?.free() >= geometry.log_blocks.into() {
                free_extents::<Bnobt>(volume, ag, |extent| {
                    let end = extent.start.0.saturating_add(extent.len).min(length);
                    longest = longest.max(end.saturating_sub(extent.start.0));
                })?;
            }
            // The free list may take some first, and an alignment others.
            let unit = geometry.log_stripe_unit >> geometry.block_log;
            if u64::from(longest) >= u64::from(geometry.log_blocks) + u64::from(unit + SLACK) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The room for inodes in a volume of this size.
    fn inode_room(self, size: Size) -> Result<InodeCapacity, Error> {
        let (volume, geometry) = (self.volume, self.volume.geometry());
        let (blocks, align) = (geometry.chunk_blocks(), geometry.cluster_alignment().max(1));
        let mut room = InodeCapacity::default();
        for ag in (0..size.groups).map(AgNumber) {
            let length = size.length(geometry, ag);
            inode_chunks(volume, ag, |chunk| {
                let (start, _) = geometry.inode_block(chunk.start);
                if start.0.saturating_add(blocks) <= length {
                    room.free += u64::from(chunk.freecount);
                }
            })?;
            free_extents::<Bnobt>(volume, ag, |extent| {
                let start = extent.start.0.next_multiple_of(align);
                let end = extent.start.0.saturating_add(extent.len).min(length);
                room.chunks +=
                    u64::from(end.saturating_sub(start) / blocks.next_multiple_of(align));
            })?;
        }
        Ok(room)
    }

    /// Blocks for files in a volume of this size.
    fn free_in(self, size: Size) -> Result<u64, Error> {
        let geometry = self.volume.geometry();
        let mut free = 0;
        for ag in (0..size.groups).map(AgNumber) {
            let length = size.length(geometry, ag);
            free += self.room(size, ag, length)?.free();
        }
        let aside = (size.blocks(geometry) / SET_ASIDE_SHARE).min(SET_ASIDE_MAX);
        Ok(free.saturating_sub(aside))
    }

    /// The smallest size from `least` on whose free space has room for what goes.
    pub(super) fn smallest(self, least: Size) -> Result<Size, Error> {
        let geometry = self.volume.geometry();
        let now = Size::of(geometry);
        let full = |groups| Size { groups, last: geometry.ag_length(AgNumber(groups - 1)) };
        let fits = |size: Size| -> Result<bool, Error> {
            let mut moving = 0;
            for part in size.tail(geometry) {
                let whole = self.room(now, part.ag, part.start + part.len)?;
                let kept =
                    if part.start > 0 { self.room(now, part.ag, part.start)?.used() } else { 0 };
                moving += whole.used().saturating_sub(kept);
            }
            // The journal is counted by itself.
            if journal::is_in_tail(geometry, size) {
                moving = moving.saturating_sub(geometry.log_blocks.into());
            }
            // Chunks of inodes are among the blocks.
            Ok(self.shortage(size, Moving { blocks: moving, inodes: 0 }, SLACK)?.is_none())
        };
        let mut groups = least.groups;
        while groups < now.groups && !fits(full(groups))? {
            groups += 1;
        }
        let low = if groups == least.groups { least.last } else { Size::least_last(geometry) };
        let (mut low, mut high) = (low, full(groups).last);
        while low < high {
            let middle = low + (high - low) / 2;
            if fits(Size { groups, last: middle })? { high = middle } else { low = middle + 1 }
        }
        Ok(Size { groups, last: high })
    }
}
