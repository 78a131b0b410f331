//! `undercroft lab tags`.

use super::runner::{self, CommonArgs, chosen_or};
use crate::report::Outcome;
use anyhow::Result;
use clap::ValueEnum;
use std::io::Write;
use undercroft_lab::tags::{self, Case, PolicyName, TagsOptions, Waiters};

/// Wait for tags: wake policies against each other.
///
/// A device takes a limited number of requests at a time; each needs a tag, a small number. A
/// submitter that finds none sleeps, and a completion that gives a tag back wakes sleepers. Which
/// it wakes, and how many, is the policy:
///
///   counters   two counters that only grow say how many wake-ups are due (Linux since 2022)
///   cyclic-8   after a batch of completions, a batch of waiters of one of eight queues (2014)
///   cyclic-1   the same with one queue, which Axboe asked Chinner to try
///   wake-one   one waiter for each completion
///   wake-all   all waiters for each completion: the herd
///
/// The device is simulated, as null_blk is: some threads complete submitted commands at once.
///
/// Cases, and what to look for:
///
///   depth        20 workers with 64 outstanding I/Os each on one hardware queue of 2 to 64 tags:
///                the first table of Krisman's patch (2022). Deeper should never be slower.
///   shared       40 workers on 20 hardware queues that share one set: the second table. Before the
///                patch, a depth of 4 was slower than one of 2.
///   herd         1,000 threads, few tags. sleeps/get and wakes/put far above 1 are a herd.
///   fairness     63 tags for a reader with one small read at a time and one with 256 large ones:
///                Busch's case for fair shares. Look at the latency of the small reader.
///   variability  ten runs with many threads: Chinner's complaint of 2014. CV is the deviation as
///                a share of the mean.
///
/// Reading the table: IOPS with the deviation of the runs in brackets. Below it, for each variant,
/// how many times as fast it is as cyclic-8, run by run (median and interval of 95 %). Then how
/// often a get slept, how many wake-ups a put granted, and how many of them led to a tag. Then
/// context switches (voluntary: slept; involuntary: preempted) and CPU time for each I/O, and the
/// time from asking for a tag to the end of the I/O in microseconds.
///
/// For example: undercroft lab tags --case depth --policy counters --policy cyclic-8
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Only this case; may be given several times.
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<CaseArg>,

    /// Only this policy; may be given several times.
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<PolicyArg>,

    /// The waiter for a tag: the thread of a worker, or one task for each outstanding I/O.
    #[arg(long, value_name = "WHO", default_value = "threads")]
    waiters: WaitersArg,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum CaseArg {
    Depth,
    Shared,
    Herd,
    Fairness,
    Variability,
}

#[derive(Clone, Copy, ValueEnum)]
enum PolicyArg {
    Counters,
    #[value(name = "cyclic-8")]
    Cyclic8,
    #[value(name = "cyclic-1")]
    Cyclic1,
    WakeOne,
    WakeAll,
}

#[derive(Clone, Copy, ValueEnum)]
enum WaitersArg {
    Threads,
    Tasks,
}

impl From<CaseArg> for Case {
    fn from(case: CaseArg) -> Self {
        match case {
            CaseArg::Depth => Self::Depth,
            CaseArg::Shared => Self::Shared,
            CaseArg::Herd => Self::Herd,
            CaseArg::Fairness => Self::Fairness,
            CaseArg::Variability => Self::Variability,
        }
    }
}

impl From<PolicyArg> for PolicyName {
    fn from(policy: PolicyArg) -> Self {
        match policy {
            PolicyArg::Counters => Self::Counters,
            PolicyArg::Cyclic8 => Self::Cyclic8,
            PolicyArg::Cyclic1 => Self::Cyclic1,
            PolicyArg::WakeOne => Self::WakeOne,
            PolicyArg::WakeAll => Self::WakeAll,
        }
    }
}

impl From<WaitersArg> for Waiters {
    fn from(waiters: WaitersArg) -> Self {
        match waiters {
            WaitersArg::Threads => Self::Threads,
            WaitersArg::Tasks => Self::Tasks,
        }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let options = TagsOptions {
        cases: chosen_or(&args.cases, &Case::ALL),
        policies: chosen_or(&args.policies, &PolicyName::ALL),
        waiters: args.waiters.into(),
    };
    runner::run(&args.common, out, |run, found| tags::run(&options, run, found))?;
    Ok(Outcome::Done)
}
