//! Volumes that the kernel left dirty, and both replays.

pub mod judged;
pub mod load;
