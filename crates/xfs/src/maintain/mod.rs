//! The properties of a volume: its size, its label and its identity, changed afterwards.

mod grow;
mod identity;

pub use grow::{Growth, grow, growth};
pub use identity::{LABEL_MAX, check_label, label, set_label, set_uuid};
