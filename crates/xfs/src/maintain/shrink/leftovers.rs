//! Blocks of the journal that are not in use: a crash left them while it moved.
//!
//! A shrink takes its new place before the superblock names it, and frees the old one afterwards.
//! Reverse mappings say that both are the journal's. Without them such blocks belong to nobody; they
//! are told by their number, that of the journal's blocks.

use super::journal;
use super::size::{GroupPart, Size};
use super::unowned;
use crate::error::Error;
use crate::format::RmapOwner;
use crate::geometry::Geometry;
use crate::group_tree::owners;
use crate::units::{AgBlock, AgNumber, FsBlock};
use crate::volume::Volume;
use std::ops::ControlFlow;

/// The first and the number of blocks of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leftovers(Vec<(FsBlock, u32)>);

impl Leftovers {
    /// # Errors
    /// A structure is damaged; the device failed.
    pub(super) fn of(volume: &Volume) -> Result<Self, Error> {
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
        } else if journal::can_move(geometry) {
            unowned::for_each(volume, &mut |GroupPart { ag, start, len }| {
                if len == geometry.log_blocks {
                    found.push((geometry.fs_block(ag, AgBlock(start)), len));
                }
            })?;
        }
        Ok(Self(found))
    }

    /// A place for the journal in what stays.
    pub(super) fn place(&self, geometry: &Geometry, size: Size) -> Option<FsBlock> {
        self.index_of_place(geometry, size).map(|index| self.0[index].0)
    }

    /// As [`place`](Self::place); it is none of these any more.
    pub(super) fn take_place(&mut self, geometry: &Geometry, size: Size) -> Option<FsBlock> {
        self.index_of_place(geometry, size).map(|index| self.0.swap_remove(index).0)
    }

    fn index_of_place(&self, geometry: &Geometry, size: Size) -> Option<usize> {
        self.0.iter().position(|(start, len)| {
            let (ag, block) = geometry.split_block(*start);
            let end = u64::from(block.0) + u64::from(*len);
            let stays = ag <= size.last_group() && end <= size.length(geometry, ag).into();
            // The first group is no place for it.
            ag.0 > 0 && stays && *len == geometry.log_blocks
        })
    }

    /// Blocks in the first `length` of a group.
    pub(super) fn blocks_in(&self, geometry: &Geometry, ag: AgNumber, length: u32) -> u64 {
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
    pub(super) fn free(&self, volume: &Volume) -> Result<(), Error> {
        self.0.iter().try_for_each(|(start, len)| journal::free(volume, *start, *len))
    }
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
