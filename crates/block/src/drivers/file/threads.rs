//! The file driver on threads: blocking system calls in the threads of the queue.
//!
//! Works everywhere. With large requests it is as fast as the kernel copies into its page cache.

use std::fs::File;
use std::sync::Arc;

use super::open::OpenFile;
use super::{transfer, unwaiting};
use crate::driver::{Driver, OpenError, QueueContext, Synchronous};
use crate::request::{Failure, Request};
use crate::units::{Limits, Sector};

/// Moves bytes with `preadv` and `pwritev`.
pub(super) struct ThreadsDriver {
    pub(super) file: Arc<OpenFile>,
}

impl Driver for ThreadsDriver {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        self.file.name()
    }

    fn capacity(&self) -> Sector {
        self.file.capacity()
    }

    fn limits(&self) -> Limits {
        self.file.limits()
    }

    fn is_read_only(&self) -> bool {
        self.file.is_read_only()
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        Some(transfer::execute(&self.file, request))
    }

    fn place(&self, request: &Request) -> Option<&Arc<File>> {
        unwaiting::place(&self.file, request)
    }

    fn splice_target(&self, sector: Sector, length: u64) -> Option<&File> {
        unwaiting::splice_target(&self.file, sector, length)
    }

    fn execute_unwaiting(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        unwaiting::execute(&self.file, request)
    }
}
