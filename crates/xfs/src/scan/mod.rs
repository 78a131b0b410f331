//! What only a look at all inodes tells, where nothing else does: the mappings of files without reverse
//! mappings, and blocks that belong to nobody.

mod in_use;
mod mappings;
mod part;
mod unowned;

pub(crate) use in_use::{for_each_from, in_use};
pub(crate) use mappings::for_each_mapping;
pub(crate) use part::GroupPart;
pub(crate) use unowned::for_each_unowned;
