//! Devices that do I/O themselves.

mod file;
mod memory;
mod null;

pub use file::{
    Engine, Exclusive, Fallback, FileDevice, FileOptions, Unchanging, announce_fallback, mounted_at,
};
pub use memory::{MemoryDevice, MemoryDriver};
pub use null::{NullDevice, NullDriver, NullOptions, NullQueue};
