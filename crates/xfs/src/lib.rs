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

pub mod ag;
pub mod alloc;
pub mod attr;
pub mod bmap;
pub mod btree;
pub mod bytes;
pub mod cache;
pub mod check;
pub mod da;
pub mod dir;
pub mod error;
mod file;
pub mod format;
pub mod frag;
pub mod geometry;
pub mod inode;
pub mod log;
pub mod mkfs;
pub mod ops;
mod poison;
mod rank;
pub mod symlink;
pub mod trans;
pub mod units;
pub mod volume;

pub use error::{Error, ErrorKind};
pub use file::OpenFile;
pub use geometry::Geometry;
pub use log::SyncTicket;
pub use volume::Volume;
