//! Blocks of the journal that are not in use: a crash left them while it moved.
//!
//! A shrink takes its new place before the superblock names it, and frees the old one afterwards. The
//! copies of the superblock say so meanwhile, so that the next opening for changes looks for them. Reverse mappings say that both are the journal's. Without them such blocks belong to nobody; they
//! are told by their number, that of the journal's blocks.

use crate::alloc;
use crate::error::Error;
use crate::format::RmapOwner;
use crate::geometry::Geometry;
use crate::group_tree::owners;
use crate::scan::{GroupPart, for_each_unowned};
use crate::units::{AgBlock, AgNumber, FsBlock};
use crate::volume::Volume;
use std::ops::ControlFlow;

/// The first and the number of blocks of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leftovers(Vec<(FsBlock, u32)>);

impl Leftovers {
    /// # Errors
    /// A structure is damaged; the device failed.
    pub(crate) fn of(volume: &Volume) -> Result<Self, Error> {
        let (geometry, mut found) = (volume.geometry(), Vec::new());
        if geometry.features.rmapbt() {
            for ag in (0..geometry.ag_count).map(AgNumber) {
                owners(volume, ag, AgBlock(0), geometry.ag_length(ag), |record| {
                    if record.owner == RmapOwner::LOG {
                        let parts = beside_journal(geometry, ag, record.start.0, record.len);
                        found.extend(parts);
                    }
                    ControlFlow::Continue(())
                })?;
            }
        } else if journal_can_move(geometry) {
            for_each_unowned(volume, &mut |GroupPart { ag, start, len }| {
                if len == geometry.log_blocks {
                    found.push((geometry.fs_block(ag, AgBlock(start)), len));
                }
            })?;
        }
        Ok(Self(found))
    }

    /// A place for the journal among those that stay, by their groups and ends.
    pub(crate) fn place(
        &self,
        geometry: &Geometry,
        stays: impl Fn(AgNumber, u64) -> bool,
    ) -> Option<FsBlock> {
        let mut parts = self.0.iter();
        let place = parts.find(|(start, len)| {
            let (ag, block) = geometry.split_block(*start);
            let end = u64::from(block.0) + u64::from(*len);
            // The first group is no place for it.
            ag.0 > 0 && stays(ag, end) && *len == geometry.log_blocks
        });
        place.map(|(start, _)| *start)
    }

    /// Leaves a place out.
    pub(crate) fn forget(&mut self, place: FsBlock) {
        self.0.retain(|(start, _)| *start != place);
    }

    /// Blocks in all of them.
    pub(crate) fn blocks(&self) -> u64 {
        self.0.iter().map(|(_, len)| u64::from(*len)).sum()
    }

    /// Blocks in the first `length` of a group.
    pub(crate) fn blocks_in(&self, geometry: &Geometry, ag: AgNumber, length: u32) -> u64 {
        let parts = self.0.iter().map(|(start, len)| (geometry.split_block(*start), *len));
        let blocks = parts.filter(|((group, _), _)| *group == ag).map(|((_, start), len)| {
            let end = start.0.saturating_add(len).min(length);
            u64::from(end.saturating_sub(start.0))
        });
        blocks.sum()
    }

    /// Frees them.
    ///
    /// # Errors
    /// A structure is damaged; the device failed.
    pub(crate) fn free(&self, volume: &Volume) -> Result<(), Error> {
        self.0.iter().try_for_each(|(start, len)| free_journal_blocks(volume, *start, *len))
    }
}

/// Whether the journal may move at all: in the first group, the number of the root inode depends on it.
pub(crate) fn journal_can_move(geometry: &Geometry) -> bool {
    geometry.split_block(geometry.log_start).0.0 > 0
}

/// Frees blocks that the journal has left.
///
/// # Errors
/// They do not belong to it; damage; the device failed.
pub(crate) fn free_journal_blocks(volume: &Volume, start: FsBlock, len: u32) -> Result<(), Error> {
    let (ag, start) = volume.geometry().split_block(start);
    let mut trans = volume.begin()?;
    trans.in_group(ag, |trans, group| {
        alloc::free_in_group(trans, group, start, len, Some(RmapOwner::LOG))
    })?;
    trans.commit(&mut [])
}

/// What is left of an extent without the journal, which may lie beside a place that it left: both are
/// one record then.
fn beside_journal(
    geometry: &Geometry,
    ag: AgNumber,
    start: u32,
    len: u32,
) -> impl Iterator<Item = (FsBlock, u32)> {
    let end = start.saturating_add(len);
    let (log_group, log) = geometry.split_block(geometry.log_start);
    let (log, log_end) = match log_group == ag {
        true => (log.0, log.0.saturating_add(geometry.log_blocks)),
        false => (end, end),
    };
    let parts = [(start, end.min(log)), (start.max(log_end), end)];
    let parts = parts.into_iter().filter(|(start, end)| start < end);
    parts.map(move |(start, end)| (geometry.fs_block(ag, AgBlock(start)), end - start))
}
