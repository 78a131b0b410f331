//! Removed files found again: the kernel's XFS makes, removes and overwrites, and what was there is
//! known.

mod history;
mod removed;
