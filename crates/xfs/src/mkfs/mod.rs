//! Making an empty file system: choice of geometry, and the blocks every group starts with.
//!
//! [`plan`] turns [`MkfsOptions`] into the superblock of the volume before its first inode;
//! [`ag_static`] gives the blocks of a group at that point. Free lists, root directory and
//! realtime inodes come after, from ordinary transactions.
//!
//! The choices are those of `mkfs.xfs` for image files, with these differences, all for small
//! volumes. Sizes below 300 MiB need no special option. When a log of the least size does not fit a
//! group of the usual size, there are fewer groups. When a few blocks more than a multiple would
//! cost the last group, there is one group less and the space is kept.

mod ag_static;
mod error;
mod features;
mod groups;
mod log_size;
mod options;
mod plan;
mod reservation;
mod sizes;
mod write;

pub use ag_static::{StaticBlock, ag_static};
pub use error::MkfsError;
pub use features::{Feature, Preset};
pub use log_size::minimum_log_blocks;
pub use options::MkfsOptions;
pub use plan::{minimum_size, plan};
pub use write::{begin, finish};
