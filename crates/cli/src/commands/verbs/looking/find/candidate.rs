//! A file in a search.

use crate::session::Session;
use undercroft_fs::Metadata;

/// A file that may be what is looked for.
pub(super) struct Candidate<'c> {
    pub(super) path: &'c [u8],
    pub(super) metadata: &'c Metadata,
    pub(super) session: &'c Session<'c>,
}
