//! XFS volumes for programs and servers: the face of a file system.
//!
//! # Start here
//!
//! Make a volume in a file:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let image = directory.path().join("disk.img");
//! use undercroft_fs::FileSystem;
//! let fs = FileSystem::format(&image, 64 << 20)?;
//! fs.create_dir_all("/etc/app")?;
//! // In its place, and nothing to replay.
//! fs.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Write files in one, with the verbs of `std::fs`:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let image = directory.path().join("disk.img");
//! # undercroft_fs::FileSystem::format(&image, 64 << 20)?.close()?;
//! use undercroft_fs::OpenOptions;
//! let fs = OpenOptions::writable().open_image(&image)?;
//! fs.write("/name", "first\n")?;
//! fs.rename("/name", "/moved", Default::default())?;
//! fs.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Open one to read, and read a file:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let image = directory.path().join("disk.img");
//! # let fs = undercroft_fs::FileSystem::format(&image, 64 << 20)?;
//! # fs.create_dir("/etc")?;
//! # fs.write("/etc/name", "first\n")?;
//! # fs.close()?;
//! use undercroft_fs::FileSystem;
//! let fs = FileSystem::open_image(&image)?;
//! for entry in fs.read_dir("/etc")? {
//!     assert_eq!(fs.read(entry?.path())?, b"first\n");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Stream: a [`File`] is `Read`, `Write` and `Seek`:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let image = directory.path().join("disk.img");
//! # let fs = undercroft_fs::FileSystem::format(&image, 64 << 20)?;
//! use undercroft_fs::NewFile;
//! let mut file = fs.create_file("/log", &NewFile::new(0o600))?;
//! std::io::copy(&mut "many lines\n".as_bytes(), &mut file)?;
//! // Durable: the ticket of an fsync can be awaited, too.
//! file.fsync_and_wait()?;
//! # Ok(())
//! # }
//! ```
//!
//! # The types
//!
//! A [`FileSystem`] is an open volume, used by any number of threads. Its verbs take paths, and follow
//! symbolic links inside the volume. [`Nodes`] are its verbs by inode number, as servers know files:
//! [`lookup`](Nodes::lookup), [`create`](Nodes::create), [`readdir`](Nodes::readdir), ...
//! [`FileSystem::place`] leads from the one kind to the other.
//!
//! A [`File`] is an open file: bytes read and written at any place, space given and taken, and tickets
//! for durability. Nothing here has a state of files of its own, it is all in `undercroft_xfs`.
//!
//! Verbs by number fail with [`Error`], verbs by path with [`PathError`], which is one with a path.
//! Without [`OpenOptions::writable`] nothing is changed.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod clock;
mod metadata;

mod error;
mod options;

mod access;

mod file_system;

mod nodes;

mod directory;
mod file;
mod xattr;

mod attributes;
mod image;
mod lookup;
mod names;

mod path;

pub use attributes::{Change, SetTime};
pub use clock::{Clock, timestamp};
pub use directory::Entry;
pub use error::PathError;
pub use file::{Allocation, File, FileExtent, Writer};
pub use file_system::FileSystem;
pub use image::ImageError;
pub use metadata::Metadata;
pub use names::{Existing, NewFile, Owner, RenameFlags};
pub use nodes::Nodes;
pub use options::{AccessTimes, OpenOptions};
pub use path::{DirEntry, Place, ReadDir, Walk, WalkEntry};
pub use undercroft_xfs::ErrorKind;
pub use undercroft_xfs::format::{DeviceNumber, FileType, InodeFlags, Timestamp};
pub use undercroft_xfs::units::InodeNumber;
pub use undercroft_xfs::volume::Usage;
pub use undercroft_xfs::{Error, SyncTicket};
pub use xattr::SetMode;
