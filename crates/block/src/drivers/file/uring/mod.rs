//! The file driver on io_uring: one ring for each driver queue, many requests under way at a time.
//!
//! The ring knows the file and the memory of a registrable pool, so the kernel looks neither up.
//! Everything that a queue started goes out in one system call, the same that collects what ended.

mod command;
mod queue;
mod ring;

use std::fs::File;
use std::io;
use std::sync::Arc;

pub(super) use queue::UringQueue;

use super::open::OpenFile;
use super::{transfer, unwaiting};
use crate::driver::{Driver, OpenError, QueueContext};
use crate::memory::BufferPool;
use crate::request::{Failure, Request};
use crate::units::{Limits, Sector};

/// Moves bytes with rings.
pub(crate) struct UringDriver {
    pub(super) file: Arc<OpenFile>,
    /// Asks the device for completions, instead of waiting for interrupts.
    pub(super) polled: bool,
    /// What to register.
    pub(super) pool: Option<BufferPool>,
}

/// Opens a ring and closes it, to see whether that is allowed.
pub(super) fn try_out(polled: bool) -> io::Result<()> {
    ring::Ring::open(1, polled).map(drop)
}

impl Driver for UringDriver {
    type Queue = UringQueue;

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

    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<UringQueue, OpenError> {
        UringQueue::open(self, context)
            .map_err(|source| OpenError::Ring { name: self.file.name().to_owned(), source })
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
