//! The same until the power fails.

pub mod cuts;
pub mod files;
pub mod history;
pub mod model;
pub mod names;
pub mod notes;
pub mod trees;
pub mod worker;
