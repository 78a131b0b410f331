//! Devices that do I/O themselves.

mod file;
mod memory;
mod null;

pub use file::{FileDevice, FileOptions, OpenError};
pub use memory::{MemoryDevice, MemoryDriver};
pub use null::{NullDevice, NullDriver, NullOptions, NullQueue};
