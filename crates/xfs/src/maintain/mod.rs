//! The properties of a volume: its size, its label and its identity, changed afterwards.

mod grow;
mod identity;
mod shrink;

pub use grow::{Growth, grow, growth};
pub use identity::{LABEL_MAX, check_label, label, set_label, set_uuid};
pub use shrink::{
    Amount, Obstacle, ShrinkOptions, ShrinkTarget, Shrinkage, abandon_shrink, minimise, shrink,
    shrinkage,
};
