//! The journal.

pub mod recovery;
mod state;

pub(crate) use recovery::LogEnds;
pub use recovery::LogState;
pub(crate) use state::ends;
pub use state::state;
