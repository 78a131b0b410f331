//! A regular file or a block device, through the page cache, on threads.
//!
//! A few worker threads take requests from a queue bounded in bytes and move them with `preadv`
//! and `pwritev`. With no worker the submitting thread does the I/O itself and returns when it is
//! done; with workers it still does so for a request it has nothing else to do than wait for (a
//! read of metadata), if no other is in its way, which saves two changes of threads. Large requests
//! make this engine as fast as the kernel copies into its page cache.

mod open;
mod queue;
mod transfer;

use std::fmt;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

pub use open::{FileOptions, OpenError};

use crate::device::{BlockDevice, Limits};
use crate::request::Request;
use crate::sector::Sector;
use crate::statistics::{Counters, Statistics};
use open::Opened;
use queue::{RequestQueue, Task};

/// A device stored in a file of the operating system.
///
/// Dropping it answers everything submitted and stops the workers; it does not flush.
pub struct FileDevice {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// What the device and its workers share.
struct Shared {
    file: File,
    name: String,
    read_only: bool,
    /// In sectors.
    capacity: AtomicU64,
    queue: RequestQueue,
    counters: Counters,
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
        let shared = Arc::new(Shared {
            file: opened.file,
            read_only: options.read_only,
            capacity: AtomicU64::new(opened.capacity.0),
            queue: RequestQueue::new(options.queue_bytes),
            counters: Counters::default(),
            name: opened.name,
        });
        // Made before its workers, so that a worker that cannot start stops the others.
        let mut device = Self { shared, workers: Vec::with_capacity(options.threads) };
        for _ in 0..options.threads {
            let shared = Arc::clone(&device.shared);
            let worker = std::thread::Builder::new()
                .name("block-file".into())
                .spawn(move || shared.work())
                .map_err(|source| OpenError::Thread { name: device.shared.name.clone(), source })?;
            device.workers.push(worker);
        }
        Ok(device)
    }

    /// Makes a regular file `bytes` bytes long (rounded up to whole sectors): cuts off what is
    /// beyond, or adds a hole that reads as zeroes. Call it while no request is in flight.
    ///
    /// # Errors
    /// When the device is read-only or the operating system refuses, as it does for block devices.
    pub fn set_len(&self, bytes: u64) -> Result<(), OpenError> {
        let capacity = Sector::covering(bytes);
        open::set_len(&self.shared.file, &self.shared.name, self.shared.read_only, capacity)?;
        self.shared.capacity.store(capacity.0, Ordering::Release);
        Ok(())
    }
}

impl Shared {
    /// The life of a worker: requests until the queue is closed and empty.
    fn work(&self) {
        queue::mark_worker_thread();
        while let Some(task) = self.queue.pop() {
            // A panic in a callback of one bio must not take the worker from the others; the panic
            // hook has reported it, and the bios it left behind were answered on their way out.
            let _ = catch_unwind(AssertUnwindSafe(|| self.run(task)));
        }
    }

    /// Executes a task of the queue. It leaves the queue also when a callback panics.
    fn run(&self, task: Task<'_>) {
        let Task { request, slot } = task;
        self.execute(request);
        drop(slot);
    }

    fn execute(&self, mut request: Request) {
        match transfer::execute(&self.file, &mut request) {
            Ok(()) => request.complete(),
            Err(failure) => request.fail(&self.name, failure.done, &failure.reason),
        }
    }
}

impl BlockDevice for FileDevice {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn capacity(&self) -> Sector {
        Sector(self.shared.capacity.load(Ordering::Acquire))
    }

    fn limits(&self) -> Limits {
        Limits {
            max_request_bytes: 1 << 20,
            max_segments: transfer::MAX_SEGMENTS,
            memory_alignment: 1,
        }
    }

    fn is_read_only(&self) -> bool {
        self.shared.read_only
    }

    fn submit(&self, requests: Vec<Request>) {
        self.shared.counters.count(&requests);
        let queue = &self.shared.queue;
        for request in requests.into_iter().filter_map(|request| request.admit(self)) {
            if self.workers.is_empty() {
                self.shared.execute(request);
            } else if !request.is_immediate() {
                queue.push(request);
            } else if let Some(task) = queue.start_or_push(request) {
                self.shared.run(task);
            }
        }
    }

    fn drain(&self) {
        self.shared.queue.drain();
    }

    fn statistics(&self) -> Statistics {
        self.shared.counters.snapshot()
    }
}

impl Drop for FileDevice {
    fn drop(&mut self) {
        self.shared.queue.close();
        for worker in self.workers.drain(..) {
            // The last handle may be dropped by a callback in a worker; it ends by itself.
            if worker.thread().id() != std::thread::current().id() {
                // Workers catch the panics of callbacks, so this is only an error of our own.
                let joined = worker.join();
                debug_assert!(joined.is_ok(), "a worker of {} panicked", self.shared.name);
            }
        }
    }
}

impl fmt::Debug for FileDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDevice")
            .field("name", &self.shared.name)
            .field("capacity", &self.capacity())
            .field("read_only", &self.shared.read_only)
            .field("threads", &self.workers.len())
            .finish_non_exhaustive()
    }
}
