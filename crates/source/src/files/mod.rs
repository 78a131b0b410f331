//! Files of this system, read by threads ahead of the consumer.
//!
//! The work comes in batches, of a directory or of a description (`batch`). Threads read it (`reader`),
//! up to 64 MiB ahead, and `window` puts the results in the order of the work, with any number of
//! threads. `links` decides which name of a file is its first: in the order of the work, and names that
//! are left out do not count. `passes` are those of a source.

pub(crate) mod batch;
mod contents_problem;
pub(crate) mod handle;
mod holes;
pub(crate) mod links;
mod partial_entry;
mod pass;
mod passes;
mod reader;
mod sizes;
mod window;
mod xattrat;
pub(crate) mod xattrs;

pub(crate) use batch::{Batch, Batches, Course, Work};
pub use contents_problem::ContentsProblem;
pub(crate) use handle::Handle;
pub use holes::data_ranges;
pub(crate) use partial_entry::{
    Blame, ContentsFile, Expected, PartialEntry, PartialMetadata, Place,
};
pub(crate) use passes::Passes;
