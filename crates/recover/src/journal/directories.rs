//! Entries in blocks of directories, as the journal has them.

use rustc_hash::FxHashSet;
use undercroft_xfs_format::dir_layout::DirLayout;
use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{BufferItem, Geometry};

use super::buffers::Buffers;
use crate::directory::{self, OldEntry};

/// Blocks of directories.
#[derive(Default)]
pub(super) struct Directories {
    blocks: Buffers,
    /// Entries that were handed over: block, place, inode, and whether they were removed.
    told: FxHashSet<(u64, usize, InodeNumber, bool)>,
}

impl Directories {
    /// Takes the item of a block; hands over the entries in it that are new, or newly removed.
    pub(super) fn add(
        &mut self,
        geometry: &Geometry,
        lsn: Lsn,
        (item, data): (&BufferItem, &[&[u8]]),
        visit: &mut impl FnMut(OldEntry),
    ) {
        let layout = DirLayout::new(geometry);
        let owner = |block: &[u8]| {
            let kind = directory::kind(geometry, block)?;
            directory::owner(geometry, block, kind).map(|owner| owner.0)
        };
        let logged = self.blocks.add(item, data, layout.block_size(), owner);
        let Some(logged) = logged else { return };
        let Some(parent) = owner(logged.block).map(InodeNumber) else { return };
        for at in logged.runs.into_iter().flat_map(|run| run.step_by(8)) {
            let entry = directory::whole_entry_at(logged.block, layout, at)
                .or_else(|| directory::gone_entry_at(logged.block, layout, at));
            if let Some(entry) = entry
                && self.told.insert((logged.sector, at, entry.inode, entry.is_removed))
            {
                visit(OldEntry { parent, generation: None, lsn, entry });
            }
        }
    }
}
