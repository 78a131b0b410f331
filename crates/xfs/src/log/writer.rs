//! Where the journal is written: what its one writer at a time knows.

use super::dirty::DirtyList;
use crate::cache::WrittenBuffer;
use crate::units::Lsn;
use undercroft_block::Batch;

/// Where a journal goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalStart {
    /// Where the next record goes.
    pub(crate) position: Lsn,
    /// Block of the record before it; all ones if none.
    pub(crate) previous_block: u32,
    /// Where recovery starts until [`Journal::unpin`](super::Journal::unpin); `None` if nothing before `position` is
    /// needed.
    pub(crate) pinned: Option<Lsn>,
}

/// The state of the writer of the journal.
#[derive(Debug)]
pub(super) struct Writer {
    /// Where the next record goes.
    pub(super) position: Lsn,
    /// Tail that the last durable record published.
    pub(super) tail: Lsn,
    /// Recovery starts here for now, whatever is dirty: intents there are not done yet.
    pub(super) pinned: Option<Lsn>,
    pub(super) previous_block: u32,
    /// Number of the next transaction in the journal.
    pub(super) transaction: u32,
    /// Start of the last checkpoint, if there was one since the volume was clean.
    pub(super) last_start: Option<Lsn>,
    pub(super) dirty: DirtyList,
    /// Writes of buffers to their places that are not known to be durable.
    pub(super) in_place: Vec<(Batch, Vec<WrittenBuffer>)>,
    /// Something was written that only a flush makes durable.
    pub(super) unflushed: bool,
    /// Memory of the last records.
    pub(super) spare: Vec<u8>,
}

impl Writer {
    pub(super) fn new(start: &JournalStart, transaction: u32) -> Self {
        let JournalStart { position, pinned, previous_block } = *start;
        Self {
            position,
            tail: pinned.unwrap_or(position),
            pinned,
            previous_block,
            transaction,
            last_start: None,
            dirty: DirtyList::default(),
            in_place: Vec::new(),
            // An earlier writer of the device need not have flushed it.
            unflushed: true,
            spare: Vec::new(),
        }
    }
}
