//! Files by path, in the manner of `std::fs`.
//!
//! A path starts at the root of the volume, without a slash in front at the
//! [current directory](crate::FileSystem::current_directory), which is the root by default. Symbolic links are
//! resolved inside the volume, absolute ones from its root; `..` above the root is the root. Paths
//! and their parts are bytes; a path may be longer than a kernel takes.

mod change;
mod content;
mod place;
mod read_dir;
mod remove_all;
mod resolve;
mod walk;

pub use place::Place;
pub use read_dir::{DirEntry, ReadDir};
pub use walk::{Walk, WalkEntry};

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The bytes of a path.
pub(crate) fn bytes(path: &impl AsRef<Path>) -> &[u8] {
    path.as_ref().as_os_str().as_bytes()
}
