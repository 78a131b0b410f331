//! Experiments on tags: wake policies against each other.
//!
//! Sources: the counters of 2022 (Krisman, lore 20221105231055.25953-1-krisman@suse.de), the
//! variability of cyclic wait queues of 2014 (Chinner and Axboe on `aio_fsync`), the case for fair
//! shares (Busch, lore Zljl3kAfL0WfFkoZ@kbusch-mbp), and the herd that exclusive waits ended (Linux
//! commit 4e5dff41be7b).

pub(crate) mod chapters;
mod device;
pub(crate) mod figure;
mod outcome;
mod run;
pub(crate) mod table;
mod worker;

use std::num::NonZeroU64;
use std::time::Duration;

pub use outcome::{PolicyName, TagsOutcome, Waiters};

use crate::error::LabError;
use crate::measure::latency::LatencyRecorder;
use crate::measure::rate::{Rate, Window, per};
use crate::options::RunOptions;
use crate::outcome::Outcome;
use device::Service;
use run::{Class, Counts, Measured, Setup};

/// One of the published situations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// 20 workers with 64 outstanding each, one hardware queue, 2 to 64 tags.
    Depth,
    /// 40 workers with 64 outstanding each on 20 hardware queues that share 2 to 64 tags.
    Shared,
    /// 1,000 threads with one I/O each on 32 tags.
    Herd,
    /// 63 tags for a reader with one 512-byte read at a time and one with 256 of 128 KiB, with and
    /// without fair shares. The device is one that moves some 1.9 GB a second and answers a small
    /// read after 0.3 ms, as the published figures say.
    Fairness,
    /// 1,000 threads with one I/O each on 128 tags, ten times.
    Variability,
}

impl Case {
    /// Every case.
    pub const ALL: [Self; 5] =
        [Self::Depth, Self::Shared, Self::Herd, Self::Fairness, Self::Variability];
}

/// Which variants of which cases.
#[derive(Clone, Debug, PartialEq)]
pub struct TagsOptions {
    /// Cases, in this order.
    pub cases: Vec<Case>,
    /// Policies that take turns in each.
    pub policies: Vec<PolicyName>,
    /// The waiter for a tag.
    pub waiters: Waiters,
}

/// Depths of the tables of 2022.
const DEPTHS: [u32; 6] = [2, 4, 8, 16, 32, 64];
/// Hardware queues of the second table of 2022.
const SHARED_QUEUES: usize = 20;
/// Bytes of an I/O where its size does not matter.
const BLOCK: u64 = 4096;
/// The small and the large reader of the case for fair shares.
const READERS: [Class; 2] = [
    Class { workers: 1, outstanding: 1, bytes: 512 },
    Class { workers: 1, outstanding: 256, bytes: 128 << 10 },
];
/// How the device of that case is: the published latency of the small reader when it has its share,
/// and the bandwidth of the large one when it has the device for itself.
const READERS_SERVICE: Service = Service {
    latency: Duration::from_micros(300),
    bytes_per_second: NonZeroU64::new(14_800 * (128 << 10)),
};

/// Runs the experiment; `found` gets each outcome when its case is through.
///
/// # Errors
/// A thread could not be started, or the measured code has a defect that shows in the sums.
pub fn run(
    options: &TagsOptions,
    run: &RunOptions,
    found: &mut dyn FnMut(Outcome),
) -> Result<(), LabError> {
    for &case in &options.cases {
        let repeats = run.repeats(if case == Case::Variability { 10 } else { 5 });
        let variants = variants(case, options, run);
        let mut tallies: Vec<Tally> = variants.iter().map(|_| Tally::default()).collect();
        for repeat in 0..repeats {
            // The first one changes, so that no variant always follows the same one.
            for turn in 0..variants.len() {
                let index = (turn + repeat) % variants.len();
                tallies[index].add(variants[index].run()?);
            }
        }
        for (setup, tally) in variants.iter().zip(&tallies) {
            for class in 0..setup.classes.len() {
                found(named(case, tally.outcome(setup, class)));
            }
        }
    }
    Ok(())
}

fn named(case: Case, outcome: TagsOutcome) -> Outcome {
    match case {
        Case::Depth => Outcome::TagsDepth(outcome),
        Case::Shared => Outcome::TagsShared(outcome),
        Case::Herd => Outcome::TagsHerd(outcome),
        Case::Fairness => Outcome::TagsFairness(outcome),
        Case::Variability => Outcome::TagsVariability(outcome),
    }
}

/// Every variant of `case`, those to be compared side by side.
fn variants(case: Case, options: &TagsOptions, run: &RunOptions) -> Vec<Setup> {
    let crowd = |workers, outstanding| vec![Class { workers, outstanding, bytes: BLOCK }];
    let depths = run.sized(DEPTHS.to_vec(), vec![2, 64]);
    let (depths, queues, classes, shares): (Vec<u32>, usize, Vec<Class>, &[bool]) = match case {
        Case::Depth => (depths, 1, crowd(run.sized(20, 4), run.sized(64, 16)), &[false]),
        Case::Shared => {
            (depths, SHARED_QUEUES, crowd(run.sized(40, 8), run.sized(64, 16)), &[false])
        }
        Case::Herd => (vec![run.sized(32, 4)], 1, crowd(run.sized(1000, 40), 1), &[false]),
        Case::Variability => (vec![run.sized(128, 16)], 1, crowd(run.sized(1000, 40), 1), &[false]),
        Case::Fairness => (vec![63], READERS.len(), READERS.to_vec(), &[false, true]),
    };
    let service = if case == Case::Fairness { READERS_SERVICE } else { Service::default() };
    let duration = run.run_time(Duration::from_millis(200));
    let mut variants = Vec::new();
    for &depth in &depths {
        for &fair in shares {
            for &policy in &options.policies {
                let (classes, waiters) = (classes.clone(), options.waiters);
                variants.push(Setup {
                    policy,
                    depth,
                    queues,
                    fair,
                    waiters,
                    classes,
                    service,
                    duration,
                });
            }
        }
    }
    variants
}

/// The runs of one variant.
#[derive(Default)]
struct Tally {
    /// Length and counts of the window of each run.
    windows: Vec<(Duration, Counts)>,
    /// Latencies of all runs, by class.
    latencies: Vec<LatencyRecorder>,
}

impl Tally {
    fn add(&mut self, measured: Measured) {
        self.windows.push((measured.elapsed, measured.window));
        self.latencies.resize_with(measured.latencies.len(), LatencyRecorder::default);
        for (sum, part) in self.latencies.iter_mut().zip(&measured.latencies) {
            sum.merge(part);
        }
    }

    /// What workers of `class` had. Counts that are not kept by class are those of all.
    fn outcome(&self, setup: &Setup, class: usize) -> TagsOutcome {
        let windows: Vec<Window> = self
            .windows
            .iter()
            .map(|(elapsed, counts)| Window {
                elapsed: *elapsed,
                ios: counts.ios[class],
                all_ios: counts.ios.iter().sum(),
                usage: counts.usage,
            })
            .collect();
        let sum = |of: &dyn Fn(&Counts) -> u64| -> u64 {
            self.windows.iter().map(|(_, counts)| of(counts)).sum()
        };
        let of = setup.classes[class];
        TagsOutcome {
            policy: setup.policy,
            workers: of.workers,
            outstanding: of.outstanding,
            waiters: setup.waiters,
            queues: setup.queues,
            depth: setup.depth,
            fair: setup.fair,
            reader: reader(setup, class),
            rate: Rate::of(setup.duration, &windows),
            sleeps_per_get: per(sum(&|counts| counts.sleeps), sum(&|counts| counts.gets)),
            wakes_per_put: per(sum(&|counts| counts.wakes), sum(&|counts| counts.puts)),
            wakes_used_per_put: per(sum(&|counts| counts.wakes_used), sum(&|counts| counts.puts)),
            latency: self.latencies[class].latency(),
        }
    }
}

/// What tells workers of `class` from others; nothing where all are alike.
fn reader(setup: &Setup, class: usize) -> String {
    if setup.classes.len() == 1 {
        return String::new();
    }
    let Class { outstanding, bytes, .. } = setup.classes[class];
    match bytes {
        bytes if bytes >= 1024 => format!("{} KiB x {outstanding}", bytes >> 10),
        bytes => format!("{bytes} B x {outstanding}"),
    }
}
