//! The outcome of a workload of small files and fsync.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::measure::latency::Latency;
use crate::report::number::counted;
use crate::statistics::CaseRates;

/// How the files of an iteration become durable. The numbers are those of fs_mark's `-S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// 0: not at all.
    #[serde(rename = "0")]
    NoSync,
    /// 1: fsync before each close.
    #[serde(rename = "1")]
    FsyncBeforeClose,
    /// 2: sync when all are written, then one fsync.
    #[serde(rename = "2")]
    SyncFsync,
    /// 3: opened again in reverse order, fsync for each.
    #[serde(rename = "3")]
    PostReverseFsync,
    /// 4: sync, then as 3.
    #[serde(rename = "4")]
    SyncPostReverseFsync,
    /// 5: opened again in order, fsync for each.
    #[serde(rename = "5")]
    PostFsync,
    /// 6: sync, then as 5.
    #[serde(rename = "6")]
    SyncPostFsync,
    /// async: a ticket for each file as soon as it is written; all are waited for in the end.
    #[serde(rename = "async")]
    Async,
}

impl Mode {
    /// Every mode with its name.
    pub const ALL: [(&'static str, Self); 8] = [
        ("0", Self::NoSync),
        ("1", Self::FsyncBeforeClose),
        ("2", Self::SyncFsync),
        ("3", Self::PostReverseFsync),
        ("4", Self::SyncPostReverseFsync),
        ("5", Self::PostFsync),
        ("6", Self::SyncPostFsync),
        ("async", Self::Async),
    ];

    /// Whether everything is synced when all files are written.
    pub(crate) const fn syncs_all(self) -> bool {
        matches!(self, Self::SyncFsync | Self::SyncPostReverseFsync | Self::SyncPostFsync)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, mode)| mode == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, mode)| *mode).ok_or_else(|| "a mode is 0 to 6, or async".to_owned())
    }
}

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
    /// all other work.
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

impl FsyncOutcome {
    /// Files a second.
    pub(crate) fn rates(&self) -> CaseRates {
        let rates = self.iterations.iter().map(|one| one.files_per_second).collect();
        let threads = counted(self.threads, "thread");
        CaseRates::new(format!("fsync, {}, mode {}, {threads}", self.target, self.mode), rates)
    }
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
    /// Writes of the journal that made something durable; `None` where they are not counted.
    #[serde(default)]
    pub log_writes: Option<u64>,
    /// Bytes written to the device for each file: its data, the journal, and metadata in its place.
    #[serde(default)]
    pub bytes_written_per_file: Option<f64>,
    /// Bytes read from the device for each file.
    #[serde(default)]
    pub bytes_read_per_file: Option<f64>,
}
