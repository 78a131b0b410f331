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
//! use undercroft_xfs::dir::Position;
//! use undercroft_xfs::format::FileType;
//! use undercroft_xfs::mkfs::{self, MkfsOptions};
//! use undercroft_xfs::ops::{self, NewInode};
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

pub mod check;
pub mod dir;
pub mod error;
pub mod frag;
pub mod maintain;
pub mod mkfs;
pub mod ops;
pub mod recovery;
pub mod volume;

// The parts that the engine is made of. The laboratory, the checks and the tests of this project
// reach them; they are not in the documentation and promise nothing: each version may change them.
#[doc(hidden)]
pub mod alloc;
#[doc(hidden)]
pub mod attr;
#[doc(hidden)]
pub mod bmap;
#[doc(hidden)]
pub mod btree;
#[doc(hidden)]
pub mod busy;
#[doc(hidden)]
pub mod cache;
#[doc(hidden)]
pub mod da;
#[doc(hidden)]
pub mod group;
#[doc(hidden)]
pub mod group_tree;
#[doc(hidden)]
pub mod inode;
#[doc(hidden)]
pub mod inode_allocation;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod refcount;
#[doc(hidden)]
pub mod space;
#[doc(hidden)]
pub mod symlink;
#[doc(hidden)]
pub mod trans;

mod file;
mod open;
mod poison;
mod rank;

pub use error::{Error, ErrorKind};
pub use file::OpenFile;
pub use log::SyncTicket;
pub use undercroft_xfs_format as format;
pub use undercroft_xfs_format::{Geometry, units};
#[doc(hidden)]
pub use undercroft_xfs_format::{bytes, geometry};
pub use volume::Volume;
