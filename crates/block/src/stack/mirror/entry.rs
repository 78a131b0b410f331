//! Bios of a mirror in the order in which they take effect.

use std::ops::Range;

use crate::bio::{Bio, Operation};
use crate::request::Ordered;
use crate::units::{SECTOR_SIZE, Sector};

/// A bio in the order of the mirror.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) bio: Bio,
    /// Whether the bio is only there to keep others away: it is answered when it may start, and
    /// stays in the order until its ticket is given back.
    pub(super) excludes: bool,
    pub(super) number: u64,
}

impl Entry {
    pub(super) fn new(bio: Bio) -> Self {
        Self { bio, excludes: false, number: 0 }
    }
}

impl Ordered for Entry {
    fn operation(&self) -> Operation {
        self.bio.operation()
    }

    fn sectors(&self) -> Range<Sector> {
        // Admitted, so it ends inside the mirror.
        self.bio.sector()..Sector(self.bio.sector().0 + self.bio.length() / SECTOR_SIZE)
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn set_number(&mut self, number: u64) {
        self.number = number;
    }
}

/// What takes an entry out of the order again.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    pub(super) operation: Operation,
    pub(super) sectors: Range<Sector>,
    pub(super) number: u64,
}

impl Ticket {
    pub(super) fn of(entry: &Entry) -> Self {
        let (operation, sectors, number) = (entry.operation(), entry.sectors(), entry.number);
        Self { operation, sectors, number }
    }
}

impl Ordered for Ticket {
    fn operation(&self) -> Operation {
        self.operation
    }

    fn sectors(&self) -> Range<Sector> {
        self.sectors.clone()
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn set_number(&mut self, number: u64) {
        self.number = number;
    }
}
