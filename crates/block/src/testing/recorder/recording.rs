//! The events of a recorder, and the disks that can be made of them.

use std::fmt;
use std::sync::Arc;

use super::contents::Contents;
use super::disk::CrashDisk;
use super::event::Event;
use super::replay::{DiskState, Unflushed};
use crate::device::BlockDevice;
use crate::units::Sector;

/// What a [`Recorder`](super::Recorder) saw so far. It stands at a point between two events, at
/// first before the first one; [`step`](Self::step) goes on.
#[derive(Clone)]
pub struct Recording {
    capacity: Sector,
    state: DiskState,
    events: Arc<[Event]>,
    position: usize,
    has_changed: bool,
}

impl Recording {
    pub(super) fn new(capacity: Sector, state: DiskState, events: Arc<[Event]>) -> Self {
        Self { capacity, state, events, position: 0, has_changed: true }
    }

    /// All events.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Number of events passed.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Passes the next event and returns it; `None` behind the last.
    pub fn step(&mut self) -> Option<&Event> {
        let event = self.events.get(self.position)?;
        self.has_changed = self.state.pass(event);
        self.position += 1;
        Some(event)
    }

    /// Whether the last event made another disk of what a crash may leave: a write did, and the end of a
    /// flush that covers some. The end of a write alone did not, so a cut there is the one before again.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Passes all events.
    pub fn finish(&mut self) {
        while self.step().is_some() {}
    }

    /// The disk after a crash at this point. It may be written to; no other disk shows that.
    #[must_use]
    pub fn disk(&self, unflushed: Unflushed) -> Arc<dyn BlockDevice> {
        Arc::new(CrashDisk::holding(self.crash(unflushed), self.capacity))
    }

    pub(super) fn crash(&self, unflushed: Unflushed) -> Contents {
        self.state.crash(unflushed)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("events", &self.events.len())
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Operation;
    use crate::testing::recorder::Change;
    use crate::units::SECTOR_SIZE;

    /// Builds recordings event by event.
    #[derive(Default)]
    struct Script {
        events: Vec<Event>,
        number: u64,
    }

    impl Script {
        fn submit(&mut self, operation: Operation, sector: u64, bytes: &[u8], fua: bool) -> u64 {
            let data: Vec<u8> = bytes.iter().flat_map(|byte| [*byte; 512]).collect();
            let change = Change {
                operation,
                force_unit_access: fua,
                sector: Sector(sector),
                length: data.len() as u64,
                data: (operation == Operation::Write).then(|| data.into()),
                thread: std::thread::current().id(),
            };
            self.number += 1;
            self.events.push(Event::Submitted { number: self.number, change });
            self.number
        }

        fn write(&mut self, sector: u64, bytes: &[u8]) -> u64 {
            self.submit(Operation::Write, sector, bytes, false)
        }

        fn done(&mut self, number: u64, succeeded: bool) {
            self.events.push(Event::Completed { number, succeeded });
        }

        fn flush(&mut self) {
            let number = self.submit(Operation::Flush, 0, &[], false);
            self.done(number, true);
        }

        /// The first bytes of `sectors` sectors at the end of the script.
        fn disk(&self, unflushed: Unflushed, sectors: usize) -> Vec<u8> {
            let mut recording =
                Recording::new(Sector(512), DiskState::default(), self.events.clone().into());
            recording.finish();
            firsts(&recording.crash(unflushed), sectors)
        }
    }

    fn firsts(contents: &Contents, sectors: usize) -> Vec<u8> {
        let mut bytes = vec![9; sectors * SECTOR_SIZE as usize];
        contents.read(0, &mut bytes);
        let sectors = bytes.chunks(SECTOR_SIZE as usize);
        sectors
            .map(|sector| {
                sector.iter().copied().reduce(|a, b| (a == b).then_some(a).unwrap()).unwrap()
            })
            .collect()
    }

    #[test]
    fn a_flush_makes_durable_what_was_submitted_before_it() {
        let mut script = Script::default();
        let first = script.write(0, &[1, 1]);
        script.done(first, true);
        let second = script.write(2, &[2]);
        script.flush();
        let third = script.write(3, &[3]);
        script.done(second, true);
        script.done(third, true);
        assert_eq!(script.disk(Unflushed::Dropped, 5), [1, 1, 2, 0, 0]);
        assert_eq!(script.disk(Unflushed::Kept, 5), [1, 1, 2, 3, 0]);
    }

    #[test]
    fn a_flush_does_not_cover_what_another_thread_has_in_flight() {
        let mut script = Script::default();
        script.write(0, &[1]);
        let other =
            std::thread::scope(|scope| scope.spawn(|| std::thread::current().id()).join().unwrap());
        let Event::Submitted { change, .. } = &mut script.events[0] else { panic!() };
        change.thread = other;
        script.flush();
        assert_eq!(script.disk(Unflushed::Dropped, 1), [0]);
    }

    #[test]
    fn forced_unit_access_covers_itself_alone_and_stays_on_top() {
        let mut script = Script::default();
        script.write(0, &[1, 1, 1]);
        let forced = script.submit(Operation::Write, 1, &[2], true);
        assert_eq!(script.disk(Unflushed::Dropped, 3), [0, 0, 0]);
        script.done(forced, true);
        assert_eq!(script.disk(Unflushed::Dropped, 3), [0, 2, 0]);
        assert_eq!(script.disk(Unflushed::Kept, 3), [1, 2, 1]);
        script.flush();
        assert_eq!(script.disk(Unflushed::Dropped, 3), [1, 2, 1]);
    }

    #[test]
    fn an_event_that_changes_no_disk_says_so() {
        let mut script = Script::default();
        let first = script.write(0, &[1]);
        script.done(first, true);
        script.flush();
        script.flush();
        let forced = script.submit(Operation::Write, 1, &[2], true);
        script.done(forced, true);
        script.events.push(Event::Mark("here".into()));
        let mut recording =
            Recording::new(Sector(512), DiskState::default(), script.events.clone().into());
        let mut changed = Vec::new();
        let ways = [Unflushed::Dropped, Unflushed::Kept, Unflushed::Torn { seed: 3 }];
        let disks = |recording: &Recording| ways.map(|way| firsts(&recording.crash(way), 2));
        let mut before = disks(&recording);
        while recording.step().is_some() {
            let now = disks(&recording);
            assert!(recording.has_changed() || now == before, "{}", recording.position());
            changed.push(recording.has_changed());
            before = now;
        }
        // A write, its end; a flush and its end, twice; a forced write, its end; a mark.
        assert_eq!(changed, [true, false, false, true, false, false, true, true, false]);
    }

    #[test]
    fn what_failed_is_never_durable() {
        let mut script = Script::default();
        let failed = script.write(0, &[1]);
        script.done(failed, false);
        script.flush();
        assert_eq!(script.disk(Unflushed::Dropped, 1), [0]);
        assert_eq!(script.disk(Unflushed::Kept, 1), [1]);
        let flush = script.submit(Operation::Flush, 0, &[], false);
        script.write(1, &[2]);
        script.done(flush, false);
        assert_eq!(script.disk(Unflushed::Dropped, 2), [0, 0]);
    }

    #[test]
    fn zeroes_and_discards_are_lost_like_writes() {
        let mut script = Script::default();
        script.write(0, &[1; 6]);
        script.flush();
        script.submit(Operation::WriteZeroes, 1, &[0, 0], false);
        script.submit(Operation::Discard, 4, &[0], false);
        assert_eq!(script.disk(Unflushed::Dropped, 6), [1; 6]);
        assert_eq!(script.disk(Unflushed::Kept, 6), [1, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn tearing_is_by_sectors_and_repeats_with_its_seed() {
        let mut script = Script::default();
        for sector in 0..64 {
            script.write(sector * 8, &[1; 8]);
        }
        let disk = |seed| script.disk(Unflushed::Torn { seed }, 512);
        assert_eq!(disk(1), disk(1));
        assert_ne!(disk(1), disk(2));
        let whole = |write: &&[u8]| write.iter().all(|byte| *byte == 1);
        let none = |write: &&[u8]| write.iter().all(|byte| *byte == 0);
        let disk = disk(1);
        let (kept, dropped) =
            (disk.chunks(8).filter(whole).count(), disk.chunks(8).filter(none).count());
        assert!(kept > 4 && dropped > 4 && kept + dropped < 60, "{kept} {dropped}");
    }

    #[test]
    fn units_are_not_torn() {
        let mut script = Script::default();
        script.write(4, &[7; 64]);
        for seed in 0..100 {
            let disk = script.disk(Unflushed::TornInUnits { seed, sectors: 8 }, 80);
            let holds: Vec<bool> = disk.iter().map(|byte| *byte == 7).collect();
            // The write starts in the middle of a unit and ends in that of another.
            for unit in [4..8, 8..16, 16..24, 56..64, 64..68] {
                let first = holds[unit.start];
                assert!(holds[unit].iter().all(|holds| *holds == first), "{seed}: {holds:?}");
            }
        }
    }

    #[test]
    fn a_tear_is_the_same_at_every_cut() {
        let mut script = Script::default();
        for sector in 0..16 {
            script.write(sector, &[1]);
        }
        let mut recording =
            Recording::new(Sector(512), DiskState::default(), script.events.clone().into());
        let mut before = Vec::new();
        while recording.step().is_some() {
            let disk = firsts(&recording.crash(Unflushed::Torn { seed: 5 }), 16);
            assert!(disk.starts_with(&before));
            before = disk[..recording.position()].to_vec();
        }
        assert_eq!((before.len(), recording.events().len()), (16, 16));
    }
}
