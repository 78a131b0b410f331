//! The outcomes of the experiments on the allocator.

use serde::{Deserialize, Serialize};
use undercroft_xfs::frag::Layout;

use crate::measure::histogram::{Line, lines};
use crate::measure::latency::Latency;
use crate::statistics::CaseRates;

/// One kind of operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationTimes {
    /// Its name in the source.
    pub operation: String,
    /// CPU time in microseconds, the mean.
    pub cpu_us: f64,
    /// Times in microseconds.
    pub latency: Latency,
}

/// A run of the workload of 2019.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocOutcome {
    /// Variant of the allocator, or `kernel`.
    pub variant: String,
    /// Free space before: `clean`, `random`, or `given` on a mounted directory.
    pub free_space: String,
    /// Bytes of the volume; 0 on a mounted directory.
    pub bytes: u64,
    /// Groups; 0 on a mounted directory.
    pub groups: u32,
    /// Threads that write.
    pub writers: usize,
    /// Files that were on their way to the disk at a time.
    #[serde(default)]
    pub in_flight: usize,
    /// Share of the extents that were wanted from a group whose header was being written.
    pub header_writes: f64,
    /// Files written.
    pub files: usize,
    /// Bytes of their data.
    pub data_bytes: u64,
    /// Whether data was written; else only its space was allocated.
    pub data_written: bool,
    /// Seconds from the first operation to the last.
    pub seconds: f64,
    /// Times by operation.
    pub operations: Vec<OperationTimes>,
    /// Where the extents are; on a mounted directory `undercroft frag` tells it once it is
    /// unmounted.
    #[serde(flatten)]
    pub layout: Option<LayoutFigures>,
}

impl AllocOutcome {
    /// What was done.
    pub(crate) fn title(&self) -> String {
        format!(
            "alloc: {} files, {} MB, by {} writers",
            self.files,
            self.data_bytes >> 20,
            self.writers
        )
    }

    /// Operations a second.
    pub(crate) fn rates(&self) -> CaseRates {
        let count: u64 = self.operations.iter().map(|row| row.latency.count).sum();
        let case = format!("alloc, {} free space, {}", self.free_space, self.variant);
        CaseRates::new(case, vec![count as f64 / self.seconds])
    }
}

/// Extents of the files and directories of the run, and the free space after it; in blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutFigures {
    /// Extents.
    pub actual: u64,
    /// Least number of extents possible.
    pub ideal: u64,
    /// Files and directories with extents.
    pub inodes: u64,
    /// Blocks of a group.
    pub group_blocks: u32,
    /// Extents by distance from their hint; the last line holds those in another group.
    pub distances: Vec<Line>,
    /// Extents by distance as a part of the group: entry `k` up to 2^-k of it.
    pub distances_normalised: Vec<u64>,
    /// Median distance inside groups.
    pub median_distance: Option<u32>,
    /// Mean distance inside groups.
    pub mean_distance: Option<f64>,
    /// First extents in another group than their inode.
    pub first_switches: u64,
    /// Later extents in another group than the one before.
    pub later_switches: u64,
    /// Share of extents in another group, those of the files that made the free space counted in,
    /// as the source counts them.
    pub switches_with_fillers: f64,
    /// Free extents before the run.
    pub free_extents_before: u64,
    /// Free extents behind it.
    pub free_extents: u64,
    /// Length of the longest one behind it.
    pub longest_free: u32,
}

impl LayoutFigures {
    /// Figures of a layout; `fillers` is that of the files that made the free space.
    pub(crate) fn of(layout: &Layout, fillers: &Layout, free_extents_before: u64) -> Self {
        let (locality, all) = (&layout.locality, layout.actual + fillers.actual);
        let switches = locality.switches() + fillers.locality.switches();
        Self {
            actual: layout.actual,
            ideal: layout.ideal,
            inodes: layout.mapped_inodes,
            group_blocks: locality.group_blocks(),
            distances: lines(locality.buckets()),
            distances_normalised: locality.normalised(),
            median_distance: locality.median(),
            mean_distance: locality.mean(),
            first_switches: locality.first_switches,
            later_switches: locality.later_switches,
            switches_with_fillers: switches as f64 / all.max(1) as f64,
            free_extents_before,
            free_extents: layout.free.by_block.count(),
            longest_free: layout.free.longest,
        }
    }

    /// Share of extents in another group than their hint.
    #[must_use]
    pub fn switches(&self) -> f64 {
        (self.first_switches + self.later_switches) as f64 / self.actual.max(1) as f64
    }

    /// Share of extents more than `blocks` blocks from their hint, or in another group.
    #[must_use]
    pub fn beyond(&self, blocks: u64) -> f64 {
        let far = self.distances.iter().filter(|line| line.from >= blocks);
        far.map(|line| line.count).sum::<u64>() as f64 / self.actual.max(1) as f64
    }
}

/// Speed of a variant on one picture of free space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// Variant of the allocator.
    pub variant: String,
    /// `pathological` or `clean`.
    pub free_space: String,
    /// Free extents of the group before.
    pub free_extents: u64,
    /// Blocks of a request.
    pub request_blocks: u32,
    /// Allocations made.
    pub allocations: u64,
    /// Allocations in a second of the time that they took.
    pub per_second: f64,
    /// The first one, in microseconds: the indexed variant reads the group in it.
    pub first_us: f64,
    /// Bytes read from the device for each of the others: of trees that memory has no room for.
    #[serde(default)]
    pub bytes_read: f64,
    /// The others, in microseconds.
    pub latency: Latency,
}

impl SearchOutcome {
    /// Allocations a second.
    pub(crate) fn rates(&self) -> CaseRates {
        let map = format!("{}, {} extents", self.free_space, self.free_extents);
        CaseRates::new(format!("alloc, {map}, {}", self.variant), vec![self.per_second])
    }
}
