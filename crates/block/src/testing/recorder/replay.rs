//! The disk as a crash would leave it, at any point of a recording.

use std::collections::BTreeMap;
use std::ops::Range;

use super::contents::Contents;
use super::event::{Change, Event};
use crate::bio::Operation;
use crate::testing::{mix, tear};
use crate::units::{SECTOR_SIZE, Sector, overlap};

/// What a crash does to writes that no flush made durable. Zeroes and discards count as writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unflushed {
    /// None of them reached the disk.
    Dropped,
    /// All of them did, also those still in flight.
    Kept,
    /// Each is dropped, kept, cut off behind some sector, or there in some of its sectors only. A
    /// function of the seed and the number of the write: the same at every cut.
    Torn {
        /// Chooses what happens to which write.
        seed: u64,
    },
    /// As [`Torn`](Self::Torn), but each unit of the disk is written as a whole or not at all, as
    /// far as one write covers it: a disk whose sectors are larger inside than they seem.
    TornInUnits {
        /// Chooses what happens to which write.
        seed: u64,
        /// Length of a unit in sectors.
        sectors: u64,
    },
}

/// The state of a disk at one point of a recording.
#[derive(Clone, Default)]
pub(super) struct DiskState {
    durable: Contents,
    /// What a crash may lose, by the number of its submission.
    volatile: BTreeMap<u64, Volatile>,
    volatile_bytes: u64,
    /// Flushes in flight, each with the numbers of the changes that it covers.
    flushes: BTreeMap<u64, Vec<u64>>,
}

#[derive(Clone)]
struct Volatile {
    change: Change,
    outcome: Option<bool>,
    /// Sectors in which something later is durable already.
    superseded: Vec<Range<Sector>>,
}

impl DiskState {
    pub(super) fn starting_with(durable: Contents) -> Self {
        Self { durable, ..Self::default() }
    }

    /// Takes the state past one event; whether that changes what a crash may leave.
    pub(super) fn pass(&mut self, event: &Event) -> bool {
        match event {
            Event::Submitted { number, change } if change.operation == Operation::Flush => {
                // Submitted before means: completed, or by the same thread. What another thread
                // holds in a plug is not covered.
                let covered = self.volatile.iter().filter(|(_, volatile)| {
                    volatile.outcome.is_some() || volatile.change.thread == change.thread
                });
                self.flushes.insert(*number, covered.map(|(number, _)| *number).collect());
                false
            }
            Event::Submitted { number, change } => {
                let (change, superseded) = (change.clone(), Vec::new());
                self.volatile_bytes += change.memory();
                self.volatile.insert(*number, Volatile { change, outcome: None, superseded });
                true
            }
            Event::Completed { number, succeeded } => self.complete(*number, *succeeded),
            Event::Mark(_) => false,
        }
    }

    fn complete(&mut self, number: u64, succeeded: bool) -> bool {
        if let Some(covered) = self.flushes.remove(&number) {
            return succeeded && self.make_durable(&covered);
        }
        if let Some(volatile) = self.volatile.get_mut(&number) {
            volatile.outcome = Some(succeeded);
            if succeeded && volatile.change.force_unit_access {
                return self.make_durable(&[number]);
            }
        }
        false
    }

    /// Makes changes durable, in the order of their numbers. One that failed stays as it is: what
    /// its sectors hold is not known, with or without a flush. Whether there were any.
    fn make_durable(&mut self, numbers: &[u64]) -> bool {
        let before = self.volatile.len();
        for &number in numbers {
            let failed = |volatile: &Volatile| volatile.outcome == Some(false);
            if self.volatile.get(&number).is_none_or(failed) {
                continue;
            }
            let Some(volatile) = self.volatile.remove(&number) else { continue };
            self.volatile_bytes -= volatile.change.memory();
            volatile.apply(&mut self.durable, [volatile.change.sectors()]);
            // What came earlier must not show on top of it later.
            let sectors = volatile.change.sectors();
            for (_, earlier) in self.volatile.range_mut(..number) {
                if overlap(&earlier.change.sectors(), &sectors) {
                    earlier.superseded.push(sectors.clone());
                }
            }
        }
        self.volatile.len() < before
    }

    /// The contents of the disk after a crash here.
    pub(super) fn crash(&self, unflushed: Unflushed) -> Contents {
        let mut contents = self.durable.clone();
        for (number, volatile) in &self.volatile {
            let sectors = volatile.change.sectors();
            match unflushed {
                Unflushed::Dropped => {}
                Unflushed::Kept => volatile.apply(&mut contents, [sectors]),
                Unflushed::Torn { seed } => {
                    volatile.apply(&mut contents, tear(&sectors, mix(seed ^ mix(*number))));
                }
                Unflushed::TornInUnits { seed, sectors: unit } => {
                    let kept = tear(&sectors, mix(seed ^ mix(*number))).into_iter();
                    let kept = kept.map(|part| whole_units(part, &sectors, unit));
                    volatile.apply(&mut contents, kept.filter(|part| part.start < part.end));
                }
            }
        }
        contents
    }

    /// Bytes of data that a crash may lose.
    pub(super) fn volatile_bytes(&self) -> u64 {
        self.volatile_bytes
    }
}

/// The units of `unit` sectors that lie in `part` of `whole`. A piece cut off at an end of the
/// whole counts as a unit.
fn whole_units(part: Range<Sector>, whole: &Range<Sector>, unit: u64) -> Range<Sector> {
    let up = |sector: Sector| Sector(sector.0.next_multiple_of(unit));
    let down = |sector: Sector| Sector(sector.0 / unit * unit);
    let start = if part.start == whole.start { part.start } else { up(part.start) };
    let end = if part.end == whole.end { part.end } else { down(part.end) };
    start..end.max(start)
}

impl Volatile {
    /// Brings into effect what nothing later has replaced of `kept`, sectors of the change.
    fn apply(&self, contents: &mut Contents, kept: impl IntoIterator<Item = Range<Sector>>) {
        let mut alive: Vec<Range<Sector>> = kept.into_iter().collect();
        for hole in &self.superseded {
            let cut = |range: Range<Sector>| {
                [range.start..range.end.min(hole.start), range.start.max(hole.end)..range.end]
            };
            alive = alive.into_iter().flat_map(cut).filter(|range| !range.is_empty()).collect();
        }
        for sectors in alive {
            self.change.apply(contents, sectors);
        }
    }
}

impl Change {
    /// Brings `sectors`, some of its own, into effect.
    fn apply(&self, contents: &mut Contents, sectors: Range<Sector>) {
        match &self.data {
            Some(data) => {
                let offset = |sector: Sector| ((sector.0 - self.sector.0) * SECTOR_SIZE) as usize;
                contents.write(
                    sectors.start.0 * SECTOR_SIZE,
                    &data[offset(sectors.start)..offset(sectors.end)],
                );
            }
            None => contents.zero(sectors),
        }
    }
}
