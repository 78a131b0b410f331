//! A device with sectors that cannot be read: they hold zeroes for the repair, so that what is there counts as
//! damaged, and is written anew.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use undercroft_block::{
    BlockDevice, Drive, Driver, Failure, Leaf, OpenError, Operation, QueueContext, QueueOptions,
    Reason, Request, Sector, Synchronous, read_exact_at,
};

/// Sectors that may be unreadable: more are a disk that fails as a whole.
const MOST: usize = 1 << 16;

/// The device below, which is only read.
pub(crate) struct Legible {
    below: Arc<dyn BlockDevice>,
    unreadable: Unreadable,
}

/// Sectors that could not be read, as they were met.
pub(crate) type Unreadable = Arc<Mutex<BTreeSet<u64>>>;

impl Legible {
    /// The device, and the sectors that cannot be read.
    pub(crate) fn over(
        below: Arc<dyn BlockDevice>,
    ) -> Result<(Arc<dyn BlockDevice>, Unreadable), OpenError> {
        let unreadable = Unreadable::default();
        let driver = Self { below, unreadable: Arc::clone(&unreadable) };
        let options = QueueOptions { drive: Drive::Inline, ..QueueOptions::default() };
        Ok((Arc::new(Leaf::start(driver, options)?), unreadable))
    }

    /// Reads sectors; those that cannot be read are zeroes.
    fn read(&self, first: u64, bytes: &mut [u8]) -> Result<(), Failure> {
        if read_exact_at(self.below.as_ref(), Sector(first), bytes).is_ok() {
            return Ok(());
        }
        for (sector, part) in (first..).zip(bytes.chunks_mut(512)) {
            if read_exact_at(self.below.as_ref(), Sector(sector), part).is_err() {
                part.fill(0);
                let mut unreadable = self.unreadable.lock();
                unreadable.insert(sector);
                if unreadable.len() > MOST {
                    let what = "too many sectors cannot be read: copy the disk first";
                    return Err(Reason::Io(Arc::new(io::Error::other(what))).into());
                }
            }
        }
        Ok(())
    }
}

impl Driver for Legible {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        self.below.name()
    }

    fn capacity(&self) -> Sector {
        self.below.capacity()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        if request.operation() != Operation::Read {
            return Some(Err(Reason::ReadOnly.into()));
        }
        let mut at = request.sector().0;
        for piece in request.scatter() {
            if let Err(failure) = self.read(at, piece) {
                return Some(Err(failure));
            }
            at += (piece.len() / 512) as u64;
        }
        Some(Ok(()))
    }
}
