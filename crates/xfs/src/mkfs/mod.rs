//! Making an empty file system: choice of geometry, and the blocks every group starts with.
//!
//! [`plan`] turns [`MkfsOptions`] into the superblock of the volume before its first inode;
//! [`ag_static`] gives the blocks of a group at that point. Free lists, root directory and
//! realtime inodes come after, from ordinary transactions.
//!
//! The choices are those of the newest `mkfs.xfs` for image files; `tests/volume/mkfs_golden.rs` compares
//! the bytes. It differs on purpose in this, mostly for small volumes:
//!
//! - Volumes below 300 MiB, logs below 64 MiB and a single group need no special option. From
//!   32 MiB there are two groups; checkers refuse volumes of one group without being forced.
//! - When a log of the least size does not fit a group of the usual size, there are fewer groups.
//! - When a few blocks more than a multiple would cost the last group, there is one group less and
//!   the space is kept.
//! - A log as long as its group leaves room for the whole free list of the group (two blocks more).
//! - The log of a volume of one group is not aligned to stripes: the root directory lies behind it.
//! - When a log of the size asked for does not fit a group of the usual size, there are fewer groups,
//!   but not fewer than two.
//! - Log sizes are rounded up to whole log stripe units instead of being refused.
//! - A share of inodes of 0 means no limit, not the default.
//! - Presets choose features only; sizes and places are the newest rules for all of them. Older
//!   versions of `mkfs.xfs` (6.1 is one) put the root directory of volumes with blocks of 16 KiB and more and small
//!   groups a few blocks further on.

mod ag_static;
mod error;
mod feature;
mod features;
mod groups;
mod kernel;
mod log_size;
mod options;
mod plan;
mod property;
mod sizes;
#[cfg(test)]
mod structure_tests;
mod volume;

pub use crate::group::Reserved;
pub use ag_static::{StaticBlock, ag_static};
pub use error::MkfsError;
pub use feature::{Feature, Preset};
pub use kernel::Kernel;
pub use log_size::minimum_log_blocks;
pub use options::MkfsOptions;
pub use plan::{minimum_size, plan, usual_log_size};
pub use property::{default_property, is_property};
pub use volume::{begin, finish};
