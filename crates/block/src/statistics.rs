//! Counts of what passed through a device.

use std::iter::Sum;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bio::Operation;
use crate::request::Request;

/// What passed through a queue or a device: a snapshot, summed when read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bios that arrived, merged or not.
    pub bios: u64,
    /// Requests that they were merged into.
    pub requests: u64,
    /// Bytes asked to be read.
    pub bytes_read: u64,
    /// Bytes asked to be written; zeroes and discards carry none.
    pub bytes_written: u64,
    /// Flush requests.
    pub flushes: u64,
}

impl Add for Statistics {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bios: self.bios + other.bios,
            requests: self.requests + other.requests,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
            flushes: self.flushes + other.flushes,
        }
    }
}

impl Sub for Statistics {
    type Output = Self;

    /// What passed between an earlier snapshot `other` and this one.
    fn sub(self, other: Self) -> Self {
        Self {
            bios: self.bios - other.bios,
            requests: self.requests - other.requests,
            bytes_read: self.bytes_read - other.bytes_read,
            bytes_written: self.bytes_written - other.bytes_written,
            flushes: self.flushes - other.flushes,
        }
    }
}

impl Sum for Statistics {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

/// The counters of one queue.
///
/// Each is exact; a snapshot taken while requests arrive may mix before and after.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    bios: AtomicU64,
    requests: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    flushes: AtomicU64,
}

impl Counters {
    /// Counts requests that arrived together, with one update of each counter for all.
    pub(crate) fn count<'a>(&self, requests: impl Iterator<Item = &'a Request>) {
        self.add(requests.map(Self::of).sum());
    }

    fn add(&self, arrived: Statistics) {
        for (counter, value) in [
            (&self.bios, arrived.bios),
            (&self.requests, arrived.requests),
            (&self.bytes_read, arrived.bytes_read),
            (&self.bytes_written, arrived.bytes_written),
            (&self.flushes, arrived.flushes),
        ] {
            if value > 0 {
                counter.fetch_add(value, Ordering::Relaxed);
            }
        }
    }

    fn of(request: &Request) -> Statistics {
        let bytes = |operation| {
            if request.operation() == operation { request.length() } else { 0 }
        };
        Statistics {
            bios: request.bio_count() as u64,
            requests: 1,
            bytes_read: bytes(Operation::Read),
            bytes_written: bytes(Operation::Write),
            flushes: u64::from(request.operation() == Operation::Flush),
        }
    }

    /// The counts so far.
    pub(crate) fn snapshot(&self) -> Statistics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            bios: load(&self.bios),
            requests: load(&self.requests),
            bytes_read: load(&self.bytes_read),
            bytes_written: load(&self.bytes_written),
            flushes: load(&self.flushes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bio, Buffer, Sector};

    #[test]
    fn requests_are_counted_by_what_they_do() {
        let requests = [
            Request::new(Bio::read(Sector(0), Buffer::zeroed(1024))),
            Request::new(Bio::write(Sector(0), Buffer::zeroed(512))),
            Request::new(Bio::write_zeroes(Sector(0), 4096)),
            Request::new(Bio::flush()),
        ];
        let counters = Counters::default();
        counters.count(requests.iter());
        let first = counters.snapshot();
        let expected =
            Statistics { bios: 4, requests: 4, bytes_read: 1024, bytes_written: 512, flushes: 1 };
        assert_eq!(first, expected);
        counters.count(requests.iter());
        assert_eq!(counters.snapshot() - first, first);
        assert_eq!([first, first].into_iter().sum::<Statistics>(), counters.snapshot());
        requests.into_iter().for_each(Request::complete);
    }
}
