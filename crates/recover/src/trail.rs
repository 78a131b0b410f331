//! What is left of one file: the last copies of its parts, each with its place in time.

use undercroft_xfs_format::units::Lsn;
use undercroft_xfs_format::{ForkFormat, InodeCore, Timestamp};

/// Where a copy of an inode was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In the journal.
    Journal,
    /// In inodes whose blocks were given back, and have not been used again.
    Chunk,
}

/// A part of an inode, and when the inode was so.
#[derive(Clone, Debug)]
pub(crate) struct Seen<T> {
    pub(crate) lsn: Lsn,
    pub(crate) origin: Origin,
    pub(crate) value: T,
}

/// A fork.
#[derive(Clone, Debug)]
pub(crate) struct Fork {
    pub(crate) format: ForkFormat,
    /// Extents of the core that belongs to it.
    pub(crate) extents: u64,
    pub(crate) bytes: Box<[u8]>,
}

impl Fork {
    /// The fork as one that may hold a map.
    pub(crate) fn as_map(&self) -> MapFork<'_> {
        MapFork { format: self.format, extents: self.extents, bytes: &self.bytes }
    }
}

/// A fork that may hold a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapFork<'b> {
    pub(crate) format: ForkFormat,
    /// Extents, as the core counts them.
    pub(crate) extents: u64,
    pub(crate) bytes: &'b [u8],
}

impl<'b> MapFork<'b> {
    /// The data fork of a core.
    pub(crate) const fn data(core: &InodeCore, bytes: &'b [u8]) -> Self {
        Self { format: core.data_format, extents: core.data_extents, bytes }
    }
}

/// The removal of a file.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) lsn: Lsn,
    pub(crate) time: Timestamp,
    /// What the free inode still says: owner and times.
    pub(crate) core: InodeCore,
    /// The area of the forks, which a kernel leaves as it was.
    pub(crate) literal: Option<Box<[u8]>>,
}

/// All that is known of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail {
    /// The inode as the file last had it.
    pub(crate) core: Option<Seen<InodeCore>>,
    pub(crate) data: Option<Seen<Fork>>,
    /// The last attribute fork that was asked for.
    pub(crate) attr: Option<Seen<Fork>>,
    pub(crate) end: Option<End>,
    /// The first sign that the file gave its blocks back.
    pub(crate) vacated: Option<Lsn>,
}

/// A copy of an inode.
#[derive(Debug)]
pub(crate) struct InodeCopy {
    pub(crate) lsn: Lsn,
    pub(crate) origin: Origin,
    pub(crate) core: InodeCore,
    /// The data fork, where the copy has it.
    pub(crate) data: Option<Box<[u8]>>,
    /// The attribute fork, where the copy has it.
    pub(crate) attr: Option<Box<[u8]>>,
}

impl InodeCopy {
    /// Whether it shows the file, and not its removal: that sets the size to 0 first, then takes the
    /// extents away, all behind the last name.
    pub(crate) const fn is_of_file(&self) -> bool {
        self.core.mode != 0 && (self.core.nlink > 0 || self.core.size > 0)
    }
}

fn is_newer<T>(lsn: Lsn, than: Option<&Seen<T>>) -> bool {
    than.is_none_or(|seen| seen.lsn.0 <= lsn.0)
}

impl Trail {
    /// Adds a copy of an inode in use; `wants` says whether an attribute fork counts.
    pub(crate) fn add(&mut self, copy: InodeCopy, wants: impl Fn(&Fork) -> bool) {
        let InodeCopy { lsn, origin, .. } = copy;
        if !copy.is_of_file() {
            self.vacate(lsn);
            return;
        }
        self.vacated = self.vacated.filter(|vacated| *vacated > lsn);
        let (format, extents) = (copy.core.attr_format, copy.core.attr_extents.into());
        let attr = copy.attr.map(|bytes| Fork { format, extents, bytes });
        if let Some(value) = attr.filter(wants)
            && is_newer(lsn, self.attr.as_ref())
        {
            self.attr = Some(Seen { lsn, origin, value });
        }
        if let Some(bytes) = copy.data
            && is_newer(lsn, self.data.as_ref())
        {
            let (format, extents) = (copy.core.data_format, copy.core.data_extents);
            self.data = Some(Seen { lsn, origin, value: Fork { format, extents, bytes } });
        }
        if is_newer(lsn, self.core.as_ref()) {
            self.core = Some(Seen { lsn, origin, value: copy.core });
        }
    }

    fn vacate(&mut self, lsn: Lsn) {
        self.vacated = Some(self.vacated.map_or(lsn, |vacated| vacated.min(lsn)));
    }

    /// Adds the removal; the newest counts. A free inode is found in the journal and in its place; the
    /// place alone has the area of the forks.
    pub(crate) fn set_end(&mut self, end: End) {
        self.vacate(end.lsn);
        let (newer, older) = match self.end.take() {
            Some(old) if old.lsn > end.lsn => (old, Some(end)),
            old => (end, old),
        };
        let literal = newer.literal.or_else(|| older?.literal);
        self.end = Some(End { literal, ..newer });
    }
}
