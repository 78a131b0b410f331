//! The driver of the disk in a file.

use crate::header::Image;
use parking_lot::RwLock;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use undercroft_block::{
    Driver, Failure, OpenError, Operation, QueueContext, Request, SECTOR_SIZE, Sector, Synchronous,
};

static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

/// The disk in a file of a format of its own. Requests are done by the threads of the queue, several at
/// a time.
pub(crate) struct ContainerDriver {
    name: String,
    capacity: Sector,
    read_only: bool,
    /// Clusters are given back by one thread alone: others may be reading what is in them.
    image: RwLock<Image>,
}

impl ContainerDriver {
    /// Of a disk that is not used otherwise.
    pub(crate) fn new(name: String, image: Image, read_only: bool) -> Self {
        // A last part of a sector is nothing that a disk has.
        let capacity = Sector(image.size() / SECTOR_SIZE);
        Self { name, capacity, read_only, image: RwLock::new(image) }
    }

    fn transfer(&self, request: &mut Request) -> io::Result<()> {
        let (offset, length) = (request.sector().0 * SECTOR_SIZE, request.length());
        match request.operation() {
            Operation::Read => {
                let memory: Vec<_> = request.scatter().map(IoSliceMut::new).collect();
                return self.image.read().readv(memory.into(), offset);
            }
            Operation::Write => {
                let memory: Vec<_> = request.gather().map(IoSlice::new).collect();
                self.image.read().writev(memory.into(), offset)?;
            }
            Operation::WriteZeroes => self.zero(offset, length)?,
            Operation::Discard => match self.image.write().discard_to_zero(offset, length) {
                // Version 2 has no way to say it, and a discard is advice.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                done => done?,
            },
            Operation::Flush => return self.flush(),
            // The limits say that there are none.
            Operation::CloneRange => return Err(io::ErrorKind::Unsupported.into()),
        }
        if request.is_force_unit_access() { self.flush() } else { Ok(()) }
    }

    /// Makes a range read as zeroes: clusters are given back where the image has a way to say so.
    fn zero(&self, offset: u64, length: u64) -> io::Result<()> {
        match self.image.write().discard_to_zero(offset, length) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            done => return done,
        }
        let image = self.image.read();
        (0..length).step_by(ZEROES.len()).try_for_each(|done| {
            let piece = (length - done).min(ZEROES.len() as u64) as usize;
            image.write(&ZEROES[..piece], offset + done)
        })
    }

    fn flush(&self) -> io::Result<()> {
        let image = self.image.read();
        image.flush()?;
        image.sync()
    }
}

impl Driver for ContainerDriver {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        Some(self.transfer(request).map_err(Failure::from))
    }
}
