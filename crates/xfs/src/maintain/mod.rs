//! The properties of a volume: its size, its label and its identity, changed afterwards.

mod grow;
mod identity;
mod shrink;
mod trim;

pub use crate::ops::Trimmed;
pub use grow::{Growth, grow, growth};
pub use identity::{LABEL_MAX, check_label, label, set_label, set_uuid};
pub use shrink::{
    Abandoned, Amount, Obstacle, ShrinkOptions, ShrinkTarget, Shrinkage, abandon_shrink,
    free_left_journal, minimise, shrink, shrinkage,
};
pub use trim::trim;

/// Least blocks of a last group that kernels take.
const LAST_BLOCKS: u32 = 64;

/// `xfs_repair` reads this many bytes at the start of each group.
const LAST_BYTES: u32 = 128 << 10;

/// Least blocks of a last group that is shorter than the others. New volumes have longer ones.
fn least_last_group(block_log: u8) -> u32 {
    (LAST_BYTES >> block_log).max(LAST_BLOCKS)
}
