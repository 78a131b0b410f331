//! Small files, each made durable: the cost of an fsync, and the saving of a ticket.
//!
//! Source: Chinner and Axboe 2014 ("xfs: wire up aio_fsync method"). fs_mark wrote 800,000
//! files of 4 KiB in an iteration and asked for the fsync of all at once, by a thread for each that
//! waited. Contexts were switched 400,000 to 800,000 times a second, and once memory was full of
//! clean pages one iteration differed from the next by a quarter and more. A later run of the same
//! idea made 4,100 to 7,300 files a second of 507 to 554, with one log write for ten fsyncs.
//!
//! One generator runs on a volume of ours, or in any mounted directory. The filebench profile of
//! 2019 has 64 writers of files from 4 KiB to 500 MB, each written and synced.

mod case;
pub(crate) mod chapter;
pub(crate) mod figure;
mod generator;
mod mounted;
mod outcome;
mod ring;
pub(crate) mod table;
mod target;
mod volume;

pub use case::Workload;
pub use outcome::{FsyncOutcome, Iteration, Mode};

use crate::error::LabError;
use crate::measure::destination::{Destination, mounted_kind};
use crate::options::{RunOptions, Size};
use crate::outcome::Outcome;
use case::Case;
use generator::run_case;
use mounted::Mounted;
use volume::VolumeTarget;

/// What to run, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct FsyncOptions {
    /// Where; each place runs every case.
    pub places: Vec<Destination>,
    /// When files are made durable.
    pub modes: Vec<Mode>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Directories of each thread, which it uses in turn.
    pub directories: usize,
    /// Iterations ahead of the measured ones, which fill the caches.
    pub warm_up: usize,
    /// The data written.
    pub workload: Workload,
}

/// Runs the experiment; `found` gets each outcome as soon as it is there. Files stay.
///
/// # Errors
/// A place cannot be used, or an operation in it failed.
pub fn run(
    options: &FsyncOptions,
    run: &RunOptions,
    found: &mut dyn FnMut(Outcome),
) -> Result<(), LabError> {
    let workload = match (options.workload, run.size) {
        (Workload::Equal { size, .. }, Size::Smoke) => {
            Workload::Equal { files: 20, size: size.min(64 << 10) }
        }
        (Workload::Filebench { .. }, Size::Smoke) => Workload::Filebench { total: 8 << 20 },
        (workload, Size::Full) => workload,
    };
    for (number, place) in options.places.iter().enumerate() {
        for &mode in &options.modes {
            for &threads in &options.threads {
                let case = Case {
                    mode,
                    threads,
                    directories: options.directories,
                    workload,
                    warm_up: options.warm_up,
                    iterations: run.repeats(1),
                    seed: run.seed.wrapping_add(number as u64),
                };
                found(Outcome::Fsync(run_at(place, &case)?));
            }
        }
    }
    Ok(())
}

fn run_at(place: &Destination, case: &Case) -> Result<FsyncOutcome, LabError> {
    match place {
        Destination::Image(path, bytes) => {
            let target = VolumeTarget::open(path, *bytes)?;
            let outcome = run_case(&target, "undercroft".into(), case)?;
            target.close()?;
            Ok(outcome)
        }
        Destination::Directory(path) => {
            let target = Mounted::new(path)?;
            run_case(&target, mounted_kind(path), case)
        }
    }
}
