//! A disk as a crash left it, to be repaired and looked at.

use std::sync::Arc;

use parking_lot::RwLock;
use rustix::io::Errno;

use super::contents::Contents;
use crate::bio::Operation;
use crate::driver::{Driver, OpenError, QueueContext, Synchronous};
use crate::queue::{Drive, Leaf, QueueOptions};
use crate::request::{Failure, Request};
use crate::units::{SECTOR_SIZE, Sector};

/// A device in memory that shares unchanged pieces with the recording it is from.
pub type CrashDisk = Leaf<CrashDriver>;

/// The contents of a [`CrashDisk`].
pub struct CrashDriver {
    capacity: Sector,
    contents: RwLock<Contents>,
}

impl CrashDisk {
    pub(super) fn holding(contents: Contents, capacity: Sector) -> Self {
        let driver = CrashDriver { capacity, contents: RwLock::new(contents) };
        let options = QueueOptions { drive: Drive::Inline, ..QueueOptions::default() };
        Self::start(driver, options)
            .expect("neither a thread nor anything of the operating system is needed")
    }
}

impl Driver for CrashDriver {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        "disk after a crash"
    }

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        match request.operation() {
            Operation::Read => self.read(request),
            Operation::Write => self.write(request),
            Operation::Discard | Operation::WriteZeroes => {
                self.contents.write().zero(request.sectors());
            }
            Operation::CloneRange => return Some(Err(Errno::OPNOTSUPP.into())),
            Operation::Flush => {}
        }
        Some(Ok(()))
    }
}

impl CrashDriver {
    fn read(&self, request: &mut Request) {
        let mut at = request.sector().0 * SECTOR_SIZE;
        let contents = self.contents.read();
        for piece in request.scatter() {
            contents.read(at, piece);
            at += piece.len() as u64;
        }
    }

    fn write(&self, request: &Request) {
        let mut at = request.sector().0 * SECTOR_SIZE;
        let mut contents = self.contents.write();
        for piece in request.gather() {
            contents.write(at, piece);
            at += piece.len() as u64;
        }
    }
}
