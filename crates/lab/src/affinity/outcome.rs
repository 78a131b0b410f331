//! The outcome of one placement of queueing and completion.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measure::rate::Rate;
use crate::statistics::CaseRates;

/// A CPU by its role in the experiment, as the tables of 2008 name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The CPU of the application.
    A,
    /// The CPU that takes the interrupts of the device.
    I,
    /// Another CPU.
    X,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::A => "A",
            Self::I => "I",
            Self::X => "X",
        })
    }
}

/// Where things happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Placement {
    /// The application, queueing and completion each have their CPU.
    Pinned {
        /// [`Role::X`] or [`Role::I`].
        application: Role,
        /// Any role.
        queue: Role,
        /// Any role.
        completion: Role,
    },
    /// The application goes where the scheduler puts it; queueing is where it is, and completion
    /// follows `rq_affinity`.
    Free {
        /// 0: where the interrupt is; 1: in the cache group of the submitter; 2: on its CPU.
        rq_affinity: u8,
    },
}

impl Placement {
    /// The rows of the tables of 2008, and one for the `rq_affinity` of 2 that came later.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for application in [Role::X, Role::I] {
            for queue in [Role::X, Role::A, Role::I] {
                for completion in [Role::X, Role::A, Role::I] {
                    all.push(Self::Pinned { application, queue, completion });
                }
            }
        }
        all.extend([0, 1, 2].map(|rq_affinity| Self::Free { rq_affinity }));
        all
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned { application, queue, completion } => {
                write!(f, "{application} {queue} {completion}")
            }
            Self::Free { rq_affinity } => write!(f, "rq={rq_affinity}"),
        }
    }
}

/// How a completion gets to the CPU where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// By a list for each CPU, drained by a thread there (the kthreads of 2008).
    Threads,
    /// By messages between rings (the cross-CPU interrupts of 2008).
    RingMessages,
}

impl Mechanism {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Threads, Self::RingMessages];
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Threads => "threads",
            Self::RingMessages => "ring-messages",
        })
    }
}

/// What the applications do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Large reads of many devices that take their time: the first tables of 2008.
    Large,
    /// Reads of 4 KiB in a small range of two devices that answer at once, as from the cache of a
    /// controller: the last measurement of 2008.
    Cached,
    /// The same through a network disk server: each application is the thread of a connection, whose
    /// client is wherever the scheduler puts it. Reads do not follow each other, so none merge.
    Served,
}

impl Workload {
    /// All.
    pub const ALL: [Self; 3] = [Self::Large, Self::Cached, Self::Served];

    /// Whether it has such a row: a connection queues where it runs.
    #[must_use]
    pub fn has(self, row: Placement) -> bool {
        self != Self::Served || !matches!(row, Placement::Pinned { queue: Role::X | Role::I, .. })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Large => "large",
            Self::Cached => "cached",
            Self::Served => "served",
        })
    }
}

/// Numbers of the CPUs that have the roles of a row, for one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpus {
    /// Of the interrupts.
    pub interrupt: u32,
    /// Of the application; none where the scheduler chooses.
    pub application: Option<u32>,
    /// Of queueing; none where it is the application's, wherever that is.
    pub queue: Option<u32>,
    /// Of completion; none where `rq_affinity` chooses.
    pub completion: Option<u32>,
}

/// What one placement did with one mechanism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AffinityOutcome {
    /// What the applications did.
    pub workload: Workload,
    /// Where things happened.
    pub placement: Placement,
    /// How completions were redirected.
    pub mechanism: Mechanism,
    /// Which CPUs that meant for the first device; for each further one all move on by one CPU.
    pub on: Cpus,
    /// Number of devices, each with an application of its own.
    pub devices: usize,
    /// I/Os that an application keeps outstanding.
    pub outstanding: usize,
    /// Bytes of an I/O.
    pub block_bytes: u64,
    /// I/Os a second and their cost, for all devices.
    #[serde(flatten)]
    pub rate: Rate,
    /// Megabytes (10^6 bytes) a second, for all devices.
    pub mbps: f64,
    /// Mean latency of an I/O in seconds.
    pub latency_seconds: f64,
    /// Standard deviation of the latency: the mean of those of the devices.
    pub latency_stddev: f64,
    /// Requests queued on the CPU of their submitter: mean of the devices, as are the next three.
    pub q_local: f64,
    /// Requests queued on another CPU.
    pub q_remote: f64,
    /// Requests completed on the CPU of the interrupt.
    pub c_local: f64,
    /// Requests completed on another CPU.
    pub c_remote: f64,
}

impl AffinityOutcome {
    /// What was done, and how often.
    pub(crate) fn title(&self) -> String {
        format!(
            "affinity: queueing and completion on chosen CPUs; {} runs of {} s",
            self.rate.repeats, self.rate.seconds
        )
    }

    /// I/Os a second.
    pub(crate) fn rates(&self) -> CaseRates {
        let case = format!("affinity, {}, {}, {}", self.workload, self.mechanism, self.placement);
        CaseRates::new(case, self.rate.iops_of_runs.clone())
    }
}
