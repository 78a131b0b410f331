//! The order of locks: a thread that holds one waits only for those behind it. Debug builds check
//! it (`undercroft-locks`), and releases with the feature `checked-locks`.
//!
//! Locks that are not here are leaves: under them no other is taken and nothing is waited for.

use std::sync::Once;

/// Data of files, by number.
pub(crate) const DATA: u8 = 0;
/// The turn of threads whose space waits for the journal.
pub(crate) const TURN: u8 = 1;
/// Moves between directories: no directory changes its place.
pub(crate) const MOVES: u8 = 2;
/// Blocks of files, by number.
pub(crate) const BLOCKS: u8 = 3;
/// The right to write the journal.
pub(crate) const WRITER: u8 = 4;
/// The gate of transactions: shared from begin to commit.
pub(crate) const GATE: u8 = 5;
/// Inodes, by number.
pub(crate) const INODE: u8 = 6;
/// Allocation groups, by number.
pub(crate) const GROUP: u8 = 7;
/// The open checkpoint.
pub(crate) const CHECKPOINT: u8 = 8;
/// The lists of files with something in memory.
pub(crate) const LISTS: u8 = 9;

const NAMES: &[&str] =
    &["data", "turn", "moves", "blocks", "writer", "gate", "inode", "group", "checkpoint", "lists"];

/// Gives the ranks names for messages.
pub(crate) fn name() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| undercroft_locks::name_ranks(NAMES));
}
