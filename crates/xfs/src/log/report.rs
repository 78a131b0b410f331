//! The result of a replay.

use super::ends::Torn;
use crate::units::Lsn;

/// What recovery found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Position of the first record that was replayed.
    pub tail: Lsn,
    /// Position behind the last one.
    pub head: Lsn,
    /// Records that were replayed.
    pub records: u64,
    /// Transactions in them that were committed.
    pub transactions: u64,
    /// Items of these.
    pub items: u64,
    /// Blocks and clusters of inodes that were written.
    pub blocks: u64,
    /// The end of the journal that did not count, as a crash had cut it off.
    pub torn: Option<Torn>,
    /// Unfinished intents that were finished.
    pub intents: u64,
    /// Inodes without a name that were freed.
    pub unlinked: u64,
    /// Extents set aside for copy-on-write that were freed.
    pub cow_extents: u64,
    /// Changes of quota records were left out; quotas are to be counted anew.
    pub dropped_quotas: bool,
}
