//! The load of a workload.

use std::time::Duration;

use super::outcome::Workload;
use crate::options::RunOptions;

/// The I/O of the applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) devices: usize,
    pub(super) outstanding: usize,
    pub(super) block_bytes: u64,
    /// Bytes that an application reads round and round, in sequence.
    pub(super) range_bytes: u64,
    /// Blocks from the start of a read to that of the next one.
    pub(super) step_blocks: u64,
    /// Whether the applications are connections of a server.
    pub(super) is_served: bool,
    pub(super) service_time: Duration,
}

impl Workload {
    /// Its numbers in a run.
    pub(super) fn load(self, run: &RunOptions) -> Load {
        match self {
            Self::Large => Load {
                devices: run.sized(12, 2),
                outstanding: run.sized(16, 4),
                block_bytes: 256 << 10,
                range_bytes: 1 << 40,
                step_blocks: 1,
                is_served: false,
                service_time: run.sized(Duration::from_millis(5), Duration::from_micros(100)),
            },
            Self::Cached => Load {
                devices: 2,
                outstanding: run.sized(16, 4),
                block_bytes: 4096,
                range_bytes: 2 << 20,
                step_blocks: 1,
                is_served: false,
                service_time: Duration::ZERO,
            },
            // With a gap between two reads, as a client would merge them and hide the counts.
            Self::Served => Load { step_blocks: 2, is_served: true, ..Self::Cached.load(run) },
        }
    }
}
