//! `undercroft lab affinity`.

use super::runner::{self, CommonArgs, chosen_or};
use crate::report::Outcome;
use anyhow::Result;
use clap::ValueEnum;
use std::io::Write;
use undercroft_lab::affinity::{self, AffinityOptions, Mechanism, Workload};

/// Queue and complete on chosen CPUs: the effect of placement.
///
/// In 2008 Axboe made it a choice where requests are queued and completed, and Brunelle measured
/// every combination on machines with up to 144 disks. Each device has a CPU that takes its
/// interrupts (I) and an application (A). A row names three places:
///
///   A   of the application: I, on the CPU of the interrupts, or X, on another
///   Q   of queueing:        A, with the application; I, with the interrupts; X, on another
///   C   of completion:      likewise
///
/// The last rows let the application run anywhere, queue where it runs, and complete as rq_affinity
/// says: 0 where the interrupt was, 1 on a CPU that shares a cache with the submitter, 2 on the
/// submitter's. (2 is younger than the source.)
///
/// Completions move to their CPU by lists that threads drain (threads), or by messages between
/// rings (ring-messages), the counterpart of the cross-CPU interrupts in the first patches.
///
/// On a machine with two CPUs, X of queueing or completion is the application's CPU when that is on
/// X. The columns on the right name the CPUs of the roles, for the first device. Each further
/// device uses the next CPU for each role.
///
///   large    12 devices that take 5 ms, 16 reads of 256 KiB outstanding on each
///   cached   2 devices that answer at once, 16 reads of 4 KiB outstanding on each, within 2 MiB
///   served   the same, behind a network disk server (NBD): an application is the thread of a
///            connection, which queues where it runs; its client, whose work is in CPU us/IO and
///            switches, runs anywhere. Where a request completes, its answer is sent
///
/// Reading the table: MBPS is of all devices. Avg Lat and StdDev, in seconds, are means of the
/// devices, and so are the counts: I/Os queued on the application's CPU (Q-local) or on another
/// (Q-remote), requests completed on the CPU of the interrupt (C-local) or on another (C-remote).
/// The counts must be those that the row asks for. Two reads merge into a request, so C is about
/// half of Q, as in the source (not in served). In the source throughput hardly differed; look at
/// CPU us/IO.
///
/// For example: undercroft lab affinity --workload cached --mechanism threads
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Only this workload.
    #[arg(long = "workload", value_name = "WORKLOAD")]
    workloads: Vec<WorkloadArg>,

    /// Only this mechanism.
    #[arg(long = "mechanism", value_name = "MECHANISM")]
    mechanisms: Vec<MechanismArg>,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum WorkloadArg {
    Large,
    Cached,
    Served,
}

#[derive(Clone, Copy, ValueEnum)]
enum MechanismArg {
    Threads,
    RingMessages,
}

impl From<WorkloadArg> for Workload {
    fn from(workload: WorkloadArg) -> Self {
        match workload {
            WorkloadArg::Large => Self::Large,
            WorkloadArg::Cached => Self::Cached,
            WorkloadArg::Served => Self::Served,
        }
    }
}

impl From<MechanismArg> for Mechanism {
    fn from(mechanism: MechanismArg) -> Self {
        match mechanism {
            MechanismArg::Threads => Self::Threads,
            MechanismArg::RingMessages => Self::RingMessages,
        }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let defaults = AffinityOptions::default();
    let options = AffinityOptions {
        workloads: chosen_or(&args.workloads, &defaults.workloads),
        mechanisms: chosen_or(&args.mechanisms, &defaults.mechanisms),
        placements: defaults.placements,
    };
    runner::run(&args.common, out, |run, found| affinity::run(&options, run, found))?;
    Ok(Outcome::Done)
}
