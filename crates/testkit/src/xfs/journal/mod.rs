//! Changes through the journal, cut off.

pub mod crash;
pub mod tree;
pub mod work;
