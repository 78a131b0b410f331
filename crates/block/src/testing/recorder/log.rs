//! The events of a recorder, all of them or the latest.

use std::collections::VecDeque;

use thiserror::Error;

use super::contents::Contents;
use super::event::{Change, Event};
use super::recording::Recording;
use super::replay::DiskState;
use crate::units::Sector;

/// A recording with bounded memory could not be kept.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("more than {limit} bytes were written without a flush; record with a larger limit")]
pub struct Overflow {
    /// Most bytes that the recorder was allowed to keep.
    pub limit: u64,
}

/// What happened so far.
#[derive(Default)]
pub(super) struct Log {
    capacity: Sector,
    /// The disk before the first event kept.
    start: DiskState,
    events: VecDeque<Event>,
    /// Memory of `events`, in bytes.
    kept: u64,
    /// Bios seen.
    submitted: u64,
    limit: Option<u64>,
    overflow: Option<Overflow>,
}

impl Log {
    /// The log of a disk of `capacity` sectors that holds `start`.
    pub(super) fn new(capacity: Sector, start: Contents) -> Self {
        Self { capacity, start: DiskState::starting_with(start), ..Self::default() }
    }

    /// Keeps to about `limit` bytes from now on.
    pub(super) fn bound(&mut self, limit: u64) {
        self.limit = Some(limit);
    }

    /// Records a bio and returns its number.
    pub(super) fn submit(&mut self, change: Change) -> u64 {
        let number = self.submitted;
        self.submitted += 1;
        self.push(Event::Submitted { number, change });
        number
    }

    /// Records anything but a bio.
    pub(super) fn push(&mut self, event: Event) {
        if self.overflow.is_some() {
            return;
        }
        self.kept += event.memory();
        self.events.push_back(event);
        let Some(limit) = self.limit else { return };
        while self.kept + self.start.volatile_bytes() > limit {
            let Some(oldest) = self.events.pop_front() else {
                self.overflow = Some(Overflow { limit });
                self.start = DiskState::default();
                return;
            };
            self.kept -= oldest.memory();
            self.start.pass(&oldest);
        }
    }

    pub(super) fn recording(&self) -> Result<Recording, Overflow> {
        match self.overflow {
            Some(overflow) => Err(overflow),
            None => {
                let events = self.events.iter().cloned().collect();
                Ok(Recording::new(self.capacity, self.start.clone(), events))
            }
        }
    }
}

impl Event {
    /// Bytes that it takes.
    fn memory(&self) -> u64 {
        let data = match self {
            Self::Submitted { change, .. } => change.memory(),
            Self::Mark(text) => text.len() as u64,
            Self::Completed { .. } => 0,
        };
        size_of::<Self>() as u64 + data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Operation;
    use crate::testing::recorder::Unflushed;

    fn change(operation: Operation, sector: u64) -> Change {
        let data = (operation == Operation::Write).then(|| [7; 4096].into());
        let (force_unit_access, thread) = (false, std::thread::current().id());
        let length = if data.is_some() { 4096 } else { 0 };
        Change { operation, force_unit_access, sector: Sector(sector), length, data, thread }
    }

    fn submit(log: &mut Log, operation: Operation, sector: u64) {
        let number = log.submit(change(operation, sector));
        log.push(Event::Completed { number, succeeded: true });
    }

    #[test]
    fn a_bounded_log_keeps_the_latest_events() {
        let mut log = Log::default();
        log.bound(64 << 10);
        for round in 0..100 {
            submit(&mut log, Operation::Write, round * 8);
            submit(&mut log, Operation::Flush, 0);
        }
        let mut recording = log.recording().unwrap();
        let events = recording.events().len();
        assert!((20..100).contains(&events), "{events}");
        recording.finish();
        let mut sector = [0; 512];
        for round in 0..100 {
            recording.crash(Unflushed::Dropped).read(round * 4096, &mut sector);
            assert_eq!(sector, [7; 512]);
        }
    }

    #[test]
    fn too_much_without_a_flush_ends_a_bounded_log() {
        let mut log = Log::default();
        log.bound(64 << 10);
        for round in 0..100 {
            submit(&mut log, Operation::Write, round * 8);
        }
        assert_eq!(log.recording().unwrap_err(), Overflow { limit: 64 << 10 });
    }
}
