//! XFS volumes mounted through FUSE: every program uses them, and the kernel's XFS is not needed.
//!
//! This is a translation between the protocol and [`undercroft_fs`], and no more: it knows neither
//! the format nor the journal. A [`Mount`] answers until it is unmounted
//! ([`MountPoint::unmount`]), and then [leaves](Mount::finish) the volume clean. The caches on both
//! sides, and why they may last, are in `docs/decisions/mount.md`.
//!
//! ```no_run
//! use undercroft_fs::OpenOptions;
//! use undercroft_fuse::{Log, Mount, Settings, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fs = OpenOptions::writable().open_image("disk.img")?;
//! let log = Log::new(|line| eprintln!("{line}"));
//! let target = Target::Directory("/mnt".into());
//! let mount = Mount::new(fs, target, &Settings::new("disk.img"), log, || {})?;
//! // Until it is unmounted.
//! mount.finish()?.release();
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod counters;
mod ending;
mod failure;
pub mod ioctl;
mod mounts;
mod nodes;
mod settings;
mod status;

pub mod options;
mod point;
mod server;

mod attach;
mod holders;
mod keeper;
mod unmount;

mod protocol;

mod mount;

pub use ending::{EndOfServer, Ended};
pub use failure::Log;
pub use holders::Holder;
pub use mount::{Finished, Mount};
pub use mounts::{Listed, listed};
pub use point::MountPoint;
pub use settings::{MountFailure, Settings, Target};
pub use status::{STATUS_ATTRIBUTE, Status};
pub use unmount::{InUse, UnmountFailure};
