//! The places where requests are queued and completed: the effect of the choice.
//!
//! Source: Brunelle and Axboe 2008, "IO queueing and complete affinity w/ threads". Each device has
//! a CPU that takes its interrupts (I) and an application on a CPU (A). Queueing (Q) and completion
//! (C) are each placed on a CPU: that of the application, that of the interrupts, or another one
//! (X). Two rows more leave the application to the scheduler and set `rq_affinity`.
//!
//! The devices are null devices. Their interrupts are threads bound to their CPU, as are the
//! threads that queue; completions move by one of two mechanisms, lists drained by threads (the
//! patch with kernel threads of 2008) and messages between rings (the one with cross-CPU
//! interrupts).

mod application;
mod bench;
pub(crate) mod chapter;
pub(crate) mod figure;
mod load;
mod outcome;
mod roles;
#[cfg(feature = "network")]
mod served;
pub(crate) mod table;

use std::time::Duration;

use undercroft_block::Statistics;

pub use outcome::{AffinityOutcome, Cpus, Mechanism, Placement, Role, Workload};

use crate::error::LabError;
use crate::measure::cpus::usable_cpus;
use crate::measure::rate::{Rate, Window};
use crate::options::RunOptions;
use crate::outcome::Outcome;
use bench::{Bench, Measured};
use load::Load;

/// Which variants.
#[derive(Clone, Debug, PartialEq)]
pub struct AffinityOptions {
    /// Workloads, one after the other.
    pub workloads: Vec<Workload>,
    /// Mechanisms, which take turns.
    pub mechanisms: Vec<Mechanism>,
    /// Rows, which take turns.
    pub placements: Vec<Placement>,
}

impl Default for AffinityOptions {
    /// Everything.
    fn default() -> Self {
        Self {
            workloads: Workload::ALL.to_vec(),
            mechanisms: Mechanism::ALL.to_vec(),
            placements: Placement::all(),
        }
    }
}

/// One row of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Variant {
    mechanism: Mechanism,
    placement: Placement,
}

/// Runs the experiment; `found` gets each outcome when its workload is through.
///
/// # Errors
/// A device or a thread cannot be had, a thread not be bound to its CPU, or an I/O failed; or the
/// counters do not add up, which is a defect of the block layer.
pub fn run(
    options: &AffinityOptions,
    run: &RunOptions,
    found: &mut dyn FnMut(Outcome),
) -> Result<(), LabError> {
    let duration = run.run_time(Duration::from_millis(300));
    let cpus = usable_cpus()?;
    for &workload in &options.workloads {
        let load = workload.load(run);
        let mut variants = Vec::new();
        for &mechanism in &options.mechanisms {
            let rows = options.placements.iter().filter(|row| workload.has(**row));
            variants.extend(rows.map(|&placement| Variant { mechanism, placement }));
        }
        let mut tallies: Vec<Vec<Measured>> = variants.iter().map(|_| Vec::new()).collect();
        for repeat in 0..run.repeats(2) {
            for turn in 0..variants.len() {
                let index = (turn + repeat) % variants.len();
                let Variant { mechanism, placement } = variants[index];
                let bench = Bench { load, mechanism, placement, cpus: &cpus, duration };
                tallies[index].push(bench.run()?);
            }
        }
        for (variant, runs) in variants.iter().zip(&tallies) {
            found(Outcome::Affinity(variant.outcome(workload, load, runs, &cpus, duration)));
        }
    }
    Ok(())
}

impl Variant {
    /// What all runs of the variant found together; counts are means of the devices.
    fn outcome(
        self,
        workload: Workload,
        load: Load,
        runs: &[Measured],
        cpus: &[u32],
        duration: Duration,
    ) -> AffinityOutcome {
        let windows: Vec<Window> = runs.iter().map(|run| run.window).collect();
        let rate = Rate::of(duration, &windows);
        let latencies = || runs.iter().flat_map(|run| &run.latencies);
        let statistics = || runs.iter().flat_map(|run| &run.statistics);
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (count, sum) =
                values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
            if count == 0 { 0.0 } else { sum / f64::from(count) }
        };
        let mean_count =
            |of: fn(&Statistics) -> u64| mean(&mut statistics().map(|one| of(one) as f64));
        AffinityOutcome {
            workload,
            placement: self.placement,
            mechanism: self.mechanism,
            on: Cpus::of_device(cpus, self.placement, 0),
            devices: load.devices,
            outstanding: load.outstanding,
            block_bytes: load.block_bytes,
            mbps: rate.iops * load.block_bytes as f64 / 1e6,
            rate,
            latency_seconds: mean(&mut latencies().map(|one| one.mean / 1e6)),
            latency_stddev: mean(&mut latencies().map(|one| one.stddev / 1e6)),
            q_local: mean_count(|one| one.queued_local),
            q_remote: mean_count(|one| one.queued_remote),
            c_local: mean_count(|one| one.completed_local),
            c_remote: mean_count(|one| one.completed_remote),
        }
    }
}
