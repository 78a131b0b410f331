//! What the trees of reverse mappings said before the repair: the evidence for maps that are lost, and for
//! one of two claims on a block.

use std::collections::{BTreeMap, BTreeSet};

use undercroft_recover::pieces;
use undercroft_xfs::format::{AllocRecord, Extent, RmapFlags, RmapRecord};
use undercroft_xfs::units::{AgBlock, AgNumber, FileBlock, FsBlock, InodeNumber};

use crate::subject::Subject;

/// Blocks of the longest extent of a map.
const LONGEST: u32 = (1 << 21) - 1;

/// Extents of forks by inodes; `true` for the attribute fork.
pub(crate) type Maps = BTreeMap<(InodeNumber, bool), Vec<Extent>>;

/// Reverse mappings by group, read when they are asked for; `None` of a group whose tree is damaged.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    groups: BTreeMap<AgNumber, Option<Vec<RmapRecord>>>,
    free: BTreeMap<AgNumber, Option<Vec<AllocRecord>>>,
}

impl Owners {
    /// The records of a group, ascending.
    pub(crate) fn of_group(&mut self, subject: &Subject, ag: AgNumber) -> Option<&[RmapRecord]> {
        self.groups.entry(ag).or_insert_with(|| read(subject, ag, |_| true)).as_deref()
    }

    /// Reads what a group said, before that is made anew, or its records are asked for.
    pub(crate) fn remember(&mut self, subject: &Subject, ag: AgNumber) {
        let _ = self.of_group(subject, ag);
        self.free.entry(ag).or_insert_with(|| pieces::free(&subject.disk, ag).ok());
    }

    /// The records of a group that is remembered.
    fn known(&self, ag: AgNumber) -> Option<&[RmapRecord]> {
        self.groups.get(&ag)?.as_deref()
    }

    /// The maps of files, by the groups whose trees are sound; and those groups.
    pub(crate) fn maps(
        &mut self,
        subject: &Subject,
        wanted: &BTreeSet<InodeNumber>,
    ) -> (Maps, BTreeSet<AgNumber>) {
        let (mut maps, mut known) = (Maps::new(), BTreeSet::new());
        if wanted.is_empty() {
            return (maps, known);
        }
        let is_wanted = |record: &RmapRecord| {
            !record.flags.contains(RmapFlags::BMBT_BLOCK)
                && record.owner.as_inode().is_some_and(|number| wanted.contains(&number))
        };
        for ag in (0..subject.geometry.ag_count).map(AgNumber) {
            let geometry = &subject.geometry;
            let records = match self.groups.get(&ag) {
                Some(records) => records
                    .as_ref()
                    .map(|records| records.iter().copied().filter(|it| is_wanted(it)).collect()),
                None => read(subject, ag, is_wanted),
            };
            let Some(records): Option<Vec<RmapRecord>> = records else { continue };
            known.insert(ag);
            for record in records {
                let Some(number) = record.owner.as_inode() else { continue };
                let is_attr = record.flags.contains(RmapFlags::ATTR_FORK);
                let map: &mut Vec<Extent> = maps.entry((number, is_attr)).or_default();
                let mut done = 0;
                while done < record.len {
                    let len = (record.len - done).min(LONGEST);
                    map.push(Extent {
                        offset: FileBlock(record.offset.0 + u64::from(done)),
                        start: FsBlock(geometry.fs_block(ag, record.start).0 + u64::from(done)),
                        len,
                        unwritten: record.flags.contains(RmapFlags::UNWRITTEN),
                    });
                    done += len;
                }
            }
        }
        for map in maps.values_mut() {
            map.sort_unstable_by_key(|extent| extent.offset);
        }
        (maps, known)
    }

    /// Whether a claim on a group that is remembered cannot be right: reverse mappings do not have it, and
    /// blocks of it are another's, or free.
    pub(crate) fn doubts(&self, ag: AgNumber, claim: &RmapRecord) -> bool {
        if self.confirms(ag, claim) != Some(false) {
            return false;
        }
        let overlaps =
            |start: u32, len: u32| start < claim.start.0 + claim.len && start + len > claim.start.0;
        let is_anothers =
            self.known(ag).is_some_and(|records| {
                let behind = records.partition_point(|it| it.start.0 < claim.start.0 + claim.len);
                records[..behind].iter().rev().take(MOST_LOOKED_AT).any(|record| {
                    overlaps(record.start.0, record.len) && record.owner != claim.owner
                })
            });
        is_anothers || self.has_free(ag, claim.start, claim.len)
    }

    /// Whether blocks of a range of a group that is remembered were free.
    pub(crate) fn has_free(&self, ag: AgNumber, start: AgBlock, len: u32) -> bool {
        let end = start.0 + len;
        self.free.get(&ag).and_then(Option::as_deref).is_some_and(|free| {
            let behind = free.partition_point(|it| it.start.0 < end);
            free[..behind].last().is_some_and(|last| last.start.0 + last.len > start.0)
        })
    }

    /// Whether the tree of a group that is remembered says that an inode has blocks of a range; `None` if it
    /// says nothing.
    pub(crate) fn confirms(&self, ag: AgNumber, claim: &RmapRecord) -> Option<bool> {
        let records = self.known(ag)?;
        let end = claim.start.0 + claim.len;
        let first = records.partition_point(|record| record.start.0 < end);
        Some(records[..first].iter().rev().take(MOST_LOOKED_AT).any(|record| {
            record.owner == claim.owner
                && record.start.0 + record.len > claim.start.0
                && (!record.has_offset()
                    || record.offset.0.wrapping_sub(record.start.0.into())
                        == claim.offset.0.wrapping_sub(claim.start.0.into()))
        }))
    }
}

/// Records that are looked at for one that is over a block: those of clones of one file.
const MOST_LOOKED_AT: usize = 4096;

/// The records of a group's tree that are wanted, ascending; `None` if the tree is damaged.
fn read(
    subject: &Subject,
    ag: AgNumber,
    is_wanted: impl Fn(&RmapRecord) -> bool,
) -> Option<Vec<RmapRecord>> {
    if !subject.geometry.features.rmapbt() {
        return None;
    }
    let (mut records, mut is_sound) = (Vec::new(), true);
    let end = subject.geometry.ag_length(ag);
    let whole = pieces::owners(&subject.disk, ag, |record| {
        is_sound &= record.validate().is_ok()
            && u64::from(record.start.0) + u64::from(record.len) <= end.into();
        if is_wanted(&record) {
            records.push(record);
        }
    });
    (whole.is_ok() && is_sound).then_some(records)
}
