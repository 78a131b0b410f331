//! Bytes of a buffer on their way.

use crate::address::BufferAddress;
use smallvec::SmallVec;
use std::sync::Arc;
use std::task::{Context, Poll};
use undercroft_block::{Bio, BlockError, Buffer, SharedRead, Waiter};

/// What brings the bytes of a buffer.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Reads of its parts.
    Parts(SmallVec<[Waiter; 1]>),
    /// A read of more, and the bytes of that before those of the buffer.
    Region(Arc<SharedRead>, usize),
}

/// A block that was read ahead.
pub(crate) struct Arrived {
    pub(crate) bytes: Vec<u8>,
    /// Evictions of its part of the table before it was read.
    pub(crate) evictions: u64,
}

impl Arrival {
    /// The reads of a buffer, into memory of these lengths, and what they bring.
    pub(crate) fn by_parts(
        address: &BufferAddress,
        memory: impl Fn(usize) -> Buffer,
    ) -> (SmallVec<[Bio; 1]>, Self) {
        let read = |(first, sectors): &(_, u32)| {
            Bio::read(*first, memory(*sectors as usize * 512)).waited()
        };
        let (bios, parts) = address.parts().iter().map(read).unzip();
        (bios, Self::Parts(parts))
    }

    /// Ready when all have arrived, or failed.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let is_pending = match self {
            Self::Parts(parts) => {
                let is_pending = |part: &Waiter| part.poll_complete(context).is_pending();
                parts.iter().any(is_pending)
            }
            Self::Region(region, _) => region.poll_complete(context).is_pending(),
        };
        if is_pending { Poll::Pending } else { Poll::Ready(()) }
    }

    /// The bytes, `len` in all, once they have arrived.
    ///
    /// # Errors
    /// A read failed; one of a region may have for another buffer in it.
    pub(crate) fn wait(self, len: usize) -> Result<Vec<u8>, BlockError> {
        match self {
            Self::Parts(parts) => {
                let mut bytes = Vec::with_capacity(len);
                for part in parts {
                    bytes.extend_from_slice(&part.wait().into_buffer()?);
                }
                Ok(bytes)
            }
            Self::Region(region, skipped) => {
                let memory = region.wait().map_err(Clone::clone)?;
                Ok(memory[skipped..skipped + len].to_vec())
            }
        }
    }
}
