//! The claims of files on blocks, by group, and those of two on one block.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rustc_hash::FxHashSet;
use undercroft_xfs::format::{
    BufferKind, FileType, Header, InodeFlags2, RmapFlags, RmapOwner, RmapRecord, bytes,
};
use undercroft_xfs::units::{AgBlock, AgNumber, FileBlock, FsBlock, InodeNumber};

use crate::chunks::{self, Chunks};
use crate::error::RepairError;
use crate::owners::Owners;
use crate::subject::Subject;

/// Claims by group, in no order.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    pub(crate) groups: Vec<Vec<RmapRecord>>,
}

/// Blocks that were taken from inodes.
pub(crate) type Taken = BTreeMap<InodeNumber, Vec<Range<u64>>>;

impl Claims {
    pub(crate) fn new(groups: u32) -> Self {
        Self { groups: (0..groups).map(|_| Vec::new()).collect() }
    }

    pub(crate) fn add(&mut self, ag: AgNumber, record: RmapRecord) {
        if let Some(group) = self.groups.get_mut(ag.0 as usize) {
            group.push(record);
        }
    }

    /// Takes the claims of inodes away; returns the groups where there were some.
    pub(crate) fn remove(&mut self, inodes: &BTreeSet<InodeNumber>) -> BTreeSet<AgNumber> {
        let mut groups = BTreeSet::new();
        for (ag, group) in (0..).map(AgNumber).zip(&mut self.groups) {
            let before = group.len();
            group.retain(|record| {
                record.owner.as_inode().is_none_or(|number| !inodes.contains(&number))
            });
            if group.len() != before {
                groups.insert(ag);
            }
        }
        groups
    }

    /// Finds blocks that two claim and only one can have, and decides who has them. Inodes in `shared` share
    /// their blocks rightfully though they do not say so; they are added.
    pub(crate) fn contested(
        &mut self,
        subject: &Subject,
        chunks: &Chunks,
        owners: &mut Owners,
        shared: &mut FxHashSet<InodeNumber>,
    ) -> Result<Taken, RepairError> {
        let mut taken = Taken::new();
        for ag in (0..subject.geometry.ag_count).map(AgNumber) {
            let mut all = fixed(subject, chunks, ag);
            all.extend_from_slice(&self.groups[ag.0 as usize]);
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
    let is_rightful = (first && second)
        || pair.into_iter().all(|record| owners.confirms(subject, ag, record) == Some(true));
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
    let confirmed = pair.map(|record| owners.confirms(subject, ag, record));
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
