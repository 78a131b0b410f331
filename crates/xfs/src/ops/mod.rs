//! File operations: what callers use.
//!
//! Operations that change a volume take an open transaction and the locked inodes that they work
//! on; the caller commits. Those that read take the volume.

mod create;
mod directory;
mod path;
mod read;
mod xattr;

pub use create::{NewInode, Times, create, link};
pub use directory::{entries, lookup};
pub use path::{path_text, resolve};
pub use read::{FileReader, read_link};
pub use xattr::{attributes, set_attributes};
