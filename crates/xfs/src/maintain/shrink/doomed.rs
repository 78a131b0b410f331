//! What lies in the part of a volume that goes, by the reverse mappings of its groups.

use super::journal;
use super::size::{DoomedPart, Size};
use crate::error::Error;
use crate::format::{RmapFlags, RmapOwner, RmapRecord};
use crate::group_tree::{inode_chunks, owners};
use crate::units::{AgBlock, AgInode, AgNumber, FsBlock, InodeNumber};
use crate::volume::Volume;
use std::fmt;
use std::ops::ControlFlow;

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
    /// The journal.
    Journal {
        /// Its group.
        group: AgNumber,
    },
    /// Blocks that cannot be moved yet.
    Blocks {
        /// Their group.
        group: AgNumber,
        /// The first of them.
        block: AgBlock,
        /// The owner of that.
        owner: RmapOwner,
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
                f.write_str("; `find -inum` names one, and a copy of the file may lie elsewhere")
            }
            Self::Journal { group } => write!(f, "the journal is in group {group}"),
            Self::Blocks { group, block, owner } => {
                write!(f, "block {block} of group {group} belongs to {owner}")
            }
            Self::Space { needed, free } => {
                write!(f, "{needed} blocks would have to move, and what stays has {free} for them")
            }
        }
    }
}

/// The contents of the part that goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Doomed {
    /// Data of files.
    pub(super) data: Amount,
    /// Blocks of attributes and mapping trees.
    pub(super) metadata: Amount,
    /// Extents of the journal, in use or not.
    pub(super) log_blocks: Vec<(FsBlock, u32)>,
    /// What has to stay where it is.
    pub(super) obstacles: Vec<Obstacle>,
}

impl Doomed {
    /// Looks at what goes when the volume gets this size. Groups are read one after the other, and
    /// nothing of them is kept but counts.
    pub(super) fn of(volume: &Volume, size: Size) -> Result<Self, Error> {
        let mut doomed = Self::default();
        let mut inodes = (0, Vec::new());
        for part in size.doomed(volume.geometry()) {
            inodes_in(volume, part, |number| {
                inodes.0 += 1;
                if inodes.1.len() < NAMED {
                    inodes.1.push(number);
                }
            })?;
            doomed.survey(volume, part)?;
        }
        if let (count @ 1.., first) = inodes {
            doomed.obstacles.insert(0, Obstacle::Inodes { count, first });
        }
        Ok(doomed)
    }

    fn survey(&mut self, volume: &Volume, part: DoomedPart) -> Result<(), Error> {
        let group = part.ag;
        let mut obstacles = Vec::new();
        owners(volume, group, AgBlock(part.start), part.len, |record| {
            let RmapRecord { start: block, owner, .. } = record;
            match owner.as_inode() {
                Some(_) if is_tree_block(&record) => self.metadata.add(record.len),
                Some(_) => self.data.add(record.len),
                None if owner == RmapOwner::LOG => {
                    let start = volume.geometry().fs_block(group, block);
                    self.log_blocks.push((start, record.len));
                }
                None if stays(part, owner) && obstacles.len() < NAMED => {
                    obstacles.push(Obstacle::Blocks { group, block, owner });
                }
                None => {}
            }
            ControlFlow::Continue(())
        })?;
        self.obstacles.append(&mut obstacles);
        Ok(())
    }
}

/// Whether a mapping is that of a block of a mapping tree or of an attribute fork.
fn is_tree_block(record: &RmapRecord) -> bool {
    record.flags.intersects(RmapFlags::BMBT_BLOCK | RmapFlags::ATTR_FORK)
}

/// Whether a structure of a group is in the way: headers and trees go with a whole group, as chunks
/// without inodes do, which are looked at by themselves.
fn stays(part: DoomedPart, owner: RmapOwner) -> bool {
    part.start > 0 || owner == RmapOwner::COW
}

/// Visits the inodes in use whose chunks reach into a part of a group.
fn inodes_in(
    volume: &Volume,
    part: DoomedPart,
    mut visit: impl FnMut(InodeNumber),
) -> Result<(), Error> {
    let geometry = volume.geometry();
    inode_chunks(volume, part.ag, |chunk| {
        // The window of a chunk must fit the group, also where its last blocks are missing.
        let window = u64::from(chunk.start.0) + 64;
        if window > u64::from(part.start) << geometry.inodes_per_block_log() {
            let used = chunk.existing() & !chunk.free;
            (0..64).filter(|index| used & 1 << index != 0).for_each(|index| {
                visit(geometry.inode_number(part.ag, AgInode(chunk.start.0 + index)));
            });
        }
    })
}

/// Whether something in a group keeps it from going.
pub(super) fn holds_fixed(volume: &Volume, ag: AgNumber) -> Result<bool, Error> {
    let part = DoomedPart { ag, start: 0, len: volume.geometry().ag_length(ag) };
    let (mut doomed, mut inodes) = (Doomed::default(), 0_u64);
    inodes_in(volume, part, |_| inodes += 1)?;
    if inodes == 0 {
        doomed.survey(volume, part)?;
    }
    Ok(inodes > 0 || !doomed.obstacles.is_empty())
}

/// The end of what has to stay where it is in a group that stays.
pub(super) fn fixed_end(volume: &Volume, ag: AgNumber) -> Result<u32, Error> {
    let geometry = volume.geometry();
    let (mut end, per_block) = (0, geometry.inodes_per_block_log());
    inode_chunks(volume, ag, |chunk| {
        let window = (u64::from(chunk.start.0) + 64).div_ceil(1 << per_block);
        end = end.max(u32::try_from(window).unwrap_or(u32::MAX));
    })?;
    owners(volume, ag, AgBlock(0), geometry.ag_length(ag), |record| {
        let moves = record.owner.as_inode().is_some()
            || (record.owner == RmapOwner::LOG && journal::can_move(geometry));
        if !moves {
            end = end.max(record.start.0.saturating_add(record.len));
        }
        ControlFlow::Continue(())
    })?;
    Ok(end)
}
