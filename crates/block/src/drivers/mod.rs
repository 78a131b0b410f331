//! Devices that do I/O themselves.

mod file;
mod memory;
mod null;

pub(crate) use file::Wakeup;
pub use file::{Bell, Engine, Fallback, FileDevice, FileOptions, OpenError, announce_fallback};
pub use memory::{MemoryDevice, MemoryDriver};
pub use null::{NullDevice, NullDriver, NullOptions, NullQueue};
