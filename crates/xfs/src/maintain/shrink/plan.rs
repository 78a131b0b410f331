//! What a shrink would do: the sizes, what would move, and what is in the way.

use super::capacity::{Capacity, Moving};
use super::inodes;
use super::journal;
use super::size::Size;
use super::tail_contents::{Amount, Obstacle, TailContents, fixed_end, holds_fixed};
use crate::error::Error;
use crate::recovery::Leftovers;
use crate::units::AgNumber;
use crate::volume::Volume;

/// How small a volume shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShrinkTarget {
    /// At most this many bytes.
    Bytes(u64),
    /// As small as it can be.
    Smallest,
}

/// What a shrink is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrinkOptions {
    /// The new size.
    pub target: ShrinkTarget,
    /// No inode gets another number: one in what would go is in the way.
    pub keep_inode_numbers: bool,
}

/// A change of size to a smaller one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrinkage {
    /// Blocks before.
    pub blocks_before: u64,
    /// Blocks afterwards.
    pub blocks: u64,
    /// Groups before.
    pub groups_before: u32,
    /// Groups afterwards.
    pub groups: u32,
    /// Data of files that moves.
    pub data: Amount,
    /// Other blocks of files that move: of mapping trees and attributes.
    pub metadata: Amount,
    /// Inodes that get new numbers.
    pub inodes: u64,
    /// Blocks of the journal, if it moves.
    pub journal: u64,
    /// What is in the way: with anything here, nothing is done.
    pub obstacles: Vec<Obstacle>,
    /// Blocks of the smallest volume that it can become.
    pub smallest: u64,
}

impl Shrinkage {
    /// Counts one that followed this one.
    pub(super) fn add(&mut self, next: &Self) {
        self.data.merge(next.data);
        self.metadata.merge(next.metadata);
        self.inodes += next.inodes;
        self.journal = self.journal.max(next.journal);
        (self.blocks, self.groups, self.smallest) = (next.blocks, next.groups, next.smallest);
    }
}

/// A plan that was found possible, or not.
pub(super) struct Plan {
    pub(super) size: Size,
    pub(super) shrinkage: Shrinkage,
    /// What an earlier shrink left.
    pub(super) leftovers: Leftovers,
}

impl Plan {
    /// Looks at a volume that is clean, and changes nothing.
    ///
    /// # Errors
    /// The size is impossible whatever the volume holds; its owners cannot be found; damage; the
    /// device failed.
    pub(super) fn new(volume: &Volume, options: ShrinkOptions) -> Result<Self, Error> {
        let ShrinkOptions { target, keep_inode_numbers: keep } = options;
        let geometry = volume.geometry();
        volume.check_format_maintained()?;
        let leftovers = Leftovers::of(volume)?;
        let smallest = smallest(volume, keep, &leftovers)?;
        let mut size = match target {
            ShrinkTarget::Bytes(bytes) => Size::within(geometry, bytes)?,
            ShrinkTarget::Smallest => smallest,
        };
        let mut tail = look(volume, size, keep, &leftovers)?;
        // A short last group may be too full, or have something in the way where it ends.
        if let Some(whole) = size.without_short_group(geometry).filter(|_| !tail.is_free()) {
            let instead = look(volume, whole, keep, &leftovers)?;
            if instead.is_free() {
                (size, tail) = (whole, instead);
            }
        }
        let TailContents { data, metadata, inodes, obstacles, .. } = tail;
        let journal = if journal::is_in_tail(geometry, size) { geometry.log_blocks } else { 0 };
        let shrinkage = Shrinkage {
            blocks_before: geometry.blocks,
            blocks: size.blocks(geometry),
            groups_before: geometry.ag_count,
            groups: size.groups,
            data,
            metadata,
            inodes,
            journal: journal.into(),
            obstacles,
            smallest: smallest.blocks(geometry),
        };
        Ok(Self { size, shrinkage, leftovers })
    }

    /// Fails if something is in the way.
    pub(super) fn check(&self, block_log: u8) -> Result<(), Error> {
        let Shrinkage { obstacles, smallest, .. } = &self.shrinkage;
        if obstacles.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
        let what = format!(
            "the volume cannot become that small: {}; the smallest size possible is {} bytes",
            named.join("; "),
            smallest << block_log
        );
        Err(Error::Invalid(what))
    }
}

/// Looks at what goes, and at the room for it.
fn look(
    volume: &Volume,
    size: Size,
    keep: bool,
    leftovers: &Leftovers,
) -> Result<TailContents, Error> {
    let mut tail = TailContents::of(volume, size, keep)?;
    if !keep {
        tail.obstacles.extend(inodes::survey(volume, size)?);
    }
    let blocks = tail.data.blocks + tail.metadata.blocks;
    let moving = Moving { blocks, inodes: tail.inodes };
    // Without slack: in a shrink that goes on, the trees of the last group may have taken it.
    tail.obstacles.extend(Capacity::new(volume, leftovers).shortage(size, moving, 0)?);
    Ok(tail)
}

/// The smallest size with nothing in the way.
fn smallest(volume: &Volume, keep: bool, leftovers: &Leftovers) -> Result<Size, Error> {
    let geometry = volume.geometry();
    let (now, least) = (Size::of(geometry), Size::least(geometry));
    let mut groups = now.groups;
    while groups > least.groups && !holds_fixed(volume, AgNumber(groups - 1), keep)? {
        groups -= 1;
    }
    let ag = AgNumber(groups - 1);
    let length = geometry.ag_length(ag);
    let last = fixed_end(volume, ag, keep)?.max(Size::least_last(geometry)).min(length);
    Capacity::new(volume, leftovers).smallest(Size { groups, last })
}
