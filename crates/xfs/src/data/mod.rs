//! Data of files in memory, on its way to the device.
//!
//! [`Files`] is a live volume with buffered writes: what is written stays in memory, block by block
//! (`dirty`), as part of its inode; readers of the inode see it. Space for it is promised when it is
//! written, and chosen when it is written back, for all that is dirty at a place at once. How much
//! may be dirty is a budget of bytes (`budget`); whoever writes takes a permit first, and when there
//! is none, writes back itself.
//!
//! An fsync is a ticket ([`Files::fsync`]). The thread of the journal takes all files whose tickets
//! wait, writes their data back under one plug, and makes it durable together with their mappings
//! and sizes by one checkpoint. While that is under way the next tickets gather: so a force is
//! immediate when nothing goes on, and covers the more the more is going on, without a timer.
//!
//! Locks, outer ones first: data of an inode, then those of the journal, then the queue of dirty
//! files. A thread that may hold bios back in a plug flushes it before it waits for any of them:
//! others may wait for these bios.

mod budget;
mod dirty;
mod files;
mod write;
mod write_back;

pub(crate) use dirty::{DirtyData, Run};
pub use files::{Files, FilesOptions};
pub(crate) use write_back::settle;
