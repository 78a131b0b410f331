//! Buffers that were freed: what was logged of them before must not be replayed over what took
//! their place (docs/format/journal/replay.md#cancelled-buffers).

use crate::format::{BufferItem, BufferItemFlags};
use rustc_hash::FxHashMap;
use undercroft_block::Sector;

/// How often each buffer will be freed in the transactions still to be replayed.
#[derive(Debug, Default)]
pub(super) struct Cancels {
    pending: FxHashMap<(Sector, u32), u32>,
}

impl Cancels {
    /// First pass: records an item that frees a buffer.
    pub(super) fn note(&mut self, item: &BufferItem) {
        if item.flags.contains(BufferItemFlags::CANCEL) {
            *self.pending.entry((item.sector, u32::from(item.sectors))).or_default() += 1;
        }
    }

    /// Second pass: the item that frees a buffer was reached.
    pub(super) fn reach(&mut self, item: &BufferItem) {
        let key = (item.sector, u32::from(item.sectors));
        if let Some(count) = self.pending.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.pending.remove(&key);
            }
        }
    }

    /// Second pass: whether a buffer, of just these sectors, will be freed later on.
    pub(super) fn will_free(&self, sector: Sector, sectors: u32) -> bool {
        self.pending.contains_key(&(sector, sectors))
    }
}
