//! XFS volumes for programs and servers: the face of a file system.
//!
//! A [`FileSystem`] is an open volume, used by any number of threads. It has two kinds of verbs:
//!
//! - by inode number, as servers know files: [`lookup`](FileSystem::lookup),
//!   [`create`](FileSystem::create), [`readdir`](FileSystem::readdir), ...;
//! - by path, in the manner of `std::fs`: [`read`](FileSystem::read), [`write`](FileSystem::write),
//!   [`walk`](FileSystem::walk), [`remove_dir_all`](FileSystem::remove_dir_all), ...
//!
//! A [`File`] is an open file: bytes read and written, space given and taken, and tickets for
//! durability. Nothing here has a state of files of its own, it is all in `undercroft_xfs`.
//!
//! Verbs by number fail with [`Error`], verbs by path with [`PathError`], which is one with a path.
//!
//! ```
//! # use undercroft_block::MemoryDevice;
//! # use undercroft_xfs::format::FileType;
//! # use undercroft_xfs::mkfs::{self, MkfsOptions};
//! # use undercroft_xfs::ops::NewInode;
//! use std::sync::Arc;
//! use undercroft_block::{BlockDevice, FileDevice};
//! use undercroft_fs::{FileSystem, OpenOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let image = directory.path().join("disk.img");
//! # std::fs::File::create(&image)?.set_len(64 << 20)?;
//! # let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false)?);
//! # let plan = mkfs::plan(&MkfsOptions::new(64 << 20, uuid::Uuid::from_u128(1)))?;
//! # mkfs::finish(&mkfs::begin(&device, plan, &NewInode::new(FileType::Directory, 0o755))?, true)?;
//! # drop(device);
//! let device = Arc::new(FileDevice::open(&image, false)?);
//! let fs = FileSystem::open(device, &OpenOptions::writable())?;
//!
//! fs.create_dir_all("/etc/app")?;
//! fs.write("/etc/app/name", "first\n")?;
//! assert_eq!(fs.read("/etc/app/name")?, b"first\n");
//!
//! // In its place, and nothing to replay.
//! fs.close()?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod as_path;
mod clock;
mod metadata;

mod error;
mod options;

mod access;

mod file_system;

mod directory;
mod file;
mod xattr;

mod attributes;
mod names;
mod nodes;

mod path;

pub use as_path::AsPath;
pub use attributes::{Change, SetTime};
pub use clock::{Clock, timestamp};
pub use directory::Entry;
pub use error::PathError;
pub use file::{Allocation, File, FileExtent, Writer};
pub use file_system::FileSystem;
pub use metadata::Metadata;
pub use names::{Existing, NewFile, Owner, RenameFlags};
pub use options::{AccessTimes, OpenOptions};
pub use path::{DirEntry, Place, ReadDir, Walk, WalkEntry};
pub use undercroft_xfs::ErrorKind;
pub use undercroft_xfs::format::{DeviceNumber, FileType, InodeFlags, Timestamp};
pub use undercroft_xfs::units::InodeNumber;
pub use undercroft_xfs::volume::Usage;
pub use undercroft_xfs::{Error, SyncTicket};
pub use xattr::SetMode;
