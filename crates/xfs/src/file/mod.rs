//! Files in use: reading, writing through memory, and durability.
//!
//! An [`OpenFile`] is one opening of a file. The state of the file in memory is the inode's
//! (`inode/memory`), shared by all its openings: dirty data, the space reserved for it, space
//! ahead. When the last opening is dropped, space ahead is given back, and a file without a name is
//! freed. [`DirtyFiles`] are the files of a volume that have something to be written back; the
//! thread of the journal asks them for it, and they never ask the journal.
//!
//! Written data stays in memory, block by block, until it is written back; readers see it. Space
//! for it is reserved when it is written, and chosen when it is written back, for all that is dirty
//! at a place at once. How much may be dirty is a budget of bytes; a writer takes a permit first,
//! and when there is none, writes back itself.
//!
//! An fsync is a ticket ([`OpenFile::fsync`]). The thread of the journal takes all files whose
//! tickets wait, writes their data back under one plug, and makes it durable together with their
//! mappings and sizes by one checkpoint. While that is under way the next tickets gather: so a
//! force is immediate when nothing goes on, and covers the more the more is going on, without a
//! timer.
//!
//! ```
//! # use undercroft_block::{BlockDevice, MemoryDevice};
//! # use undercroft_xfs::mkfs::{self, MkfsOptions};
//! use std::sync::Arc;
//! use undercroft_xfs::format::{FileType, Timestamp};
//! use undercroft_xfs::ops::{self, NewInode};
//! use undercroft_xfs::volume::LiveOptions;
//! use undercroft_xfs::{Error, OpenFile, Volume};
//!
//! # fn main() -> Result<(), Error> {
//! # let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
//! # let plan = mkfs::plan(&MkfsOptions::new(64 << 20, uuid::Uuid::from_u128(1)))?;
//! # let new = NewInode::new(FileType::Directory, 0o755);
//! # mkfs::finish(&mkfs::begin(&device, plan, &new)?, true)?;
//! let volume = Arc::new(Volume::open_live(device, &LiveOptions::default())?);
//! let root = volume.geometry().root_inode;
//!
//! // Three new files, each on its way to the device when the next is made.
//! let mut tickets = Vec::new();
//! for name in [b"one", b"two", b"six"] {
//!     let new = NewInode::new(FileType::Regular, 0o644);
//!     let file = OpenFile::open(&volume, ops::make(&volume, root, name, &new)?)?;
//!     file.write(0, b"some bytes", Timestamp::default())?;
//!     tickets.push(file.fsync());
//! }
//! // Names and contents are durable; in a task each would be awaited.
//! for ticket in tickets {
//!     ticket.wait()?;
//! }
//! volume.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Locks, outer ones first: data of an inode, the turn of those whose space waits, its blocks, those of the journal and of inodes and
//! groups, then the lists of files, under which nothing else is locked. A thread that may hold
//! bios back in a plug flushes it before it waits for any of them: others may wait for these bios.

mod access;
mod buffered_write;
mod change;
mod close;
mod dirty_files;
mod durable;
mod edit;
mod kind;
mod lend;
mod open;
mod read;
mod read_ahead;
mod read_ticket;
mod reclaim;
mod seek;
mod space;
mod stored_parts;
mod sync;
mod write_back;
mod write_back_end;

pub use crate::read_ahead::ReadPattern;
pub use buffered_write::WriteTerms;
pub use edit::{CloneRange, Size};
pub use open::OpenFile;
pub use read::{data_ranges, read_link};
pub use read_ticket::ReadTicket;
pub(crate) use reclaim::{first_orphan, free_now, free_orphans, groups, is_small, reclaim};
pub(crate) use space::{when_free, with_gathered};

/// Largest file of the format in bytes: 2^63 - 1.
pub(crate) const MAX_FILE_SIZE: u64 = i64::MAX as u64;
