//! The hash tree that directories and attributes share, and the fork it lives in.

mod fork;
mod join;
mod leaf_kind;
mod path;
mod split;
mod tree;

pub use fork::{DaFork, DaForkMut};
pub use leaf_kind::{LeafKind, Side};
pub use path::{LoopGuard, Path};
pub use tree::{HashTree, identity};
