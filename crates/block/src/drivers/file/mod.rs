//! A regular file or a block device, through the page cache or with direct I/O.
//!
//! Two engines move the bytes, with the same results: [`threads`] with blocking system calls, and
//! [`uring`] with io_uring. For bulk writes and servers [`buffered_and_direct`] uses both. A request that its
//! submitter does nothing but wait for (a read of metadata) is served in the submitting thread by
//! both, which saves two changes of threads.

mod buffered_and_direct;
mod clone_range;
mod engine;
mod exclusive;
mod open;
mod page_cache;
mod threads;
mod transfer;
mod unwaiting;
mod uring;

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

pub use engine::{Engine, Fallback, announce_fallback};
pub use exclusive::{Exclusive, Unchanging, mounted_at};

use buffered_and_direct::BufferedAndDirect;
use open::OpenFile;
use threads::ThreadsDriver;
use uring::UringDriver;

use crate::device::{BlockDevice, Layer};
use crate::driver::{OpenError, Taken};
use crate::memory::BufferPool;
use crate::queue::{Drive, Leaf, QueueOptions};
use crate::units::{Limits, Sector};

/// How a [`FileDevice`] works.
#[derive(Clone)]
pub struct FileOptions {
    /// Refuse everything that modifies.
    pub read_only: bool,
    /// How bytes are moved.
    pub engine: Engine,
    /// Avoid the page cache. Offsets, lengths and memory must be aligned as the limits of the
    /// device say; buffers are.
    pub direct: bool,
    /// Ask the device for completions instead of waiting for interrupts: less latency for more CPU
    /// time. Only with direct I/O on io_uring, and on disks that have queues for it; on others
    /// [`Engine::Auto`] does without and says so, and [`Engine::Uring`] is an error.
    pub polled: bool,
    /// A registrable pool from which the buffers come; rings register its memory.
    pub pool: Option<BufferPool>,
    /// Worker threads of the engine that uses threads; 0 = the submitting thread does the I/O and
    /// returns when it is done.
    pub threads: usize,
    /// The queue in front. `drive` counts for io_uring only.
    pub queue: QueueOptions,
}

impl Default for FileOptions {
    /// Through the page cache. Two workers: one copies while another waits for a disk.
    fn default() -> Self {
        Self {
            read_only: false,
            engine: Engine::Auto,
            direct: false,
            polled: false,
            pool: None,
            threads: 2,
            queue: QueueOptions::default(),
        }
    }
}

/// A device stored in a file of the operating system.
///
/// One that may be changed is had by one `FileDevice` at a time: opening fails with
/// [`OpenError::Taken`] if the file or disk is mounted, or open for change in this program or
/// another one that uses this library, also through a loop device. Nothing but the operating system
/// can keep others from it later; [`check_alone`](BlockDevice::check_alone) notices a mount. Not
/// seen are mounts in other mount namespaces through loop devices that this process may not open,
/// other programs that write to the file, and what other machines do with a shared disk; on a file
/// system that has no locks, neither are other users of this library.
///
/// If another program makes the file shorter, reads behind its new end fail. A write there makes it
/// longer again, and what lies between is zeroes.
///
/// Dropping it answers everything submitted and stops its threads; it does not flush.
pub struct FileDevice {
    file: Arc<OpenFile>,
    leaf: Box<dyn BlockDevice>,
    engine: Engine,
}

/// A driver at work.
type Started = (Box<dyn BlockDevice>, Engine);

impl FileDevice {
    /// Opens the file or block device at `path`, for reading only if `read_only`, with default
    /// options. Creates nothing, and with `read_only` never writes.
    ///
    /// # Errors
    /// When it cannot be opened, is neither a regular file nor a block device, or is to be changed
    /// and in use.
    pub fn open(path: &Path, read_only: bool) -> Result<Self, OpenError> {
        Self::open_with(path, &FileOptions { read_only, ..FileOptions::default() })
    }

    /// Opens the file or block device at `path`. Creates nothing.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when it cannot be used as the options say.
    pub fn open_with(path: &Path, options: &FileOptions) -> Result<Self, OpenError> {
        Self::new(OpenFile::at(path, options.read_only, options.direct)?, options)
    }

    /// A device on a file that the caller opened (and created or made temporary as it likes);
    /// `name` is what messages call it. The descriptor must allow writing unless the options say
    /// read-only; direct I/O is set for all duplicates of it, and so is the lock.
    ///
    /// # Errors
    /// When it is neither a regular file nor a block device, its size cannot be read, it cannot be
    /// used as the options say, or it is to be changed and in use: also by another
    /// descriptor of the caller.
    pub fn from_file(file: File, name: &str, options: &FileOptions) -> Result<Self, OpenError> {
        Self::new(OpenFile::from_file(file, name, options.read_only, options.direct)?, options)
    }

    fn new(file: OpenFile, options: &FileOptions) -> Result<Self, OpenError> {
        let file = Arc::new(file);
        let (leaf, engine) = Self::start(Arc::clone(&file), options)?;
        Ok(Self { file, leaf, engine })
    }

    fn start(file: Arc<OpenFile>, options: &FileOptions) -> Result<Started, OpenError> {
        match options.engine {
            Engine::Threads => Self::on_threads(file, options),
            Engine::Uring => Self::on_uring(file, options),
            Engine::Auto | Engine::Mixed | Engine::Around
                if !options.direct && !options.read_only =>
            {
                let (driver, threads) = match options.engine {
                    Engine::Mixed => (BufferedAndDirect::copying(&file), 1),
                    Engine::Around if options.threads > 0 => {
                        (BufferedAndDirect::lending(&file), options.threads)
                    }
                    _ => (None, 0),
                };
                match driver {
                    Some(driver) => Self::on_both(driver, threads, options),
                    None => Self::on_threads(file, options),
                }
            }
            Engine::Auto | Engine::Mixed | Engine::Around
                if options.direct && options.polled && !file.can_be_polled() =>
            {
                engine::announce(&Fallback::Interrupts(file.name().to_owned()));
                Self::start(file, &FileOptions { polled: false, ..options.clone() })
            }
            Engine::Auto | Engine::Mixed | Engine::Around => {
                match Self::on_uring(Arc::clone(&file), options) {
                    // A cold page cache is read more slowly without a ring, which is no news.
                    Err(OpenError::Ring { .. }) if !options.direct => {}
                    Err(OpenError::Ring { name, source }) => {
                        let fallback = Fallback::from_error(source);
                        engine::announce(
                            &fallback.map_err(|source| OpenError::Ring { name, source })?,
                        );
                    }
                    opened => return opened,
                }
                Self::on_threads(file, options)
            }
        }
    }

    fn on_threads(file: Arc<OpenFile>, options: &FileOptions) -> Result<Started, OpenError> {
        let drive = match options.threads {
            0 => Drive::Inline,
            threads => Drive::Threads(threads),
        };
        let queue = QueueOptions { drive, ..options.queue.clone() };
        Ok((Box::new(Leaf::start(ThreadsDriver { file }, queue)?), Engine::Threads))
    }

    fn on_both(
        driver: BufferedAndDirect,
        threads: usize,
        options: &FileOptions,
    ) -> Result<Started, OpenError> {
        let queue = QueueOptions { drive: Drive::Threads(threads), ..options.queue.clone() };
        Ok((Box::new(Leaf::start(driver, queue)?), options.engine))
    }

    fn on_uring(file: Arc<OpenFile>, options: &FileOptions) -> Result<Started, OpenError> {
        let polled = options.polled && options.direct;
        if polled && !file.can_be_polled() {
            return Err(OpenError::NotPolled { name: file.name().to_owned() });
        }
        uring::try_out(polled)
            .map_err(|source| OpenError::Ring { name: file.name().to_owned(), source })?;
        let driver = UringDriver { file, polled, pool: options.pool.clone() };
        Ok((Box::new(Leaf::start(driver, options.queue.clone())?), Engine::Uring))
    }

    /// Makes a regular file `bytes` bytes long (rounded up to whole sectors): cuts off the rest, or
    /// adds a hole that reads as zeroes. Call it while no request is in flight.
    ///
    /// # Errors
    /// When the device is read-only or the operating system refuses, as it does for block devices.
    pub fn set_len(&self, bytes: u64) -> Result<(), OpenError> {
        self.file.set_len(bytes)
    }

    /// The engine in use, never [`Engine::Auto`].
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine
    }
}

impl BlockDevice for FileDevice {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn capacity(&self) -> Sector {
        self.file.capacity()
    }

    fn limits(&self) -> Limits {
        self.file.limits()
    }

    fn is_read_only(&self) -> bool {
        self.file.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        self.leaf.layer()
    }

    fn check_alone(&self) -> Result<(), Taken> {
        self.file.check_alone()
    }
}

impl fmt::Debug for FileDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDevice")
            .field("name", &self.name())
            .field("capacity", &self.capacity())
            .field("read_only", &self.is_read_only())
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}
