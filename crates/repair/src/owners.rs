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
        let read = || {
            if !subject.geometry.features.rmapbt() {
                return None;
            }
            let mut records = Vec::new();
            let end = subject.geometry.ag_length(ag);
            let whole = pieces::owners(&subject.disk, ag, |record| records.push(record));
            let is_sound = |record: &RmapRecord| {
                record.validate().is_ok()
                    && u64::from(record.start.0) + u64::from(record.len) <= end.into()
            };
            (whole.is_ok() && records.iter().all(is_sound)).then_some(records)
        };
        self.groups.entry(ag).or_insert_with(read).as_deref()
    }

    /// Reads what a group said, before that is made anew.
    pub(crate) fn remember(&mut self, subject: &Subject, ag: AgNumber) {
        let _ = self.of_group(subject, ag);
        let _ = self.free_of(subject, ag);
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
        for ag in (0..subject.geometry.ag_count).map(AgNumber) {
            let geometry = subject.geometry.clone();
            let Some(records) = self.of_group(subject, ag) else { continue };
            known.insert(ag);
            for record in records {
                let Some(number) = record.owner.as_inode() else { continue };
                if record.flags.contains(RmapFlags::BMBT_BLOCK) || !wanted.contains(&number) {
                    continue;
                }
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

    /// Whether a claim cannot be right: reverse mappings do not have it, and blocks of it are another's, or
    /// free.
    pub(crate) fn doubts(&mut self, subject: &Subject, ag: AgNumber, claim: &RmapRecord) -> bool {
        if self.confirms(subject, ag, claim) != Some(false) {
            return false;
        }
        let overlaps =
            |start: u32, len: u32| start < claim.start.0 + claim.len && start + len > claim.start.0;
        let is_anothers =
            self.of_group(subject, ag).is_some_and(|records| {
                let behind = records.partition_point(|it| it.start.0 < claim.start.0 + claim.len);
                records[..behind].iter().rev().take(4096).any(|record| {
                    overlaps(record.start.0, record.len) && record.owner != claim.owner
                })
            });
        is_anothers || self.has_free(subject, ag, claim.start, claim.len)
    }

    /// Whether blocks of a range were free.
    pub(crate) fn has_free(
        &mut self,
        subject: &Subject,
        ag: AgNumber,
        start: AgBlock,
        len: u32,
    ) -> bool {
        let end = start.0 + len;
        self.free_of(subject, ag).is_some_and(|free| {
            let behind = free.partition_point(|it| it.start.0 < end);
            free[..behind].last().is_some_and(|last| last.start.0 + last.len > start.0)
        })
    }

    /// The free extents of a group, as they were.
    fn free_of(&mut self, subject: &Subject, ag: AgNumber) -> Option<&[AllocRecord]> {
        let read = || pieces::free(&subject.disk, ag).ok();
        self.free.entry(ag).or_insert_with(read).as_deref()
    }

    /// Whether a group's tree says that an inode has blocks of a range; `None` if it says nothing.
    pub(crate) fn confirms(
        &mut self,
        subject: &Subject,
        ag: AgNumber,
        claim: &RmapRecord,
    ) -> Option<bool> {
        let records = self.of_group(subject, ag)?;
        let end = claim.start.0 + claim.len;
        let first = records.partition_point(|record| record.start.0 < end);
        Some(records[..first].iter().rev().take(4096).any(|record| {
            record.owner == claim.owner
                && record.start.0 + record.len > claim.start.0
                && (!record.has_offset()
                    || record.offset.0.wrapping_sub(record.start.0.into())
                        == claim.offset.0.wrapping_sub(claim.start.0.into()))
        }))
    }
}
