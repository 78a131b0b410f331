//! Counts of what passed through a device.
//!
//! Counters belong to a hardware queue and are written by the thread that drives it, so the fast
//! path shares none between threads; they are summed when they are read.

mod histogram;
mod queue_report;

use std::iter::Sum;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bio::Operation;
use crate::request::{Request, RequestList};

pub use histogram::Latencies;
pub(crate) use histogram::LatencyCells;
pub use queue_report::{QueueName, QueueReport};

/// The threads that may write a counter at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// The calling thread alone, or the holders of a lock that it holds.
    One,
    /// Any thread.
    Many,
}

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    /// Adds to the count; with one writer without a read-modify-write.
    pub(crate) fn add(&self, more: u64, writers: Writers) {
        match writers {
            Writers::One => {
                let sum = self.0.load(Ordering::Relaxed).wrapping_add(more);
                self.0.store(sum, Ordering::Relaxed);
            }
            Writers::Many => {
                self.0.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// The count.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares the snapshot of a set of counters, and the counters.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// What passed through a queue or a device: a snapshot, summed when read.
        ///
        /// Each count is exact; a snapshot taken while requests arrive may mix before and after.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Statistics {
            $($(#[$doc])* pub $name: u64,)+
        }

        /// The counters of one queue.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Tally,)+
        }

        impl Counters {
            /// The counts so far.
            pub(crate) fn snapshot(&self) -> Statistics {
                Statistics { $($name: self.$name.get(),)+ }
            }
        }

        impl Add for Statistics {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($name: self.$name + other.$name,)+ }
            }
        }

        impl Sub for Statistics {
            type Output = Self;

            /// What passed between an earlier snapshot `other` and this one.
            fn sub(self, other: Self) -> Self {
                Self { $($name: self.$name - other.$name,)+ }
            }
        }
    };
}

counters! {
    /// Bios that arrived, merged or not.
    bios,
    /// Requests that they were merged into.
    requests,
    /// Bytes asked to be read.
    bytes_read,
    /// Bytes asked to be written; zeroes and discards carry none.
    bytes_written,
    /// Flush requests.
    flushes,
    /// Requests that ended with an error.
    errors,
    /// Times that a submitter waited: for a tag, for room, or for a frozen device.
    waits,
    /// Bios whose request was started on the CPU that submitted it.
    queued_local,
    /// Bios whose request was started on another CPU.
    queued_remote,
    /// Requests answered on the CPU where they ended.
    completed_local,
    /// Requests handed to another CPU to be answered.
    completed_remote,
}

impl Sum for Statistics {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

impl Statistics {
    /// Bios that left in the request of another.
    #[must_use]
    pub fn merges(&self) -> u64 {
        self.bios.saturating_sub(self.requests)
    }

    /// Mean length in bytes of the requests that carry data; zero without any.
    #[must_use]
    pub fn mean_request_bytes(&self) -> u64 {
        let requests = self.requests.saturating_sub(self.flushes);
        (self.bytes_read + self.bytes_written).checked_div(requests).unwrap_or(0)
    }

    fn count(&mut self, request: &Request) {
        self.bios += request.bio_count() as u64;
        self.requests += 1;
        match request.operation() {
            Operation::Read => self.bytes_read += request.length(),
            Operation::Write => self.bytes_written += request.length(),
            Operation::Flush => self.flushes += 1,
            Operation::Discard | Operation::WriteZeroes | Operation::CloneRange => {}
        }
    }
}

impl Counters {
    /// Counts requests that arrived together, with one update of each counter for all.
    pub(crate) fn arrived(&self, requests: &RequestList, writers: Writers) {
        let mut arrived = Statistics::default();
        requests.iter().for_each(|request| arrived.count(request));
        for (counter, value) in [
            (&self.bios, arrived.bios),
            (&self.requests, arrived.requests),
            (&self.bytes_read, arrived.bytes_read),
            (&self.bytes_written, arrived.bytes_written),
            (&self.flushes, arrived.flushes),
        ] {
            if value > 0 {
                counter.add(value, writers);
            }
        }
    }
}

/// How long the requests of one hardware queue took, by operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLatencies {
    /// Reads.
    pub read: Latencies,
    /// Writes.
    pub write: Latencies,
    /// Flushes, discards, writes of zeroes and clones of ranges.
    pub other: Latencies,
}

impl Add for QueueLatencies {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            read: self.read + other.read,
            write: self.write + other.write,
            other: self.other + other.other,
        }
    }
}

/// Cells of [`QueueLatencies`].
#[derive(Default)]
pub(crate) struct QueueLatencyCells {
    read: LatencyCells,
    write: LatencyCells,
    other: LatencyCells,
}

impl QueueLatencyCells {
    /// Counts `requests` requests that took so many nanoseconds each.
    pub(crate) fn record(
        &self,
        operation: Operation,
        nanoseconds: u64,
        requests: u64,
        writers: Writers,
    ) {
        let cells = match operation {
            Operation::Read => &self.read,
            Operation::Write => &self.write,
            Operation::Flush
            | Operation::Discard
            | Operation::WriteZeroes
            | Operation::CloneRange => &self.other,
        };
        cells.record(nanoseconds, requests, writers);
    }

    /// The counts so far.
    pub(crate) fn snapshot(&self) -> QueueLatencies {
        QueueLatencies {
            read: self.read.snapshot(),
            write: self.write.snapshot(),
            other: self.other.snapshot(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bio, Buffer, Sector};

    #[test]
    fn requests_are_counted_by_what_they_do() {
        let mut requests = RequestList::new();
        requests.extend([
            Request::new(Bio::read(Sector(0), Buffer::zeroed(1024))),
            Request::new(Bio::write(Sector(0), Buffer::zeroed(512))),
            Request::new(Bio::write_zeroes(Sector(0), 4096)),
            Request::new(Bio::flush()),
        ]);
        let counters = Counters::default();
        counters.arrived(&requests, Writers::One);
        let first = counters.snapshot();
        let expected = Statistics {
            bios: 4,
            requests: 4,
            bytes_read: 1024,
            bytes_written: 512,
            flushes: 1,
            ..Statistics::default()
        };
        assert_eq!(first, expected);
        assert_eq!((first.merges(), first.mean_request_bytes()), (0, 512));
        counters.arrived(&requests, Writers::Many);
        assert_eq!(counters.snapshot() - first, first);
        assert_eq!([first, first].into_iter().sum::<Statistics>(), counters.snapshot());
        while let Some(request) = requests.pop() {
            request.complete();
        }
    }
}
