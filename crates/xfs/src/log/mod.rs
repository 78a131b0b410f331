//! The journal.

mod state;

pub use state::{LogError, LogState, state};
