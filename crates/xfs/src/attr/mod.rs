//! Extended attributes: get, list, set, remove, in all forms of the attribute fork.
//!
//! Attributes live in the inode while they fit (short form), else in leaves under a hash tree, and
//! values that take most of a block in blocks of their own (docs/format/attributes.md). The
//! functions here work on a [`DaFork`](crate::da::DaFork) that is an attribute fork; its
//! transaction and locks are the caller's. A change is complete within one transaction, so no entry
//! is ever left incomplete; incomplete entries of other writers are skipped. A function that fails
//! may have changed the fork: its transaction must be cancelled.

mod change;
mod entry;
pub(crate) mod fork_offset;
mod leaves;
pub(crate) mod parent;
mod read;
mod remote;
mod shape;

#[cfg(test)]
mod foreign_tests;
#[cfg(test)]
pub(crate) mod memory_fork;
#[cfg(test)]
mod tests;

pub use change::SetMode;
pub(crate) use change::abandon;
pub(crate) use change::{finish_removal, remove, set, set_all, verify_all};
pub(crate) use entry::Attribute;
pub(crate) use read::{for_each, get};
pub(crate) use shape::local_size;
