//! Verbs of the file system on damaged volumes.

pub mod stand;
pub mod verb;
