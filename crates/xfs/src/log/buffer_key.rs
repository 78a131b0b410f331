//! The name of a buffer in a checkpoint.

use undercroft_block::Sector;

/// First sector and length in sectors of a metadata buffer: its name in the journal.
pub(crate) type BufferKey = (Sector, u32);
