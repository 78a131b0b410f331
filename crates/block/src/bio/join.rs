//! Where the parts of a bio meet: the answers of all of them, and then the whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::error::BlockError;
use crate::memory::{Buffer, gather};
use crate::units::Sector;

/// Where the parts of `Whole` meet.
pub(super) struct Join<Whole> {
    /// Parts not yet answered.
    outstanding: AtomicUsize,
    gathered: Mutex<Gathered<Whole>>,
}

struct Gathered<Whole> {
    /// The whole without its memory; taken when it is answered.
    whole: Option<Whole>,
    buffers: Parts,
    first_error: Option<BlockError>,
}

/// The buffers of the parts of a read with their sectors, in the order in which they came back.
pub(super) type Parts = SmallVec<[(Sector, Buffer); 4]>;

impl<Whole> Join<Whole> {
    /// For two parts of `whole`, which has no memory.
    pub(super) fn of_two(whole: Whole) -> Arc<Self> {
        let gathered = Gathered { whole: Some(whole), buffers: Parts::new(), first_error: None };
        Arc::new(Self { outstanding: AtomicUsize::new(2), gathered: Mutex::new(gathered) })
    }

    /// Counts one more part, beside one that was not answered.
    pub(super) fn add(&self) {
        // Relaxed: a part was not answered, so the count is not zero.
        self.outstanding.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the answer of a part. After the last one: the whole, the buffers, and the first error.
    pub(super) fn answered(
        &self,
        buffer: Option<(Sector, Buffer)>,
        result: Result<(), BlockError>,
    ) -> Option<(Whole, Parts, Result<(), BlockError>)> {
        if buffer.is_some() || result.is_err() {
            let mut gathered = self.gathered.lock();
            gathered.buffers.extend(buffer);
            if let Err(error) = result {
                gathered.first_error.get_or_insert(error);
            }
        }
        // Release: what this part did happens before the answer. Acquire: the answer sees it.
        if self.outstanding.fetch_sub(1, Ordering::AcqRel) != 1 {
            return None;
        }
        let mut gathered = self.gathered.lock();
        let whole = gathered.whole.take()?;
        let buffers = std::mem::take(&mut gathered.buffers);
        Some((whole, buffers, gathered.first_error.take().map_or(Ok(()), Err)))
    }
}

/// The buffer of `length` bytes that `parts` were cut out of; `None` if some did not come back. Parts
/// that are in other memory, because a device below had to take some, are copied.
pub(super) fn rejoined(mut parts: Parts, length: u64) -> Option<Buffer> {
    if parts.iter().map(|(_, part)| part.len() as u64).sum::<u64>() < length {
        return None;
    }
    parts.sort_unstable_by_key(|(sector, _)| *sector);
    let mut parts = parts.into_iter().map(|(_, part)| part);
    let mut whole = parts.next()?;
    while let Some(part) = parts.next() {
        if let Err(part) = whole.rejoin(part) {
            // As long as the bio that was cut.
            let mut copy = Buffer::zeroed(length as usize);
            let pieces: SmallVec<[Buffer; 4]> = [whole, part].into_iter().chain(parts).collect();
            gather(pieces.iter().map(|piece| &piece[..]), &mut copy);
            return Some(copy);
        }
    }
    Some(whole)
}
