//! A regular file or a block device, through the page cache, on threads.
//!
//! A few worker threads take requests from a queue bounded in bytes and move them with `preadv`
//! and `pwritev`. With no worker the submitting thread does the I/O itself and returns when it is
//! done; with workers it still does so for a request it has nothing else to do than wait for (a
//! read of metadata), if no other is in its way, which saves two changes of threads. Large requests
//! make this engine as fast as the kernel copies into its page cache.

mod open;
mod transfer;

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use open::{FileOptions, OpenError};

use crate::device::{BlockDevice, Layer, Limits};
use crate::driver::{Driver, Failure, QueueContext, Synchronous};
use crate::queue::{Drive, Leaf, QueueOptions};
use crate::request::Request;
use crate::sector::Sector;
use open::Opened;

/// A device stored in a file of the operating system.
///
/// Dropping it answers everything submitted and stops the workers; it does not flush.
pub struct FileDevice {
    leaf: Leaf<FileDriver>,
}

/// Moves bytes with blocking system calls in the threads of the queue.
struct FileDriver {
    file: File,
    name: String,
    read_only: bool,
    /// In sectors.
    capacity: AtomicU64,
}

impl FileDevice {
    /// Opens the file or block device at `path`, for reading only if `read_only`, with default
    /// options. Creates nothing, and with `read_only` never writes.
    ///
    /// # Errors
    /// When it cannot be opened, or is neither a regular file nor a block device.
    pub fn open(path: &Path, read_only: bool) -> Result<Self, OpenError> {
        let opened = Opened::at(path, read_only)?;
        Self::start(opened, &FileOptions { read_only, ..FileOptions::default() })
    }

    /// A device on a file that the caller opened (and created, locked or made temporary as it
    /// likes); `name` is what messages call it. The descriptor must allow writing unless the
    /// options say read-only.
    ///
    /// # Errors
    /// When it is neither a regular file nor a block device, or its size cannot be read.
    pub fn from_file(file: File, name: &str, options: &FileOptions) -> Result<Self, OpenError> {
        Self::start(Opened::from_file(file, name)?, options)
    }

    fn start(opened: Opened, options: &FileOptions) -> Result<Self, OpenError> {
        let driver = FileDriver {
            file: opened.file,
            read_only: options.read_only,
            capacity: AtomicU64::new(opened.capacity.0),
            name: opened.name,
        };
        let drive = match options.threads {
            0 => Drive::Inline,
            threads => Drive::Threads(threads),
        };
        let queue =
            QueueOptions { drive, queue_bytes: options.queue_bytes, ..QueueOptions::default() };
        Ok(Self { leaf: Leaf::start(driver, queue)? })
    }

    /// Makes a regular file `bytes` bytes long (rounded up to whole sectors): cuts off what is
    /// beyond, or adds a hole that reads as zeroes. Call it while no request is in flight.
    ///
    /// # Errors
    /// When the device is read-only or the operating system refuses, as it does for block devices.
    pub fn set_len(&self, bytes: u64) -> Result<(), OpenError> {
        let capacity = Sector::covering(bytes);
        let driver = self.leaf.driver();
        open::set_len(&driver.file, &driver.name, driver.read_only, capacity)?;
        driver.capacity.store(capacity.0, Ordering::Release);
        Ok(())
    }
}

impl Driver for FileDriver {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        Sector(self.capacity.load(Ordering::Acquire))
    }

    fn limits(&self) -> Limits {
        Limits { max_segments: transfer::MAX_SEGMENTS, ..Limits::default() }
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        Some(transfer::execute(&self.file, request))
    }
}

impl BlockDevice for FileDevice {
    fn name(&self) -> &str {
        self.leaf.name()
    }

    fn capacity(&self) -> Sector {
        self.leaf.capacity()
    }

    fn limits(&self) -> Limits {
        self.leaf.limits()
    }

    fn is_read_only(&self) -> bool {
        self.leaf.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        self.leaf.layer()
    }
}

impl fmt::Debug for FileDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDevice")
            .field("name", &self.name())
            .field("capacity", &self.capacity())
            .field("read_only", &self.is_read_only())
            .finish_non_exhaustive()
    }
}
