//! The headers of an allocation group, and its free list.

pub mod agf;
pub mod agfl;
pub mod agi;
mod counters;
mod free_list_slots;
mod header;

pub use agf::Agf;
pub use agi::Agi;
pub use counters::Counters;
pub use header::{HeaderError, TreeRoot};
