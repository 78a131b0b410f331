//! One allocation group in memory: its headers, its lock, its free list, and its summary, which is
//! read without the lock.
//!
//! The lock of a group guards everything in it: headers, all AG-rooted trees, the free list
//! (docs/decisions/locks.md#order-of-locks). It is the guard of [`GroupState`]; a transaction keeps it
//! to its end. The trees are in `group_tree`.

mod base;
mod guard;
mod last_pick;
mod recent;
mod reserved;
mod state;
mod summary;
mod usable;

pub(crate) use base::GroupBase;
pub(crate) use guard::Group;
pub(crate) use guard::GroupGuard;
pub(crate) use last_pick::Pick;
pub use reserved::Reserved;
pub(crate) use state::GroupState;
pub(crate) use summary::GroupSummary;
pub(crate) use usable::{free_list_needed, longest_within, max_usable};
