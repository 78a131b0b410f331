//! Inodes taken and given back: chunks of 64 inodes, the trees of chunks in every group, and the
//! lists of inodes that have no name and are still in use (orphans).

mod allocate;
mod by_number;
mod chunk;
mod empty;
mod free;
pub(crate) mod unlinked;

pub(crate) use allocate::{allocate, find, no_room};
pub(crate) use chunk::next_generation;
pub(crate) use empty::free_empty_chunks;
pub(crate) use free::free;
