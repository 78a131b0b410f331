//! The generator: the same operations in the same order wherever.

use std::thread;
use std::time::{Duration, Instant};

use super::case::Case;
use super::outcome::Operation;
use super::target::{Directories, Target};
use crate::error::LabError;
use crate::measure::crew::{Gate, dismiss, muster};
use crate::measure::usage::Usage;

/// What one operation on all files took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    /// Until the last call had returned.
    pub(super) calls: Duration,
    /// The same and a sync of everything.
    pub(super) durable: Duration,
    /// CPU time of the process until then, in nanoseconds.
    pub(super) cpu_ns: u64,
}

/// What each operation took, in the order of [`Operation::ALL`].
pub(super) type Round = [Phase; 3];

/// Creates all files, looks at each, and deletes them.
pub(super) fn run_round(target: &dyn Target, case: Case) -> Result<Round, LabError> {
    let directories = target.make_directories(case.directories)?;
    target.sync()?;
    let mut phases = Vec::with_capacity(Operation::ALL.len());
    for operation in Operation::ALL {
        let (start, usage) = (Instant::now(), Usage::now());
        run_phase(directories.as_ref(), case, operation)?;
        let calls = start.elapsed();
        target.sync()?;
        let durable = start.elapsed();
        phases.push(Phase { calls, durable, cpu_ns: (Usage::now() - usage).cpu_ns });
    }
    directories.remove()?;
    target.sync()?;
    Ok([phases[0], phases[1], phases[2]])
}

fn run_phase(
    directories: &dyn Directories,
    case: Case,
    operation: Operation,
) -> Result<(), LabError> {
    let life = |thread: usize| -> Result<(), LabError> {
        let mut name = String::new();
        for number in (thread..case.files).step_by(case.threads) {
            use std::fmt::Write;
            // Threads have directories of their own if there are enough for all.
            let directory = number % case.directories;
            name.clear();
            // Writing to a string does not fail.
            let _ = write!(name, "file-{number:08}");
            match operation {
                Operation::Create => directories.create(directory, &name)?,
                Operation::Stat => {
                    std::hint::black_box(directories.stat(directory, &name)?);
                }
                Operation::Delete => directories.delete(directory, &name)?,
            }
        }
        Ok(())
    };
    if case.threads == 1 {
        // As a program with one thread would.
        return life(0);
    }
    let gate = Gate::default();
    thread::scope(|scope| {
        let threads = muster(scope, &gate, case.threads, life)?;
        gate.open();
        dismiss(threads).into_iter().collect()
    })
}
