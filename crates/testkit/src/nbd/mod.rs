//! Connections to network disks that break.

pub mod load;
pub mod stand;
pub mod target;
