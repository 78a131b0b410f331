//! XFS file systems in user space: the real on-disk format, read and written without a kernel.
//!
//! A volume lives on a [`BlockDevice`](undercroft_block::BlockDevice): a file, memory, a window of
//! a larger device. [`Volume::open`] opens one for reading; [`mkfs::begin`] and [`mkfs::finish`]
//! frame the making of a new one, which the operations in [`ops`] fill in between.
//! [`check::check`] verifies a whole volume.
//!
//! ```
//! use std::sync::Arc;
//! use undercroft_block::{BlockDevice, MemoryDevice};
//! use undercroft_xfs::format::FileType;
//! use undercroft_xfs::mkfs::{self, MkfsOptions};
//! use undercroft_xfs::ops::{self, NewInode, Position};
//! use undercroft_xfs::{Error, Volume};
//! use uuid::Uuid;
//!
//! # fn main() -> Result<(), Error> {
//! let size = 64 << 20;
//! let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
//! let directory = NewInode::new(FileType::Directory, 0o755);
//!
//! // A new volume with one directory in it. Every operation is part of a transaction.
//! let plan = mkfs::plan(&MkfsOptions::new(size, Uuid::from_u128(1)))?;
//! let volume = mkfs::begin(&device, plan, &directory)?;
//! let mut transaction = volume.begin()?;
//! let mut root = volume.lock_inode(volume.geometry().root_inode)?;
//! let mut etc = ops::create(&mut transaction, &mut root, b"etc", &directory)?;
//! transaction.commit(&mut [&mut root, &mut etc])?;
//! drop((root, etc));
//! mkfs::finish(&volume, false)?;
//!
//! // Opened again and listed.
//! let volume = Volume::open(device)?;
//! let root = volume.inode(volume.geometry().root_inode)?;
//! let mut names = Vec::new();
//! ops::entries(&volume, &root.read(), Position::START, |entry| {
//!     names.push(entry.name.to_vec());
//!     true
//! })?;
//! assert_eq!(names, [b"etc"]);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
// Parts of the engine are public for those who ask for the internals.
#![cfg_attr(
    not(feature = "internals"),
    allow(unreachable_pub, reason = "the same items are public with internals")
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each imports only from floors above it in this list, which
// `cargo xtask test` checks. Items without a page in the documentation are the engine's.

// Ground: errors, places on the device, the order of locks, tables with locks of their own.
mod address;
mod busy;
mod error;
mod rank;

// What is read ahead of its use.
mod read_ahead;

// Buffers of metadata; changes under way; free space counted, reserved, asked for.
mod cache;
mod changes;
mod poison;
mod space;

// Structures over buffers: trees, groups, the journal. For experiments: another near search.
mod btree;
mod da;
#[cfg_attr(not(feature = "internals"), expect(dead_code, reason = "searches call these steps"))]
mod experiments;
mod group;
mod log;

// Structures over hash trees.
mod attr;
mod dir;
mod symlink;

// Inodes in memory.
pub mod inode;

// An open volume: all of the above.
pub mod volume;

// Changes as transactions.
mod trans;

// Trees of a group, open in a transaction.
mod group_tree;

// Extents taken from the free space, and given back.
mod alloc;

// Inodes and shared blocks.
mod inode_allocation;
mod refcount;

// Mapping of the blocks of files.
mod bmap;

// What only a look at all inodes tells.
mod scan;

// Files in use.
mod file;

// Operations.
pub mod ops;

// Volumes as a whole: made, replayed.
pub mod mkfs;

// A journal becomes part of the volume.
pub mod recovery;

// Volumes opened, grown, shrunk, renamed.
pub mod maintain;
mod open;

// Readers of whole volumes.
pub mod check;
pub mod frag;
mod tree_ahead;

pub use error::{Error, ErrorKind, TreeCorruption};
pub use file::{OpenFile, ReadPattern, ReadTicket, WriteTerms};
pub use log::SyncTicket;
pub use trans::Transaction;
pub use tree_ahead::{TreeAhead, WalkOrder};
pub use undercroft_xfs_format as format;
pub use undercroft_xfs_format::{Geometry, units};
use undercroft_xfs_format::{bytes, geometry};
pub use volume::Volume;

/// Parts of the engine, for experiments with them and for the tests of this project. They are not
/// stable: each version may change them.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    /// Extent allocation.
    pub mod alloc {
        pub use crate::alloc::*;
    }
    /// Searches in the place of near mode.
    pub mod experiments {
        pub use crate::experiments::*;
    }
    /// Mapping of file blocks.
    pub mod bmap {
        pub use crate::bmap::*;
    }
    /// Trees.
    pub mod btree {
        pub use crate::btree::*;
    }
    /// Directories.
    pub mod dir {
        pub use crate::dir::*;
    }
    /// Trees of a group.
    pub mod group_tree {
        pub use crate::group_tree::*;
    }
    pub use crate::space::Pool;
}
