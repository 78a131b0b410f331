//! Verbs that copy files and directories into a volume and out of it.

mod fill;
pub(super) mod get;
pub(super) mod put;
pub(crate) mod tree;
