//! The driver of the volume in a container.

use super::cipher::Cipher;
use super::header::Segment;
use std::io;
use std::sync::Arc;
use undercroft_block::{
    BlockDevice, BlockError, Driver, Failure, Limits, OpenError, Operation, QueueContext, Request,
    SECTOR_SIZE, Sector, Synchronous, flush, read_buffer, write_all_at,
};

/// Bytes of zeroes that are encrypted at once.
const PIECE: u64 = 256 << 10;

/// Encrypts what is written to a device, and decrypts what is read from it, in the threads of its queue.
pub(super) struct LuksDriver {
    below: Arc<dyn BlockDevice>,
    name: String,
    cipher: Cipher,
    sector_bytes: u64,
    first_number: u64,
}

impl LuksDriver {
    pub(super) fn new(below: Arc<dyn BlockDevice>, cipher: Cipher, segment: &Segment) -> Self {
        let name = format!("{} (decrypted)", below.name());
        let (sector_bytes, first_number) = (segment.sector_bytes, segment.first_number);
        Self { below, name, cipher, sector_bytes, first_number }
    }

    fn transfer(&self, request: &mut Request) -> Result<(), Failure> {
        let (sector, length) = (request.sector(), request.length());
        match request.operation() {
            Operation::Read => {
                let mut read =
                    read_buffer(&*self.below, sector, length as usize).map_err(failure)?;
                self.cipher.decrypt(&mut read, self.sector_bytes as usize, self.number(sector));
                let mut rest = &read[..];
                for memory in request.scatter() {
                    let (front, behind) = rest.split_at(memory.len());
                    memory.copy_from_slice(front);
                    rest = behind;
                }
            }
            Operation::Write => {
                let mut bytes = Vec::with_capacity(length as usize);
                request.gather().for_each(|piece| bytes.extend_from_slice(piece));
                self.write(sector, bytes)?;
            }
            Operation::WriteZeroes => {
                for at in (0..length).step_by(PIECE as usize) {
                    let piece = vec![0; (length - at).min(PIECE) as usize];
                    self.write(Sector(sector.0 + at / SECTOR_SIZE), piece)?;
                }
            }
            // What is free would show from outside: the kernel does not either, unless it is asked to.
            Operation::Discard => {}
            Operation::Flush => return flush(&*self.below).map_err(failure),
            // The limits say that there are none.
            Operation::CloneRange => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        }
        if request.is_force_unit_access() { flush(&*self.below).map_err(failure) } else { Ok(()) }
    }

    fn write(&self, sector: Sector, mut bytes: Vec<u8>) -> Result<(), Failure> {
        self.cipher.encrypt(&mut bytes, self.sector_bytes as usize, self.number(sector));
        write_all_at(&*self.below, sector, &bytes).map_err(failure)
    }

    /// The number that goes into the encryption of a sector.
    fn number(&self, sector: Sector) -> u64 {
        self.first_number.wrapping_add(sector.0)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where errors are mapped")]
fn failure(error: BlockError) -> Failure {
    Failure::from(error.reason.clone())
}

impl Driver for LuksDriver {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        let (sectors, unit) = (self.below.capacity().0, self.sector_bytes / SECTOR_SIZE);
        Sector(sectors - sectors % unit)
    }

    fn limits(&self) -> Limits {
        let below = self.below.limits();
        let block_bytes = below.block_bytes.max(self.sector_bytes);
        Limits { block_bytes, max_request_bytes: below.max_request_bytes, ..Limits::default() }
    }

    fn is_read_only(&self) -> bool {
        self.below.is_read_only()
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        Some(self.transfer(request))
    }
}
