//! The size of a volume, as whole groups and the length of the last one.

use crate::error::Error;
use crate::format::Superblock;
use crate::geometry::Geometry;
use crate::maintain::least_last_group;
use crate::scan::GroupPart;
use crate::units::AgNumber;

/// Least number of groups of a volume that had more: `xfs_repair` wants a second superblock.
const MIN_GROUPS: u32 = 2;

/// Blocks of a group that splits of its trees take while files move, at most.
pub(super) const SLACK: u32 = 16;

/// Groups of a volume, all but the last of full length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size {
    /// Number of groups.
    pub(super) groups: u32,
    /// Blocks of the last one.
    pub(super) last: u32,
}

impl Size {
    /// The size of a volume.
    pub(super) fn of(geometry: &Geometry) -> Self {
        let last = geometry.ag_length(AgNumber(geometry.ag_count - 1));
        Self { groups: geometry.ag_count, last }
    }

    /// The size of the volume in at most `bytes` bytes.
    ///
    /// # Errors
    /// It is no smaller volume, or less than one can have.
    pub(super) fn within(geometry: &Geometry, bytes: u64) -> Result<Self, Error> {
        let (blocks, group) = (bytes >> geometry.block_log, u64::from(geometry.ag_blocks));
        let now = Self::of(geometry);
        // Bounded by the size of the volume below.
        let (mut groups, mut last) = (blocks / group, (blocks % group) as u32);
        if last >= Self::least_last(geometry) {
            groups += 1;
        } else {
            last = geometry.ag_blocks;
        }
        if groups > u64::from(now.groups) || blocks > geometry.blocks {
            let has = geometry.blocks;
            let what = format!(
                "the volume has {has} blocks and {blocks} are asked for: that is to grow, not to shrink"
            );
            return Err(Error::Invalid(what));
        }
        let size = Self { groups: groups as u32, last };
        let least = Self::least(geometry);
        if size < least {
            let least = least.blocks(geometry) << geometry.block_log;
            let what = format!(
                "a volume of {bytes} bytes is too small: groups keep their length, two of them \
                 stay, and the last has at least 128 KiB; that makes {least} bytes"
            );
            return Err(Error::Invalid(what));
        }
        Ok(size)
    }

    /// The smallest volume with groups of this length that is accepted by kernels and `xfs_repair`.
    pub(super) fn least(geometry: &Geometry) -> Self {
        Self { groups: MIN_GROUPS.min(geometry.ag_count), last: Self::least_last(geometry) }
    }

    /// Least length of the last group.
    pub(super) fn least_last(geometry: &Geometry) -> u32 {
        least_last_group(geometry.block_log)
    }

    /// The size without a last group that is short, if it can be left out.
    pub(super) fn without_short_group(self, geometry: &Geometry) -> Option<Self> {
        let whole = Self { groups: self.groups - 1, last: geometry.ag_blocks };
        (self.last < geometry.ag_blocks && whole >= Self::least(geometry)).then_some(whole)
    }

    pub(super) const fn last_group(self) -> AgNumber {
        AgNumber(self.groups - 1)
    }

    /// Blocks of a group that stays.
    pub(super) fn length(self, geometry: &Geometry, ag: AgNumber) -> u32 {
        if ag == self.last_group() { self.last } else { geometry.ag_blocks }
    }

    /// Whether blocks of a group that end at `end` stay.
    pub(super) fn holds(self, geometry: &Geometry, ag: AgNumber, end: u64) -> bool {
        ag <= self.last_group() && end <= self.length(geometry, ag).into()
    }

    pub(super) fn blocks(self, geometry: &Geometry) -> u64 {
        u64::from(self.groups - 1) * u64::from(geometry.ag_blocks) + u64::from(self.last)
    }

    /// The superblock of a volume of this size; its counters stay as they are.
    pub(super) fn superblock(self, old: &Superblock) -> Superblock {
        let blocks = self.blocks(&old.geometry());
        Superblock { blocks, ag_count: self.groups, ..old.clone() }
    }

    /// The parts of groups that go, ascending.
    pub(super) fn tail(self, geometry: &Geometry) -> impl Iterator<Item = GroupPart> + use<> {
        let length = {
            let geometry = geometry.clone();
            move |ag| geometry.ag_length(ag)
        };
        let (last, count) = (self.last_group(), geometry.ag_count);
        let tail = GroupPart { ag: last, start: self.last, len: length(last) - self.last };
        let whole = move |ag| GroupPart { ag, start: 0, len: length(ag) };
        let groups = (self.groups..count).map(AgNumber).map(whole);
        Some(tail).filter(|tail| tail.len > 0).into_iter().chain(groups)
    }
}
