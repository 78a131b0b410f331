//! Empty files: how fast they are created, looked at and deleted.
//!
//! Operations on metadata alone are measured: directories, inodes, the journal. One generator works
//! on a volume of ours, whose operations are calls of a library, and in any mounted directory,
//! where each is one system call on an open directory: `mknodat`, `fstatat`, `unlinkat`. Places
//! take turns, round after round, so that a disturbance of the machine hits all of them.

mod case;
pub(crate) mod chapter;
pub(crate) mod figure;
mod generator;
mod mounted;
mod outcome;
mod summary;
pub(crate) mod table;
mod target;
mod volume;

pub use outcome::{MetaOutcome, Operation, Speed};

use crate::error::LabError;
use crate::measure::destination::{Destination, mounted_kind};
use crate::options::RunOptions;
use crate::outcome::Outcome;
use case::Case;
use generator::{Round, run_round};
use mounted::Mounted;
use summary::summary;
use target::Target;
use volume::VolumeTarget;

/// What to run, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaOptions {
    /// Where; they take turns.
    pub places: Vec<Destination>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Numbers of directories that the files are spread over.
    pub directories: Vec<usize>,
    /// Files of all threads together.
    pub files: usize,
}

/// Runs the experiment; `found` gets each outcome as soon as it is there. Nothing stays.
///
/// # Errors
/// A place cannot be used, or an operation in it failed.
pub fn run(
    options: &MetaOptions,
    run: &RunOptions,
    found: &mut dyn FnMut(Outcome),
) -> Result<(), LabError> {
    let targets = options.places.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let files = run.sized(options.files, options.files.min(200));
    for &directories in &options.directories {
        for &threads in &options.threads {
            let case = Case { threads, directories, files };
            let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); targets.len()];
            for _ in 0..run.repeats(3) {
                for ((target, _), rounds) in targets.iter().zip(&mut rounds) {
                    rounds.push(run_round(target.as_ref(), case)?);
                }
            }
            for ((_, name), rounds) in targets.iter().zip(rounds) {
                found(Outcome::Meta(summary(name.clone(), case, &rounds)));
            }
        }
    }
    targets.into_iter().try_for_each(|(target, _)| target.close())
}

/// What a place is, and its name in the tables.
fn open(place: &Destination) -> Result<(Box<dyn Target>, String), LabError> {
    Ok(match place {
        Destination::Image(path, bytes) => {
            (Box::new(VolumeTarget::open(path, *bytes)?), "undercroft".into())
        }
        Destination::Directory(path) => (Box::new(Mounted::new(path)), mounted_kind(path)),
    })
}
