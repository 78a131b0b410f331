//! What an XFS volume remembers of files that were removed.
//!
//! [`Removed::find`] reads the inodes that the trees know, the journal and free space, each once,
//! and puts together what they say of files that are not there any more: names, paths, owners,
//! sizes, times, and the blocks of their data; and judges from who had these blocks since how much
//! of the data is left. Nothing is ever written to the volume, and nothing there is trusted: names
//! that could lead elsewhere, circles of directories, claims of many files on one block and sizes
//! without bounds end as entries of the list.
//!
//! The facts are in docs/format/removed-files.md.
//!
//! ```no_run
//! use std::sync::Arc;
//! use undercroft_block::FileDevice;
//! use undercroft_recover::{Disk, Removed};
//!
//! let device = FileDevice::open("disk.img".as_ref(), true)?;
//! let disk = Disk::new(Arc::new(device))?;
//! for file in Removed::find(&disk, &mut |_, _, _| {})?.files.iter() {
//!     println!("{} {} bytes, {}", file.id, file.size, file.state.name());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod error;
mod file_id;
mod progress;
mod shape;
mod stream;

mod disk;
mod trail;

mod attributes;
mod names;
mod trees;

mod directory;
mod map;
mod present;
mod space;

mod claims;
mod content;
mod journal;
mod live;
mod remains;
mod scan;

mod found;

mod removed;
mod salvage;

mod timeline;

mod contents;
pub mod pieces;

pub use contents::{Contents, Part, Piece};
pub use disk::Disk;
pub use error::RecoverError;
pub use file_id::FileId;
pub use found::{FoundFile, Path, SizeFrom, State};
pub use journal::Span;
pub use progress::Step;
pub use removed::Removed;
pub use salvage::{SalvageReport, Salvaged};
pub use scan::{Scan, Traces};
pub use timeline::{Change, Event, Rights, Timeline};
