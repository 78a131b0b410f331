//! Formats that are only read, each in a file of its own.
//!
//! They are our own: the crates that there are read one kind of each (`imago` has flat VMDK), want the whole
//! table in memory, or panic on bytes that cannot be. No table is kept here: an entry is read when it is needed,
//! so that what a header says costs nothing.

mod vdi;
mod vhd;
mod vhdx;
mod vmdk;

use crate::disk::{Disk, Stored};
use crate::neighbours::Neighbours;
use crate::obstacle::Obstacle;
use std::path::Path;

/// A format that is only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Vdi,
    Vhd,
    Vhdx,
    Vmdk,
}

impl Format {
    /// The format of a file that begins with `start`, if it is one of them.
    pub(crate) fn of(start: &[u8], stored: &Stored) -> Option<Self> {
        let all = [
            (Self::Vmdk, vmdk::is_one(start)),
            (Self::Vhdx, vhdx::is_one(start)),
            (Self::Vdi, vdi::is_one(start)),
            (Self::Vhd, vhd::is_one(start, stored)),
        ];
        all.into_iter().find_map(|(format, is_one)| is_one.then_some(format))
    }

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Vdi => "vdi",
            Self::Vhd => "vhd",
            Self::Vhdx => "vhdx",
            Self::Vmdk => "vmdk",
        }
    }

    /// The disk in a file of it.
    pub(crate) fn open(
        self,
        stored: Stored,
        path: &Path,
        neighbours: &Neighbours,
    ) -> Result<Box<dyn Disk>, Obstacle> {
        match self {
            Self::Vdi => vdi::open(stored),
            Self::Vhd => vhd::open(stored),
            Self::Vhdx => vhdx::open(stored),
            Self::Vmdk => vmdk::open(stored, path, neighbours),
        }
    }
}
