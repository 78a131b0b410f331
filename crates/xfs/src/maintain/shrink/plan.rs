//! What a shrink would do: the sizes, what would move, and what is in the way.

use super::doomed::{Amount, Doomed, Obstacle, fixed_end, holds_fixed};
use super::journal;
use super::room;
use super::size::Size;
use crate::error::Error;
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
    /// Blocks of the journal, if it moves.
    pub journal: u64,
    /// What is in the way: with anything here, nothing is done.
    pub obstacles: Vec<Obstacle>,
    /// Blocks of the smallest volume that it can become.
    pub smallest: u64,
}

/// A plan that was found possible, or not.
pub(super) struct Plan {
    pub(super) size: Size,
    pub(super) shrinkage: Shrinkage,
}

impl Plan {
    /// Looks at a volume that is clean, and changes nothing.
    ///
    /// # Errors
    /// The size is impossible whatever the volume holds; its owners cannot be found; damage; the
    /// device failed.
    pub(super) fn new(volume: &Volume, target: ShrinkTarget) -> Result<Self, Error> {
        let geometry = volume.geometry();
        volume.check_format_maintained()?;
        if !geometry.features.rmapbt() {
            let what = "it has no reverse mappings (rmapbt), by which a shrink finds what it moves";
            return Err(Error::NotUsable(what.into()));
        }
        let smallest = smallest(volume)?;
        let size = match target {
            ShrinkTarget::Bytes(bytes) => Size::within(geometry, bytes)?,
            ShrinkTarget::Smallest => smallest,
        };
        let Doomed { data, metadata, mut obstacles, .. } = Doomed::of(volume, size)?;
        obstacles.extend(room::shortage(volume, size, data.blocks + metadata.blocks)?);
        let journal = if journal::is_doomed(geometry, size) { geometry.log_blocks } else { 0 };
        let shrinkage = Shrinkage {
            blocks_before: geometry.blocks,
            blocks: size.blocks(geometry),
            groups_before: geometry.ag_count,
            groups: size.groups,
            data,
            metadata,
            journal: journal.into(),
            obstacles,
            smallest: smallest.blocks(geometry),
        };
        Ok(Self { size, shrinkage })
    }

    /// Fails if something is in the way.
    pub(super) fn check(&self, block_log: u8) -> Result<(), Error> {
        let Shrinkage { obstacles, smallest, .. } = &self.shrinkage;
        if obstacles.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
        let what = format!(
            "the volume cannot become that small: {}; the smallest size that leaves this where it \
             is, is {} bytes",
            named.join("; "),
            smallest << block_log
        );
        Err(Error::Invalid(what))
    }
}

/// The smallest size with nothing in the way.
fn smallest(volume: &Volume) -> Result<Size, Error> {
    let geometry = volume.geometry();
    let (now, least) = (Size::of(geometry), Size::least(geometry));
    let mut groups = now.groups;
    while groups > least.groups && !holds_fixed(volume, AgNumber(groups - 1))? {
        groups -= 1;
    }
    let ag = AgNumber(groups - 1);
    let length = geometry.ag_length(ag);
    let last = fixed_end(volume, ag)?.max(Size::least_last(geometry)).min(length);
    room::smallest(volume, Size { groups, last })
}
