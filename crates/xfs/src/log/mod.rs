//! The journal.

mod state;

pub(crate) use state::{LogEnd, end};
pub use state::{LogState, state};
