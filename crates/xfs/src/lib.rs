//! XFS file systems in user space.
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
pub mod format;
pub mod geometry;
pub mod inode;
pub mod log;
pub mod mkfs;
pub mod ops;
pub mod symlink;
pub mod trans;
pub mod units;
pub mod volume;

pub use error::Error;
pub use geometry::Geometry;
pub use volume::Volume;
