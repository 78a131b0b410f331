//! The journal.

mod state;

pub use state::{LogEnd, LogError, LogState, end};
