//! Directories: in the inode, in one block, or in blocks of data, names by hash, and free space.

pub mod block;
pub mod data;
mod entry_type;
pub mod free;
pub mod layout;
pub mod leaf;
mod name;
pub mod pairs;
pub mod shortform;

pub use entry_type::EntryType;
pub use name::name_defect;
