//! How many I/Os a second one driver did.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measure::rate::Rate;
use crate::report::number::counted;
use crate::statistics::CaseRates;

/// Reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// The outcome of one driver with one number of threads and one size of batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IopsOutcome {
    /// `null`, `memory`, `file-io_uring`, `file-threads`, or fio's `fio-io_uring`, `fio-psync`.
    pub driver: String,
    /// Reads or writes.
    pub access: Access,
    /// Submitting threads, each on a hardware queue of its own where the driver has several.
    pub threads: usize,
    /// I/Os that a thread submits together and, for file drivers, keeps outstanding.
    pub batch: usize,
    /// Bytes of an I/O.
    pub block_bytes: u64,
    /// Whether the file was opened to go past the page cache.
    pub direct: bool,
    /// I/Os a second and their cost.
    #[serde(flatten)]
    pub rate: Rate,
}

impl IopsOutcome {
    /// What was done, and how often.
    pub(crate) fn title(&self) -> String {
        format!("iops: drivers; {} runs of {} s", self.rate.repeats, self.rate.seconds)
    }

    /// I/Os a second.
    pub(crate) fn rates(&self) -> CaseRates {
        let path = if self.direct { ", direct" } else { "" };
        let threads = counted(self.threads, "thread");
        let case = format!(
            "iops, {} {} of {}{path}, {threads}, batch {}",
            self.driver, self.access, self.block_bytes, self.batch
        );
        CaseRates::new(case, self.rate.iops_of_runs.clone())
    }

    /// Whether `other` is what fio did with the same work.
    pub(crate) fn is_fio_beside(&self, other: &Self) -> bool {
        let engine = match self.driver.as_str() {
            "file-io_uring" => "fio-io_uring",
            "file-threads" => "fio-psync",
            _ => return false,
        };
        other.driver == engine
            && (other.access, other.threads, other.batch, other.block_bytes, other.direct)
                == (self.access, self.threads, self.batch, self.block_bytes, self.direct)
    }
}
