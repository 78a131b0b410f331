//! One case of the experiment.

use super::outcome::Mode;

/// The data written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Files of one size, `files` by each thread in an iteration.
    Equal {
        /// Files.
        files: u64,
        /// Bytes of each.
        size: u64,
    },
    /// Files of all sizes from 4 KiB to 500 MB, the logarithm of the size evenly spread, until all
    /// threads together have written so many bytes.
    Filebench {
        /// Bytes.
        total: u64,
    },
}

/// One case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) mode: Mode,
    pub(super) threads: usize,
    pub(super) directories: usize,
    pub(super) workload: Workload,
    pub(super) warm_up: usize,
    pub(super) iterations: usize,
    pub(super) seed: u64,
}
