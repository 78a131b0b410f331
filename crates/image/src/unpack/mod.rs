//! Trees from images: a volume, or a directory of it with all that is below, becomes a directory or
//! a tar stream; a volume is also a [source](VolumeSource) of entries, sorted by name.
//!
//! All ways walk the tree once, in the order of its directories, in bounded memory: what grows
//! is one bit for each inode, the first name of files with several, and a hash for each name in the
//! directories on the way. The volume is not trusted: names that would lead elsewhere, or that a
//! directory has twice, are refused, and a directory that is reached twice is an error.
//!
//! ```no_run
//! use std::sync::Arc;
//! use undercroft_block::FileDevice;
//! use undercroft_image::unpack::to_directory;
//! use undercroft_xfs::Volume;
//!
//! let device = FileDevice::open("root.img".as_ref(), true)?;
//! let volume = Arc::new(Volume::open(Arc::new(device))?);
//! let summary = to_directory(&volume, "rootfs".as_ref(), false, &mut |_| {})?;
//! println!("{} files; not kept: {:?}", summary.files, summary.warnings);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod attributes;
mod directory;
mod entries;
mod error;
mod links;
mod names;
mod sink;
mod source;
mod subtree;
mod tar;
mod volume;
mod walk;

pub use directory::to_directory;
pub use entries::{entries_to_directory, entries_to_tar};
pub use error::UnpackError;
pub use sink::{Event, Progress, Summary, Warnings};
pub use source::VolumeSource;
pub use subtree::Subtree;
pub use tar::to_tar;
