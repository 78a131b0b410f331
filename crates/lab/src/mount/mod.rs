//! File systems in use while requests are queued and completed in chosen places.
//!
//! Source: Brunelle 2008, "IO queueing and complete affinity w/ threads", the part with file systems:
//! on twelve disks at a time one is made, the source of Linux unpacked, compiled, and cleaned up, with
//! five settings of the queues. Here the volumes are ours, mounted through FUSE by this process, on
//! files; the settings are those of the block layer below.
//!
//! All disks do a step at the same time, and all have done it before the next begins. Each step
//! mounts and unmounts, as in the source. What was built has to run, and each volume is checked.

pub(crate) mod chapter;
mod disk;
pub(crate) mod figure;
mod outcome;
mod project;
pub(crate) mod table;

use std::path::{Path, PathBuf};
use std::thread;

use undercroft_block::Statistics;

pub use outcome::{MountOutcome, Step, StepTimes, Tunables};

use crate::error::LabError;
use crate::measure::cpus::usable_cpus;
use crate::measure::crew::{Gate, dismiss, muster};
use crate::measure::scratch::{Scratch, lasting};
use crate::options::RunOptions;
use crate::outcome::Outcome;
use disk::{Disk, Series};
use project::Project;

/// Jobs of each make, as in the source.
pub(crate) const JOBS: usize = 4;

/// What to run, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct MountOptions {
    /// A directory for the volumes and the places where they are mounted.
    pub scratch: PathBuf,
    /// Settings, which take turns.
    pub tunables: Vec<Tunables>,
    /// Volumes that are worked on at a time.
    pub disks: usize,
    /// Bytes of a volume.
    pub bytes: u64,
    /// What is built.
    pub source: Source,
}

/// What is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A project of so many files in C, the same for the same seed.
    Generated(usize),
    /// The tree in this archive, which `make` builds, after `configure` if there is no makefile.
    Archive(PathBuf),
}

/// What the experiment needs and this machine has not, in words.
#[must_use]
pub fn missing() -> Option<String> {
    if !Path::new("/dev/fuse").exists() {
        return Some("there is no /dev/fuse: load the kernel module `fuse`".to_owned());
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&search).any(|at| at.join(name).is_file());
    let program = ["tar", "make", "cc"].into_iter().find(|name| !is_there(name))?;
    Some(format!("the program `{program}` is missing"))
}

/// One run of all steps with one setting, on all disks.
struct Run {
    /// Of each disk, by step.
    seconds: Vec<(Step, Vec<f64>)>,
    statistics: Vec<Statistics>,
}

/// Runs the experiment; `found` gets the outcome of each setting at the end.
///
/// # Errors
/// A volume cannot be made or mounted, a program that builds is missing or failed, or what was left
/// is not sound, which is a defect of what was measured.
pub fn run(
    options: &MountOptions,
    run: &RunOptions,
    found: &mut dyn FnMut(Outcome),
) -> Result<(), LabError> {
    let scratch = Scratch::new_in(&options.scratch)?;
    let cpus = usable_cpus()?;
    let source = match &options.source {
        Source::Generated(files) => Source::Generated(run.sized(*files, 2)),
        archive @ Source::Archive(_) => archive.clone(),
    };
    let project = Project::new(&source, run.seed, scratch.path())?;
    let disks = (0..options.disks)
        .map(|index| Disk::make(scratch.path(), index, options.bytes, cpus[index % cpus.len()]))
        .collect::<Result<Vec<_>, _>>()?;
    let bench = Bench { disks: &disks, cpus: &cpus, project: &project };
    let rows = &options.tunables;
    // Programs and images get into the page cache before anything counts.
    if let (Some(first), false) = (rows.first(), run.sized(false, true)) {
        bench.run(*first)?;
    }
    let mut tallies: Vec<Vec<Run>> = rows.iter().map(|_| Vec::new()).collect();
    for repeat in 0..run.repeats(3) {
        for turn in 0..rows.len() {
            let index = (turn + repeat) % rows.len();
            tallies[index].push(bench.run(rows[index])?);
        }
    }
    for (tunables, runs) in rows.iter().zip(&tallies) {
        found(Outcome::Mount(outcome(*tunables, &project, disks.len(), runs)));
    }
    Ok(())
}

/// What all runs share.
struct Bench<'a> {
    disks: &'a [Disk],
    cpus: &'a [u32],
    project: &'a Project,
}

impl Bench<'_> {
    /// All steps, on all disks at a time.
    fn run(&self, tunables: Tunables) -> Result<Run, LabError> {
        let series = self.disks.iter().map(|disk| disk.begin(tunables, self.cpus));
        let series = series.collect::<Result<Vec<_>, _>>()?;
        let mut seconds = Vec::new();
        for step in Step::ALL {
            seconds.push((step, all(&series, |one| one.timed(step, self.project))?));
            if step == Step::Make {
                all(&series, |one| one.prove(self.project))?;
            }
        }
        let statistics = series.iter().map(Series::statistics).collect();
        series.into_iter().try_for_each(Series::judge)?;
        Ok(Run { seconds, statistics })
    }
}

/// Does `work` on all disks at the same time.
fn all<T: Send>(
    series: &[Series],
    work: impl Fn(&Series) -> Result<T, LabError> + Sync,
) -> Result<Vec<T>, LabError> {
    // The end of this process would leave mounts that nothing answers.
    let _lasting = lasting();
    let gate = Gate::default();
    let work = &work;
    thread::scope(|scope| {
        let threads = muster(scope, &gate, series.len(), |index| work(&series[index]))?;
        gate.open();
        dismiss(threads).into_iter().collect()
    })
}

fn outcome(tunables: Tunables, project: &Project, disks: usize, runs: &[Run]) -> MountOutcome {
    let of_step = |step| {
        let parts = runs.iter().flat_map(|run| &run.seconds).filter(|(of, _)| *of == step);
        StepTimes { step, seconds: parts.flat_map(|(_, seconds)| seconds).copied().collect() }
    };
    let all: Statistics = runs.iter().flat_map(|run| &run.statistics).copied().sum();
    let mean = |count: u64| count as f64 / (disks * runs.len()).max(1) as f64;
    MountOutcome {
        tunables,
        project: project.name().to_owned(),
        disks,
        jobs: JOBS,
        steps: Step::ALL.map(of_step).into(),
        q_local: mean(all.queued_local),
        q_remote: mean(all.queued_remote),
        c_local: mean(all.completed_local),
        c_remote: mean(all.completed_remote),
    }
}
