//! Devices that do I/O themselves.

mod file;
mod memory;

pub use file::{Bell, Engine, Fallback, FileDevice, FileOptions, OpenError, announce_fallback};
pub use memory::{MemoryDevice, MemoryDriver};
