//! How many I/Os a second the layer does, and what one costs: the null driver for each number of
//! threads and size of batches, and the file drivers beside fio.
//!
//! Each submitting thread claims a hardware queue and runs to completion: it submits a batch under
//! a plug, and collects completions from a queue of its own. On the null device a batch ends where
//! it is submitted; on a file a thread keeps as many I/Os outstanding as a batch has, as fio does.
//!
//! Figures to hold beside: SPDK's null device does 10.8 million I/Os a second on one core
//! (spdk@055de83ac6).

pub(crate) mod chapter;
mod device;
pub(crate) mod figure;
mod file;
mod fio;
mod outcome;
pub(crate) mod table;
mod variant;
mod work;
mod worker;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use outcome::{Access, IopsOutcome};
pub use variant::DriverName;

use crate::error::LabError;
use crate::measure::rate::{Rate, Window};
use crate::options::RunOptions;
use crate::outcome::Outcome;
use file::TestFile;
use variant::Variant;
use work::FileWork;
use worker::Crowd;

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

impl Default for IopsOptions {
    /// The null driver, on one and two threads, for every size of batches that is a power of two up
    /// to 64; 4 KiB reads. For files: direct, 256 MiB.
    fn default() -> Self {
        Self {
            drivers: vec![DriverName::Null],
            threads: vec![1, 2],
            batches: vec![1, 2, 4, 8, 16, 32, 64],
            accesses: vec![Access::Read],
            block_bytes: 4096,
            direct: vec![true],
            file: None,
            file_bytes: 256 << 20,
            fio: false,
        }
    }
}

/// Runs the experiment; `found` gets each outcome when all variants are through.
///
/// # Errors
/// A device, a thread or the file cannot be had; an I/O failed; fio is missing or failed.
pub fn run(
    options: &IopsOptions,
    run: &RunOptions,
    found: &mut dyn FnMut(Outcome),
) -> Result<(), LabError> {
    let variants = variants(options, run);
    let uses_file = variants.iter().any(|variant| variant.driver.engine().is_some());
    let file_bytes = file_bytes(options, run);
    let file = uses_file
        .then(|| TestFile::prepare(options.file.as_deref(), file_bytes, run.seed))
        .transpose()?;
    let path = file.as_ref().map_or(Path::new(""), TestFile::path);
    let duration = run.run_time(Duration::from_millis(500));
    let repeats = run.repeats(5);
    let mut windows: Vec<Vec<Window>> = variants.iter().map(|_| Vec::new()).collect();
    for repeat in 0..repeats {
        for turn in 0..variants.len() {
            let index = (turn + repeat) % variants.len();
            windows[index].push(variants[index].run(path, duration, run.seed + repeat as u64)?);
        }
    }
    for (variant, windows) in variants.iter().zip(&windows) {
        found(Outcome::Iops(variant.outcome(Rate::of(duration, windows))));
    }
    Ok(())
}

/// Bytes of the file, whole blocks.
fn file_bytes(options: &IopsOptions, run: &RunOptions) -> u64 {
    let bytes = run.sized(options.file_bytes, 1 << 20).max(options.block_bytes);
    bytes - bytes % options.block_bytes
}

/// Every variant; those of one driver side by side, fio after the driver it is compared with.
fn variants(options: &IopsOptions, run: &RunOptions) -> Vec<Variant> {
    let mut variants = Vec::new();
    let any_cache: &[bool] = &[false];
    for &driver in &options.drivers {
        let is_file = driver.engine().is_some();
        for &access in &options.accesses {
            for &direct in if is_file { &options.direct } else { any_cache } {
                for &threads in &options.threads {
                    for &batch in &options.batches {
                        let work = FileWork {
                            access,
                            block_bytes: options.block_bytes,
                            file_bytes: file_bytes(options, run),
                            depth: batch,
                            direct,
                        };
                        variants.push(Variant { driver, fio: false, threads, batch, work });
                        if options.fio && is_file {
                            variants.push(Variant { driver, fio: true, threads, batch, work });
                        }
                    }
                }
            }
        }
    }
    variants
}

impl Variant {
    fn run(&self, path: &Path, duration: Duration, seed: u64) -> Result<Window, LabError> {
        match self.driver.engine() {
            Some(engine) if self.fio => {
                fio::run(engine, &self.work, self.threads, path, duration, seed)
            }
            _ => {
                let device = device::open(self, path)?;
                let Self { threads, batch, work, .. } = *self;
                let claim = device::is_claimed(self);
                worker::run(&device, &Crowd { threads, batch, claim, work, duration, seed })
            }
        }
    }

    fn outcome(&self, rate: Rate) -> IopsOutcome {
        let driver = match self.driver.engine() {
            Some(engine) if self.fio => engine.name(),
            _ => self.driver.name(),
        };
        IopsOutcome {
            driver: driver.to_owned(),
            access: self.work.access,
            threads: self.threads,
            batch: self.batch,
            block_bytes: self.work.block_bytes,
            direct: self.work.direct,
            rate,
        }
    }
}
