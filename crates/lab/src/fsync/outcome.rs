//! What a workload of small files and fsync found.

use serde::{Deserialize, Serialize};

use super::mode::Mode;
use crate::latency::Latency;

/// One target, one mode, one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FsyncOutcome {
    /// `undercroft`, or the type of the mounted file system.
    pub target: String,
    /// When files were made durable.
    pub mode: Mode,
    /// Threads that wrote files.
    pub threads: usize,
    /// Directories of each thread.
    pub directories: usize,
    /// Files of all threads in an iteration.
    pub files: u64,
    /// Bytes of a file; the mean if they differ.
    pub size: u64,
    /// Files a second, the mean over the iterations.
    pub files_per_second: f64,
    /// Bytes a second, likewise.
    pub bytes_per_second: f64,
    /// Standard deviation of files a second over their mean; 0 for one iteration.
    pub coefficient_of_variation: f64,
    /// Each iteration.
    pub iterations: Vec<Iteration>,
    /// Files that were made durable one by one.
    pub fsyncs: u64,
    /// Writes of the journal that made something durable, for each of them.
    pub log_writes_per_fsync: Option<f64>,
    /// Flushes of the device, and writes that include one, for each of them.
    pub flushes_per_fsync: Option<f64>,
    /// Context switches of this process for each file.
    pub context_switches_per_file: f64,
    /// Context switches of the machine for each file: with those of the kernel's threads, and of
    /// whatever else went on.
    pub machine_switches_per_file: f64,
    /// CPU time of this process for each file in nanoseconds.
    pub cpu_ns_per_file: f64,
    /// Times that a submitter waited for a tag or for room in a queue.
    pub tag_waits: Option<u64>,
    /// The most threads that this process had at the end of an iteration.
    pub most_threads: u64,
    /// From the call, or the begin of the ticket, until the file was durable, in microseconds.
    pub latency: Latency,
}

/// One iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Files there are when it is over.
    pub count: u64,
    /// Files a second.
    pub files_per_second: f64,
    /// Time of the threads that was not spent in calls of the file system, in microseconds.
    pub app_overhead_us: u64,
    /// Memory of this process at its end, in bytes.
    pub resident_bytes: u64,
    /// CPU time of this process for each file in nanoseconds: what varies although the work is the
    /// same, on a machine that others use too, varies less here.
    #[serde(default)]
    pub cpu_ns_per_file: f64,
    /// Writes of the journal that made something durable; `None` where nobody counts them.
    #[serde(default)]
    pub log_writes: Option<u64>,
    /// Bytes written to the device for each file: its data, the journal, and metadata in its place.
    #[serde(default)]
    pub bytes_written_per_file: Option<f64>,
    /// Bytes read from the device for each file.
    #[serde(default)]
    pub bytes_read_per_file: Option<f64>,
}
