//! How a bio ended, as its receiver is told.

use super::error::BlockError;
use super::file_range::FileRange;
use super::operation::Operation;
use crate::memory::Buffer;
use crate::units::Sector;

/// How a bio ended.
#[derive(Debug)]
pub struct Completion {
    /// The operation of the bio.
    pub operation: Operation,
    /// Its first sector, as the submitter gave it.
    pub sector: Sector,
    /// Whether it succeeded. After a failed write the sectors hold old, new or mixed contents.
    pub result: Result<(), BlockError>,
    /// The buffer of a read, filled if the read succeeded, unspecified contents if not. None after
    /// [`Reason::TimedOut`](crate::Reason::TimedOut): the driver may still write it.
    pub buffer: Option<Buffer>,
    /// Where the bytes of a read are, and its buffer has unspecified contents: only of one that may
    /// be answered [so](crate::Bio::by_place), and if it succeeded.
    pub place: Option<FileRange>,
}

impl Completion {
    /// The filled buffer of a successful read (empty for other operations), or the error.
    #[inline]
    pub fn into_buffer(self) -> Result<Buffer, BlockError> {
        match (self.result, self.buffer) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(buffer)) => Ok(buffer),
            (Ok(()), None) => Ok(Buffer::zeroed(0)),
        }
    }
}
