//! How many I/Os a second the layer does, and what one costs: the null driver for each number of
//! threads and size of batches, and the file drivers beside fio.
//!
//! Each submitting thread claims a hardware queue and runs to completion: it submits a batch under
//! a plug, and collects what has ended from a completion queue of its own. On the null device a
//! batch ends where it is submitted; on a file a thread keeps as many I/Os outstanding as a batch
//! has, as fio does.
//!
//! Figures to hold beside: SPDK's null device does 10.8 million I/Os a second on one core
//! (spdk@055de83ac6).

mod file;
mod fio;
mod outcome;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use undercroft_block::BlockDevice;

pub use outcome::{Access, IopsOutcome};

use crate::error::LabError;
use crate::options::RunOptions;
use crate::outcome::Outcome;
use crate::rate::{Rate, Window};
use file::TestFile;
use fio::Engine;
use worker::Work;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverName {
    /// Nothing is moved and nothing waited for: the cost of the layer alone.
    Null,
    /// Bytes are copied from and to memory.
    Memory,
    /// A file, by io_uring.
    FileIoUring,
    /// A file, by threads that block.
    FileThreads,
}

impl DriverName {
    /// Every driver.
    pub const ALL: [Self; 4] = [Self::Null, Self::Memory, Self::FileIoUring, Self::FileThreads];

    fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Memory => "memory",
            Self::FileIoUring => "file-io_uring",
            Self::FileThreads => "file-threads",
        }
    }

    /// fio's engine of the same kind.
    fn engine(self) -> Option<Engine> {
        match self {
            Self::Null | Self::Memory => None,
            Self::FileIoUring => Some(Engine::IoUring),
            Self::FileThreads => Some(Engine::Psync),
        }
    }
}

/// Which variants.
#[derive(Clone, Debug, PartialEq)]
pub struct IopsOptions {
    /// Drivers.
    pub drivers: Vec<DriverName>,
    /// Numbers of submitting threads.
    pub threads: Vec<usize>,
    /// Sizes of batches; for file drivers also the number of I/Os outstanding.
    pub batches: Vec<usize>,
    /// Reads or writes, or both in turn.
    pub accesses: Vec<Access>,
    /// Bytes of an I/O, whole sectors.
    pub block_bytes: u64,
    /// Past the page cache, through it, or both in turn.
    pub direct: Vec<bool>,
    /// The file for file drivers; it is filled if it is too short. A temporary one in the present
    /// directory without it.
    pub file: Option<PathBuf>,
    /// Size of the file.
    pub file_bytes: u64,
    /// Whether fio runs beside the file drivers.
    pub fio: bool,
}

/// One variant.
struct Variant {
    driver: DriverName,
    /// Whether fio does it.
    fio: bool,
    threads: usize,
    batch: usize,
    work: FileWork,
}

/// What is done to the device, by us or by fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileWork {
    access: Access,
    block_bytes: u64,
    file_bytes: u64,
    /// I/Os that each thread keeps outstanding.
    depth: usize,
    direct: bool,
}
