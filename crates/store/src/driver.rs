//! The driver of a disk in a store, which is only read.

use crate::error::StoreError;
use crate::pool::Pool;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use undercroft_block::{
    Drive, Driver, Failure, Leaf, Limits, OpenError, Operation, QueueContext, QueueOptions,
    Request, SECTOR_SIZE, Sector, Synchronous,
};

/// Threads that wait for pieces.
const THREADS: usize = 16;
/// Longest request: a store answers one of many as quickly as one of few.
const MAX_REQUEST: u64 = 8 << 20;

/// A disk in a store as a device.
pub(crate) struct StoreDriver {
    pool: Arc<Pool>,
}

impl StoreDriver {
    /// Starts the device of a pool.
    pub(crate) fn start(
        pool: Pool,
        time_limit: Option<Duration>,
    ) -> Result<Leaf<Self>, StoreError> {
        let name = pool.origin().name().to_owned();
        let drive = Drive::Threads(THREADS);
        let options = QueueOptions { drive, time_limit, ..QueueOptions::default() };
        Leaf::start(Self { pool: Arc::new(pool) }, options)
            .map_err(|error| StoreError::local(format!("cannot open {name}"), &error))
    }

    fn transfer(&self, request: &mut Request) -> io::Result<()> {
        let (at, length) = (request.sector().0 * SECTOR_SIZE, request.length());
        match request.operation() {
            Operation::Read => Ok(self.pool.read(at, length, request.scatter())?),
            Operation::Flush => Ok(()),
            // The device says that it is only read.
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Drop for StoreDriver {
    fn drop(&mut self) {
        self.pool.close();
    }
}

impl Driver for StoreDriver {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        self.pool.origin().name()
    }

    fn capacity(&self) -> Sector {
        // A last part of a sector is nothing that a disk has.
        Sector(self.pool.origin().bytes() / SECTOR_SIZE)
    }

    fn limits(&self) -> Limits {
        Limits { max_request_bytes: MAX_REQUEST, ..Limits::default() }
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
