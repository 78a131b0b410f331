//! The claims of files on blocks, by group, and those of two on one block.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rustc_hash::FxHashSet;
use undercroft_xfs::check::ClaimList;
use undercroft_xfs::format::{
    BufferKind, FileType, Header, InodeFlags2, RmapFlags, RmapOwner, RmapRecord, bytes,
};
use undercroft_xfs::units::{AgBlock, AgNumber, FileBlock, FsBlock, InodeNumber};

use crate::chunks::{self, Chunks};
use crate::error::RepairError;
use crate::inode::Inode;
use crate::inode::sound::Sound;
use crate::owners::Owners;
use crate::pass;
use crate::subject::Subject;

/// Claims on blocks of some groups, in no order.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    groups: BTreeMap<AgNumber, Vec<ClaimList>>,
}

/// Blocks that were taken from inodes.
pub(crate) type Taken = BTreeMap<InodeNumber, Vec<Range<u64>>>;

impl Claims {
    /// No claims on the blocks of groups, those of others are not kept.
    pub(crate) fn on(groups: &BTreeSet<AgNumber>) -> Self {
        Self { groups: groups.iter().map(|ag| (*ag, vec![ClaimList::default()])).collect() }
    }

    /// The claims of inodes on the blocks of groups, by what is on the volume; those of `but` are what they are
    /// to be.
    pub(crate) fn collect(
        subject: &Subject,
        chunks: &Chunks,
        groups: &BTreeSet<AgNumber>,
        but: &BTreeMap<InodeNumber, Inode>,
    ) -> Result<Self, RepairError> {
        let parts = pass::over(
            subject,
            chunks,
            || Self::on(groups),
            |claims, found| {
                if found.in_use
                    && !but.contains_key(&found.number)
                    && let Some(sound) = Sound::read(subject, found.number, found.bytes)
                {
                    sound.claims(subject, &mut |ag, record| claims.add(ag, &record));
                }
                Ok(())
            },
        )?;
        let mut claims = Self::on(groups);
        parts.into_iter().for_each(|part| claims.append(part));
        for inode in but.values() {
            inode.claims(subject, &mut |ag, record| claims.add(ag, &record));
        }
        Ok(claims)
    }

    /// Adds a claim, if those of the group are kept.
    pub(crate) fn add(&mut self, ag: AgNumber, record: &RmapRecord) {
        if let Some(last) = self.groups.get_mut(&ag).and_then(|group| group.last_mut()) {
            last.push(record);
        }
    }

    /// Adds claims and the groups that they are kept of.
    pub(crate) fn append(&mut self, mut other: Self) {
        for (ag, mut lists) in std::mem::take(&mut other.groups) {
            self.groups.entry(ag).or_default().append(&mut lists);
        }
    }

    /// Whether the claims on a group are kept.
    pub(crate) fn has(&self, ag: AgNumber) -> bool {
        self.groups.contains_key(&ag)
    }

    /// The groups whose claims are kept.
    pub(crate) fn groups(&self) -> impl Iterator<Item = AgNumber> + '_ {
        self.groups.keys().copied()
    }

    /// The claims on a group.
    pub(crate) fn of(&self, ag: AgNumber) -> impl Iterator<Item = RmapRecord> + '_ {
        self.groups.get(&ag).into_iter().flatten().flatten()
    }

    /// Takes the claims of inodes away; returns the groups where there were some.
    pub(crate) fn remove(&mut self, inodes: &BTreeSet<InodeNumber>) -> BTreeSet<AgNumber> {
        let mut groups = BTreeSet::new();
        let stays = |record: &RmapRecord| {
            record.owner.as_inode().is_none_or(|number| !inodes.contains(&number))
        };
        for (ag, lists) in &mut self.groups {
            for list in lists {
                if list.iter().all(|record| stays(&record)) {
                    continue;
                }
                let mut rest = ClaimList::default();
                list.iter().filter(stays).for_each(|record| rest.push(&record));
                *list = rest;
                groups.insert(*ag);
            }
        }
        groups
    }

    /// Finds blocks that two claim and only one can have, and decides who has them. Inodes in `shared` share
    /// their blocks rightfully though they do not say so; they are added.
    pub(crate) fn contested(
        &self,
        subject: &Subject,
        chunks: &Chunks,
        owners: &mut Owners,
        shared: &mut FxHashSet<InodeNumber>,
    ) -> Result<Taken, RepairError> {
        let mut taken = Taken::new();
        for ag in self.groups() {
            let mut all = fixed(subject, chunks, ag);
            all.extend(self.of(ag));
            all.sort_unstable_by_key(|record| (record.start, record.owner.0));
            let mut active: Vec<RmapRecord> = Vec::new();
            for record in &all {
                active.retain(|other| other.start.0 + other.len > record.start.0);
                for other in &active {
                    let start = other.start.max(record.start).0;
                    let end = (other.start.0 + other.len).min(record.start.0 + record.len);
                    let pair = [other, record];
                    if may_share(subject, pair) && is_shared(subject, owners, ag, pair, shared) {
                        continue;
                    }
                    if let Some(number) = loser(subject, owners, ag, pair)? {
                        let first = subject.geometry.fs_block(ag, other.start.max(record.start)).0;
                        let blocks = first..first + u64::from(end - start);
                        taken.entry(number).or_default().push(blocks);
                    }
                }
                active.push(*record);
                if active.len() > MOST_ACTIVE {
                    active.remove(0);
                }
            }
        }
        Ok(taken)
    }
}

/// Claims over one block that are compared: clones of one file.
const MOST_ACTIVE: usize = 4096;

/// What no file can have: headers, the journal, chunks of inodes.
pub(crate) fn fixed(subject: &Subject, chunks: &Chunks, ag: AgNumber) -> Vec<RmapRecord> {
    let geometry = &subject.geometry;
    let own = |start, len, owner| RmapRecord {
        start,
        len,
        owner,
        offset: FileBlock(0),
        flags: RmapFlags::empty(),
    };
    let first = AgBlock(0);
    let mut records = vec![own(first, geometry.ag_header_blocks(), RmapOwner::FILE_SYSTEM)];
    let (log_group, log) = geometry.split_block(geometry.log_start);
    if log_group == ag {
        records.push(own(log, geometry.log_blocks, RmapOwner::LOG));
    }
    for record in chunks.groups[ag.0 as usize].values() {
        let runs = chunks::blocks(geometry, record);
        records.extend(runs.map(|(start, len)| own(start, len, RmapOwner::INODES)));
    }
    records
}

fn is_data(record: &RmapRecord) -> bool {
    record.owner.as_inode().is_some() && record.flags.is_empty()
}

fn may_share(subject: &Subject, pair: [&RmapRecord; 2]) -> bool {
    subject.geometry.features.reflink() && pair.into_iter().all(is_data)
}

/// Whether two claims on data are rightful: both inodes say that they share blocks, or the reverse mappings
/// have both.
fn is_shared(
    subject: &Subject,
    owners: &mut Owners,
    ag: AgNumber,
    pair: [&RmapRecord; 2],
    shared: &mut FxHashSet<InodeNumber>,
) -> bool {
    let numbers = pair.map(|record| record.owner.as_inode().unwrap_or_default());
    if numbers.iter().all(|number| shared.contains(number)) {
        return true;
    }
    let read = |number: InodeNumber| {
        let bytes = subject.read_inode(number).ok()?;
        let mode = bytes::be16(&bytes, 2);
        let is_file = FileType::from_mode(mode) == Some(FileType::Regular);
        is_file.then(|| bytes::be64(&bytes, 120) & InodeFlags2::REFLINK.bits() != 0)
    };
    let (Some(first), Some(second)) = (read(numbers[0]), read(numbers[1])) else { return false };
    owners.remember(subject, ag);
    let is_rightful = (first && second)
        || pair.into_iter().all(|record| owners.confirms(ag, record) == Some(true));
    if is_rightful {
        shared.extend(numbers);
    }
    is_rightful
}

/// Who does not have the blocks of two that claim them: what is fixed stays; else the one that reverse mappings
/// do not have; else the one whose blocks say that they are another's; else the one that was changed earlier.
fn loser(
    subject: &Subject,
    owners: &mut Owners,
    ag: AgNumber,
    pair: [&RmapRecord; 2],
) -> Result<Option<InodeNumber>, RepairError> {
    let numbers = pair.map(|record| record.owner.as_inode());
    let (first, second) = match numbers {
        [None, None] => return Ok(None),
        [Some(number), None] | [None, Some(number)] => return Ok(Some(number)),
        [Some(first), Some(second)] => (first, second),
    };
    if first == second && pair[0] == pair[1] {
        return Ok(Some(second));
    }
    owners.remember(subject, ag);
    let confirmed = pair.map(|record| owners.confirms(ag, record));
    match confirmed {
        [Some(true), Some(false)] => return Ok(Some(second)),
        [Some(false), Some(true)] => return Ok(Some(first)),
        _ => {}
    }
    let block = subject.geometry.fs_block(ag, pair[0].start.max(pair[1].start));
    let own = block_owner(subject, block)?;
    let says = |record: &RmapRecord| own.is_some_and(|own| record.owner.as_inode() == Some(own));
    match pair.map(says) {
        [true, false] => return Ok(Some(second)),
        [false, true] => return Ok(Some(first)),
        _ => {}
    }
    let changed = |number| {
        let inode = subject.read_inode(number)?;
        Ok::<u64, RepairError>(bytes::be64(&inode, 112))
    };
    Ok(Some(if changed(first)? >= changed(second)? { second } else { first }))
}

/// The inode that a block of metadata says it belongs to.
fn block_owner(subject: &Subject, block: FsBlock) -> Result<Option<InodeNumber>, RepairError> {
    let bytes = subject.blocks(block, 1)?;
    let header = BufferKind::of_block(&bytes).and_then(Header::of);
    let header = header.filter(|header| {
        header.inode_owner_offset().is_some()
            && header.volume(&bytes) == subject.geometry.meta_uuid
            && header.address(&bytes) == Some(subject.geometry.sector(block))
    });
    Ok(header.and_then(|header| header.owner(&bytes)).map(InodeNumber))
}
