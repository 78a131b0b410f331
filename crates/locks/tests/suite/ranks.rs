//! Ranks with names, and the message of a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use undercroft_locks::name_ranks;

pub(crate) const INODE: u8 = 0;
pub(crate) const GROUP: u8 = 1;
pub(crate) const JOURNAL: u8 = 2;

/// The message of the panic that the locks taken by `work` must cause.
pub(crate) fn broken<R>(take: impl FnOnce() -> R) -> String {
    name_ranks(&["inode", "group", "journal"]);
    let panic = catch_unwind(AssertUnwindSafe(|| drop(take())));
    *panic.expect_err("out of order").downcast().expect("a message")
}

/// A line as messages have it.
pub(crate) fn here(file: &str, line: u32) -> String {
    format!("{file}:{line}:")
}
