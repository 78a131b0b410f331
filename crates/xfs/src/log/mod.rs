//! The journal.

mod state;

pub use state::{LogState, state};
