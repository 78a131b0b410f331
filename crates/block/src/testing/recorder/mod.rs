//! recorder
mod contents;
mod log;
mod recording;
mod replay;

pub use log::Overflow;
pub use recording::{Change, Event, Recording};
pub use replay::Unflushed;
