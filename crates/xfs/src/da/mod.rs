//! The hash tree that directories and attributes share, and the fork it lives in.

mod fork;

pub use fork::{DaFork, DaForkMut};
