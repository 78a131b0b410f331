//! Blocks of directories as the journal has them: in parts, which are put together.

use rustc_hash::{FxHashMap, FxHashSet};
use undercroft_xfs_format::dir_layout::DirLayout;
use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{BufferItem, BufferItemFlags, BufferItemType, Geometry};

use crate::directory::{self, OldEntry};

/// Bytes of blocks that are kept.
const MOST_BYTES: usize = 64 << 20;

/// Blocks of directories, as far as the journal told of them so far.
#[derive(Default)]
pub(super) struct Directories {
    blocks: FxHashMap<u64, Vec<u8>>,
    bytes: usize,
    /// Entries that were handed over: block, place, inode.
    told: FxHashSet<(u64, usize, InodeNumber)>,
}

impl Directories {
    /// Takes the item of a buffer; hands over the entries in it that are new.
    pub(super) fn add(
        &mut self,
        geometry: &Geometry,
        lsn: Lsn,
        regions: &[Vec<u8>],
        visit: &mut impl FnMut(OldEntry),
    ) {
        let Some((first, data)) = regions.split_first() else { return };
        let Ok(item) = BufferItem::decode(first) else { return };
        let is_directory =
            matches!(item.buffer_type, BufferItemType::DirBlock | BufferItemType::DirData);
        let size = usize::from(item.sectors) * 512;
        let layout = DirLayout::new(geometry);
        // Blocks of several extents have several items, of which none is a whole block.
        if item.flags.contains(BufferItemFlags::CANCEL)
            || !is_directory
            || size != layout.block_size()
        {
            return;
        }
        if self.bytes + size > MOST_BYTES {
            self.blocks.clear();
            self.bytes = 0;
        }
        let sector = item.sector.0;
        let block = self.blocks.entry(sector).or_insert_with(|| {
            self.bytes += size;
            vec![0; size]
        });
        let before = directory::kind(geometry, block)
            .and_then(|kind| directory::owner(geometry, block, kind));
        let mut runs = Vec::new();
        for (run, bytes) in item.runs().zip(data) {
            let end = run.end.min(size).min(run.start + bytes.len());
            if run.start < end {
                block[run.start..end].copy_from_slice(&bytes[..end - run.start]);
                runs.push(run.start..end);
            }
        }
        let Some(kind) = directory::kind(geometry, block) else { return };
        let Some(parent) = directory::owner(geometry, block, kind) else { return };
        if before.is_some_and(|before| before != parent) {
            // The block has another owner: what was not logged now is not its own.
            clear_outside(block, &runs);
        }
        for at in runs.into_iter().flat_map(|run| run.step_by(8)) {
            if let Some(entry) = directory::whole_entry_at(block, layout, at)
                && self.told.insert((sector, at, entry.inode))
            {
                visit(OldEntry { parent, generation: None, lsn, entry });
            }
        }
    }
}

fn clear_outside(block: &mut [u8], runs: &[std::ops::Range<usize>]) {
    let mut at = 0;
    for run in runs {
        block[at..run.start.max(at)].fill(0);
        at = at.max(run.end);
    }
    block[at..].fill(0);
}
