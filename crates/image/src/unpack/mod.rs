//! Trees from images: a volume becomes a directory or a tar stream.
//!
//! Both ways walk the volume once, in the order of its directories, in bounded memory: what grows
//! is one bit for each inode and the first name of files with several. The volume is not trusted:
//! names that would lead elsewhere are refused, and a directory that is reached twice is an error.

mod attributes;
mod directory;
mod error;
mod links;
mod sink;
mod tar;
mod walk;

pub use directory::to_directory;
pub use error::UnpackError;
pub use sink::{Progress, Summary, Warnings};
pub use tar::to_tar;
