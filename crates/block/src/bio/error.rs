//! Why an operation on a device failed.

use std::io;
use std::ops::Deref;
use std::sync::Arc;

use rustix::io::Errno;
use thiserror::Error;

use super::operation::Operation;
use crate::units::Sector;

/// The failure of one bio, with the addresses its submitter used: dereferences to
/// [`FailedBio`].
///
/// Its text ends with the reason, which is no [`source`](std::error::Error::source) besides: it is
/// [a field](FailedBio::reason). As large as a pointer, so that what may fail does not cost more than
/// what cannot.
#[derive(Clone, Debug, Error)]
#[error(transparent)]
pub struct BlockError(Box<FailedBio>);

/// Which bio failed, and why.
#[derive(Clone, Debug, Error)]
#[error("{operation} of {length} bytes at sector {sector} of {device} failed: {reason}")]
pub struct FailedBio {
    /// Name of the device that refused or failed.
    pub device: Arc<str>,
    /// The operation asked for.
    pub operation: Operation,
    /// First sector of the bio, as its submitter gave it.
    pub sector: Sector,
    /// Length of the bio in bytes.
    pub length: u64,
    /// Why it failed.
    pub reason: Reason,
}

/// Why a bio failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Reason {
    /// It reaches beyond the device.
    #[error("the device ends at sector {capacity}; is the image truncated?")]
    OutOfRange {
        /// Sectors of the device.
        capacity: Sector,
    },
    /// Its length is not a whole number of sectors, or its memory not aligned as the device asks.
    #[error("length and memory must be multiples of {unit} bytes")]
    Misaligned {
        /// The unit that was missed, in bytes.
        unit: u64,
    },
    /// It would change a device that was opened for reading.
    #[error("the device is read-only; open it for writing")]
    ReadOnly,
    /// The operating system refused it.
    #[error(transparent)]
    Io(#[from] Arc<io::Error>),
    /// It was not done in the time that the device allows. Its outcome is not known: the driver was
    /// asked to stop it.
    #[error("it was not done in the time limit of the device")]
    TimedOut,
    /// The device was closed before it was done.
    #[error("the device was closed")]
    Closed,
    /// The driver dropped the request instead of ending it.
    #[error("the driver dropped the request, a defect in it or the end of its threads")]
    Dropped,
    /// The driver panicked in the threads that drive its queue, and takes no more.
    #[error("the driver panicked before; open the device anew")]
    Broken,
    /// A bio was dropped before anything answered it.
    #[error("it was dropped unanswered, a defect in its holder")]
    Abandoned,
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<Errno> for Reason {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

impl Deref for BlockError {
    type Target = FailedBio;

    fn deref(&self) -> &FailedBio {
        &self.0
    }
}

impl BlockError {
    #[cold]
    pub(crate) fn new(failed: FailedBio) -> Self {
        Self(Box::new(failed))
    }

    /// The same error, of a bio with these addresses.
    pub(crate) fn at(mut self, sector: Sector, length: u64) -> Self {
        (self.0.sector, self.0.length) = (sector, length);
        self
    }

    /// The error of the operating system behind this failure.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match &self.reason {
            Reason::Io(error) => Some(error),
            _ => None,
        }
    }

    /// Whether a clone of a range failed because this device, or the file systems of the two files,
    /// cannot do it, so that the bytes have to be written.
    #[must_use]
    pub fn cannot_clone(&self) -> bool {
        const REFUSALS: [Errno; 9] = [
            Errno::OPNOTSUPP,
            Errno::XDEV,
            Errno::INVAL,
            Errno::NOTTY,
            Errno::NOSYS,
            Errno::PERM,
            Errno::TXTBSY,
            Errno::BADF,
            Errno::ACCESS,
        ];
        self.operation == Operation::CloneRange
            && self.io_error().and_then(Errno::from_io_error).is_some_and(|e| REFUSALS.contains(&e))
    }

    /// Whether the file system that holds the image (or a quota on it) is full.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        self.io_error().is_some_and(|error| {
            matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn an_error_names_device_operation_place_and_reason() {
        let error = BlockError::new(FailedBio {
            device: "disk.img".into(),
            operation: Operation::Write,
            sector: Sector(8),
            length: 4096,
            reason: io::Error::from(io::ErrorKind::StorageFull).into(),
        });
        let text = "write of 4096 bytes at sector 8 of disk.img failed: no storage space";
        assert_eq!(error.to_string(), text);
        assert!(error.is_no_space());
        assert!(error.source().is_none(), "told twice by programs that print the chain");
    }
}
