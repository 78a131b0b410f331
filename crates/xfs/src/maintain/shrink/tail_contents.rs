//! What lies in the part of a volume that goes.

use super::mappings;
use super::size::Size;
use crate::error::Error;
use crate::format::{RmapFlags, RmapRecord};
use crate::group_tree::inode_chunks;
use crate::recovery::journal_can_move;
use crate::scan::{GroupPart, in_use};
use crate::units::{AgNumber, InodeNumber};
use crate::volume::Volume;
use std::fmt;

/// How many things of a kind an obstacle names.
const NAMED: usize = 8;

/// A number of extents and their blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Extents.
    pub extents: u64,
    /// Blocks in them.
    pub blocks: u64,
}

impl Amount {
    fn add(&mut self, blocks: u32) {
        self.extents += 1;
        self.blocks += u64::from(blocks);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.extents += other.extents;
        self.blocks += other.blocks;
    }
}

/// Something that keeps a volume from getting smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Inodes: their numbers name their places.
    Inodes {
        /// How many.
        count: u64,
        /// The first of them.
        first: Vec<InodeNumber>,
    },
    /// An inode that the journal is too small for, at least by its names or children: all that
    /// names it changes in one transaction.
    Names {
        /// The inode.
        inode: InodeNumber,
        /// Bytes of the journal that a new number takes.
        needed: usize,
        /// Bytes that one transaction can have.
        limit: usize,
    },
    /// The free space is in too small pieces for as many chunks of inodes as move.
    Chunks {
        /// Inodes that would move.
        needed: u64,
        /// Inodes for which there is room.
        room: u64,
    },
    /// The journal.
    Journal {
        /// Its group.
        group: AgNumber,
    },
    /// The files do not fit in what stays.
    Space {
        /// Blocks that would have to move.
        needed: u64,
        /// Blocks for them.
        free: u64,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inodes { count, first } => {
                let names: Vec<String> = first.iter().map(ToString::to_string).collect();
                let more = if *count > first.len() as u64 { ", ..." } else { "" };
                write!(f, "{count} inodes are in what would go: {}{more}", names.join(", "))?;
                f.write_str("; where numbers may change they get new ones")
            }
            Self::Names { inode, needed, limit } => write!(
                f,
                "a new number for inode {inode} needs {needed} bytes of the journal at once, which \
                 has room for {limit}: it has too many names or children"
            ),
            Self::Chunks { needed, room } => write!(
                f,
                "{needed} inodes would have to move, and the pieces of free space in what stays have \
                 room for {room}"
            ),
            Self::Journal { group } => write!(f, "the journal is in group {group}"),
            Self::Space { needed, free } => {
                write!(f, "{needed} blocks would have to move, and what stays has {free} for them")
            }
        }
    }
}

/// The contents of the part that goes.
#[derive(Clone, Debug, Default)]
pub(super) struct TailContents {
    /// Data of files.
    pub(super) data: Amount,
    /// Blocks of attributes and mapping trees.
    pub(super) metadata: Amount,
    /// Inodes in use.
    pub(super) inodes: u64,
    /// What has to stay where it is.
    pub(super) obstacles: Vec<Obstacle>,
}

impl TailContents {
    /// Looks at what goes when the volume gets this size. Nothing of the groups is kept but counts.
    /// Inodes are in the way where they `keep` their numbers.
    pub(super) fn of(volume: &Volume, size: Size, keep: bool) -> Result<Self, Error> {
        let (mut tail, mut first) = (Self::default(), Vec::new());
        for part in size.tail(volume.geometry()) {
            inodes_in(volume, part, |number| {
                tail.inodes += 1;
                if keep && first.len() < NAMED {
                    first.push(number);
                }
            })?;
        }
        if keep && tail.inodes > 0 {
            tail.obstacles.insert(0, Obstacle::Inodes { count: tail.inodes, first });
        }
        mappings::for_each(volume, size, &mut |record| {
            let is_data = !is_tree_block(&record);
            let amount = if is_data { &mut tail.data } else { &mut tail.metadata };
            amount.add(record.len);
        })?;
        Ok(tail)
    }

    /// Whether nothing is in the way.
    pub(super) fn is_free(&self) -> bool {
        self.obstacles.is_empty()
    }
}

/// Whether a mapping is that of a block of a mapping tree or of an attribute fork.
fn is_tree_block(record: &RmapRecord) -> bool {
    record.flags.intersects(RmapFlags::BMBT_BLOCK | RmapFlags::ATTR_FORK)
}

/// Visits the inodes in use whose chunks reach into a part of a group.
fn inodes_in(
    volume: &Volume,
    part: GroupPart,
    mut visit: impl FnMut(InodeNumber),
) -> Result<(), Error> {
    let geometry = volume.geometry();
    inode_chunks(volume, part.ag, |chunk| {
        // The window of a chunk must fit the group, also where its last blocks are missing.
        let window = u64::from(chunk.start.0) + 64;
        if window > u64::from(part.start) << geometry.inodes_per_block_log() {
            in_use(geometry, part.ag, &chunk).for_each(&mut visit);
        }
    })
}

/// Whether something in a group keeps it from going; inodes do where they `keep` their numbers.
pub(super) fn holds_fixed(volume: &Volume, ag: AgNumber, keep: bool) -> Result<bool, Error> {
    let part = GroupPart::whole(volume.geometry(), ag);
    let mut inodes = 0_u64;
    if keep {
        inodes_in(volume, part, |_| inodes += 1)?;
    }
    Ok(inodes > 0)
}

/// The end of what has to stay where it is in a group that stays: inodes if they `keep` their
/// numbers, and the root directory with the inodes behind it in any case.
pub(super) fn fixed_end(volume: &Volume, ag: AgNumber, keep: bool) -> Result<u32, Error> {
    let geometry = volume.geometry();
    let (mut end, per_block) = (geometry.ag_header_blocks(), geometry.inodes_per_block_log());
    let (root_group, root) = geometry.split_inode(geometry.root_inode);
    inode_chunks(volume, ag, |chunk| {
        let is_root = ag == root_group && root.0.wrapping_sub(chunk.start.0) < 64;
        if is_root || (keep && chunk.freecount < chunk.count) {
            let window = (u64::from(chunk.start.0) + 64).div_ceil(1 << per_block);
            end = end.max(u32::try_from(window).unwrap_or(u32::MAX));
        }
    })?;
    let (log_group, log) = geometry.split_block(geometry.log_start);
    if ag == log_group && !journal_can_move(geometry) {
        end = end.max(log.0.saturating_add(geometry.log_blocks));
    }
    Ok(end)
}
