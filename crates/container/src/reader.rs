//! The driver of a disk that is only read.

use crate::disk::Disk;
use std::io;
use std::sync::Arc;
use undercroft_block::{
    Driver, Failure, OpenError, Operation, QueueContext, Request, SECTOR_SIZE, Sector, Synchronous,
};

/// A disk that is only read. Requests are done by the threads of the queue, several at a time.
pub(crate) struct Reader {
    pub(crate) name: String,
    pub(crate) disk: Box<dyn Disk>,
}

impl Reader {
    fn transfer(&self, request: &mut Request) -> io::Result<()> {
        let mut at = request.sector().0 * SECTOR_SIZE;
        match request.operation() {
            Operation::Read => request.scatter().try_for_each(|memory| {
                self.disk.read(at, memory)?;
                at += memory.len() as u64;
                Ok(())
            }),
            Operation::Flush => Ok(()),
            // The device says that it is only read.
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Driver for Reader {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        // A last part of a sector is nothing that a disk has.
        Sector(self.disk.bytes() / SECTOR_SIZE)
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        Some(self.transfer(request).map_err(Failure::from))
    }
}
