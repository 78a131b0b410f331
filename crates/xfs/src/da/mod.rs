//! The hash tree that directories and attributes share, and the fork it lives in.

mod fork;
mod join;
mod leaf_kind;
mod path;
mod split;
mod tree;

pub(crate) use fork::{DaFork, DaForkMut};
pub(crate) use leaf_kind::{LeafKind, Side};
pub(crate) use path::Path;
pub(crate) use tree::{HashTree, identity};
