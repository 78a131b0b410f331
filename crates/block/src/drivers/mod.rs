//! Devices that do I/O themselves.

mod file;
mod memory;
mod null;

pub(crate) use file::Wakeup;
pub use file::{
    Bell, Engine, Exclusive, Fallback, FileDevice, FileOptions, Holder, OpenError, Taken,
    announce_fallback, mounted_at,
};
pub use memory::{MemoryDevice, MemoryDriver};
pub use null::{NullDevice, NullDriver, NullOptions, NullQueue};
