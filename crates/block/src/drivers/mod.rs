//! Devices that do I/O themselves.

mod file;
mod memory;

pub use file::{FileDevice, FileOptions, OpenError};
pub use memory::{MemoryDevice, MemoryDriver};
