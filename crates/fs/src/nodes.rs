//! Verbs by number.

use crate::FileSystem;

/// The verbs of a [`FileSystem`] by number, as servers know files ([`FileSystem::nodes`]).
///
/// A number stands for the file that has it at the time. A server that keeps one while others remove
/// files also holds the file [open](Self::open), or keeps its generation too and asks with
/// [`open_handle`](Self::open_handle).
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'f> {
    pub(crate) fs: &'f FileSystem,
}

impl FileSystem {
    /// The verbs by number.
    #[must_use]
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes { fs: self }
    }
}
