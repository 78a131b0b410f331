//! Blocks that were decompressed lately.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Bytes that are kept.
const KEPT: usize = 16 << 20;

/// Blocks by their places in a file, those that were used last.
#[derive(Default)]
pub(crate) struct Blocks {
    kept: Mutex<VecDeque<(u64, Arc<Vec<u8>>)>>,
}

impl Blocks {
    /// The block at a place, made if it is not kept.
    pub(crate) fn get(
        &self,
        place: u64,
        make: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<Arc<Vec<u8>>> {
        if let Some(block) = self.find(place) {
            return Ok(block);
        }
        // Without the lock: others may be made meanwhile.
        let block = Arc::new(make()?);
        let mut kept = self.kept.lock();
        kept.push_front((place, Arc::clone(&block)));
        kept.truncate((KEPT / block.len().max(1)).max(1));
        Ok(block)
    }

    fn find(&self, place: u64) -> Option<Arc<Vec<u8>>> {
        let mut kept = self.kept.lock();
        let index = kept.iter().position(|(at, _)| *at == place)?;
        let found = kept.remove(index)?;
        let block = Arc::clone(&found.1);
        kept.push_front(found);
        Some(block)
    }
}
