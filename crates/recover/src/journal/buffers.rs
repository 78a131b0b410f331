//! Blocks as the journal has them: in parts, which are put together.

use std::ops::Range;

use rustc_hash::FxHashMap;
use undercroft_xfs_format::{BufferItem, BufferItemFlags};

/// Bytes of blocks that are kept.
const MOST_BYTES: usize = 64 << 20;

/// Blocks of one kind, as far as the journal told of them so far.
#[derive(Default)]
pub(super) struct Buffers {
    blocks: FxHashMap<u64, Vec<u8>>,
    bytes: usize,
}

/// A block behind one of its items.
pub(super) struct Logged<'b> {
    pub(super) sector: u64,
    pub(super) block: &'b [u8],
    /// The parts that were logged now.
    pub(super) runs: Vec<Range<usize>>,
}

impl Buffers {
    /// Takes the item of a buffer of `size` bytes. Where its owner, by `owner`, is another one now, the
    /// block holds nothing but what was logged now.
    pub(super) fn add(
        &mut self,
        item: &BufferItem,
        data: &[&[u8]],
        size: usize,
        owner: impl Fn(&[u8]) -> Option<u64>,
    ) -> Option<Logged<'_>> {
        // Blocks of several extents have several items, of which none is a whole block.
        let is_whole = usize::from(item.sectors) * 512 == size;
        if item.flags.contains(BufferItemFlags::CANCEL) || !is_whole {
            return None;
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
        let before = owner(block);
        let mut runs = Vec::new();
        for (run, bytes) in item.runs().zip(data) {
            let end = run.end.min(size).min(run.start + bytes.len());
            if run.start < end {
                block[run.start..end].copy_from_slice(&bytes[..end - run.start]);
                runs.push(run.start..end);
            }
        }
        if before.is_some() && before != owner(block) {
            clear_outside(block, &runs);
        }
        Some(Logged { sector, block, runs })
    }
}

fn clear_outside(block: &mut [u8], runs: &[Range<usize>]) {
    let mut at = 0;
    for run in runs {
        block[at..run.start.max(at)].fill(0);
        at = at.max(run.end);
    }
    block[at..].fill(0);
}
