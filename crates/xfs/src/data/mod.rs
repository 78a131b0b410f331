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
//! ```
//! # use undercroft_block::{BlockDevice, MemoryDevice};
//! # use undercroft_xfs::mkfs::{self, MkfsOptions};
//! use std::sync::Arc;
//! use undercroft_xfs::format::{FileType, Timestamp};
//! use undercroft_xfs::ops::{self, NewInode};
//! use undercroft_xfs::volume::LiveOptions;
//! use undercroft_xfs::{Error, Files, FilesOptions, Volume};
//!
//! # fn main() -> Result<(), Error> {
//! # let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
//! # let plan = mkfs::plan(&MkfsOptions::new(64 << 20, uuid::Uuid::from_u128(1)))?;
//! # let new = NewInode::new(FileType::Directory, 0o755);
//! # mkfs::finish(&mkfs::begin(&device, plan, &new)?, true)?;
//! let volume = Volume::open_live(device, &LiveOptions::default())?;
//! let files = Files::new(Arc::new(volume), &FilesOptions::default())?;
//! let root = files.volume().geometry().root_inode;
//!
//! // Three new files, each on its way to the device when the next is made.
//! let mut tickets = Vec::new();
//! for name in [b"one", b"two", b"six"] {
//!     let new = NewInode::new(FileType::Regular, 0o644);
//!     let number = ops::make(files.volume(), root, name, &new)?;
//!     let file = files.volume().inode(number)?;
//!     let content = Arc::new(b"some bytes".to_vec());
//!     files.write(&file, 0, &content, 0..content.len(), Timestamp::default())?;
//!     tickets.push(files.fsync(&file));
//! }
//! // Names and contents are durable; in a task each would be awaited.
//! for ticket in tickets {
//!     ticket.wait()?;
//! }
//! files.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/durable_files.rs` has callbacks, and shows what tickets are worth.
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
