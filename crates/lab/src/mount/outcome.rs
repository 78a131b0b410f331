//! The outcome of work on mounted volumes with one setting of queues.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::statistics::CaseRates;

/// The settings of the queue of a device, with the names of 2008.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tunables {
    /// Requests are started on the CPU of the device; else where they are submitted.
    pub queue_affinity: bool,
    /// They are completed on the CPU of the device; else as `rq_affinity` says.
    pub completion_affinity: bool,
    /// 0: where the end is noticed; 1: in the cache group of the submitter.
    pub rq_affinity: u8,
}

impl Tunables {
    /// The rows of the tables of 2008, the defaults first.
    pub const ROWS: [Self; 5] = [
        Self::new(false, false, 0),
        Self::new(false, false, 1),
        Self::new(false, true, 0),
        Self::new(true, false, 0),
        Self::new(true, true, 1),
    ];

    const fn new(queue_affinity: bool, completion_affinity: bool, rq_affinity: u8) -> Self {
        Self { queue_affinity, completion_affinity, rq_affinity }
    }
}

impl fmt::Display for Tunables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue_affinity, completion_affinity, rq_affinity } = *self;
        let (queue, completion) = (u8::from(queue_affinity), u8::from(completion_affinity));
        f.pad(&format!("q{queue}.c{completion}.rq{rq_affinity}"))
    }
}

/// A part of the work on each volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// An empty volume is made.
    Mkfs,
    /// A source tree is unpacked.
    Untar,
    /// It is compiled.
    Make,
    /// What the compiler made is deleted.
    Clean,
}

impl Step {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::Mkfs, Self::Untar, Self::Make, Self::Clean];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mkfs => "mkfs",
            Self::Untar => "untar",
            Self::Make => "make",
            Self::Clean => "clean",
        }
    }
}

/// How long a step took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTimes {
    /// The step.
    pub step: Step,
    /// Seconds with mount and unmount: all disks of the first run, then those of the second.
    pub seconds: Vec<f64>,
}

/// The steps with one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MountOutcome {
    /// The setting.
    pub tunables: Tunables,
    /// The tree that was built.
    pub project: String,
    /// Volumes that were worked on at a time.
    pub disks: usize,
    /// Jobs of each make.
    pub jobs: usize,
    /// Each step.
    pub steps: Vec<StepTimes>,
    /// I/Os queued on the CPU of their submitter: mean of the disks and runs, as are the next three.
    pub q_local: f64,
    /// I/Os queued on another CPU.
    pub q_remote: f64,
    /// Requests completed where their end was noticed.
    pub c_local: f64,
    /// Requests completed on another CPU.
    pub c_remote: f64,
}

impl MountOutcome {
    /// What was done, and how often.
    pub(crate) fn title(&self) -> String {
        format!(
            "mount: {} built on {} mounted volumes at a time, make -j{}",
            self.project, self.disks, self.jobs
        )
    }

    /// How often each step could be done in a second.
    pub(crate) fn rates(&self) -> Vec<CaseRates> {
        let steps = Step::ALL.into_iter().map(|step| {
            let Self { project, disks, tunables, .. } = self;
            let case = format!("mount, {project}, {disks} disks, {tunables}, {}", step.name());
            let seconds = self.runs_of(step);
            CaseRates::new(case, seconds.iter().map(|seconds| seconds.recip()).collect())
        });
        steps.collect()
    }

    /// Seconds of a step, the mean of the disks, run by run.
    pub(crate) fn runs_of(&self, step: Step) -> Vec<f64> {
        let found = self.steps.iter().filter(|times| times.step == step);
        let runs = found.flat_map(|times| times.seconds.chunks(self.disks.max(1)));
        runs.map(|run| run.iter().sum::<f64>() / run.len() as f64).collect()
    }
}
