//! The tree of hashes that large directories and attribute forks share.

pub mod block;
pub mod name_hash;
