//! The superblock: put right from its copies; then the copies and the counters from it.

use std::collections::{BTreeSet, HashMap};

use undercroft_block::Sector;
use undercroft_recover::{Scan, pieces};
use undercroft_xfs::format::{
    Agf, Agi, BufferKind, Counters, FileType, Geometry, Header, InodeCore, Superblock, TreeHeights,
    bytes,
};
use undercroft_xfs::units::{AgNumber, InodeNumber, Lsn};

use crate::action::{Action, Place};
use crate::error::RepairError;
use crate::faults::Faults;
use crate::scratch::Scratch;
use crate::sizes::shorten;

/// Sectors have 32 KiB at most.
const LONGEST_SECTOR: u64 = 32 << 10;

/// Where fields are.
mod at {
    pub(super) const ROOT: usize = 56;
    pub(super) const BITMAP: usize = 64;
    pub(super) const SUMMARY: usize = 72;
    pub(super) const IN_PROGRESS: usize = 126;
    pub(super) const QUOTA_INODES: [usize; 2] = [160, 168];
    pub(super) const QUOTA_FLAGS: usize = 176;
    pub(super) const FLAGS: usize = 178;
    pub(super) const FEATURES2: usize = 200;
    pub(super) const BAD_FEATURES2: usize = 204;
    pub(super) const COMPAT: usize = 208;
    pub(super) const LOG_INCOMPAT: usize = 220;
    pub(super) const PROJECT_QUOTA: usize = 232;
    pub(super) const NEEDS_REPAIR: u32 = 1 << 4;
    pub(super) const INCOMPAT: usize = 216;
}

/// Makes the first superblock one that a volume can be opened with; returns it, and the bytes that the volume
/// had if the device has less.
pub(crate) fn mend(
    scratch: &Scratch,
    actions: &mut Vec<Action>,
) -> Result<(Superblock, Option<u64>), RepairError> {
    let capacity = scratch.below().capacity().0 * 512;
    let found = at_sector(scratch, Sector(0), capacity)
        .ok()
        .and_then(|superblock| superblock.check_primary(capacity).is_ok().then_some(superblock));
    // Where copies agree on other sizes, the first is the one that is wrong.
    if let Some(superblock) = found
        && agrees(scratch, &superblock)
    {
        return Ok((find_root(scratch, supported(superblock)?, actions)?, None));
    }
    let copy = best_copy(scratch, capacity)?;
    let geometry = copy.1.geometry();
    let needed = geometry.blocks << geometry.block_log;
    let mut sector = scratch.read(Sector(copy.0), geometry.sector_size())?;
    let is_short = needed > capacity;
    let first = scratch.read(Sector(0), geometry.sector_size())?;
    let is_own = |own: Superblock| sizes(&own.geometry()) == sizes(&geometry);
    if is_short && Superblock::decode(&first).is_ok_and(is_own) {
        sector = first;
        Counters::default().encode(&mut sector);
    } else {
        complete(&mut sector, &geometry);
    }
    if is_short && !shorten(&mut sector, &geometry, capacity) {
        return Err(RepairError::Short { end: capacity, needed });
    }
    stamp(&mut sector, &geometry);
    scratch.write(Sector(0), &sector)?;
    if is_short {
        let superblock = supported(at_sector(scratch, Sector(0), capacity)?)?;
        return Ok((superblock, Some(needed)));
    }
    actions.push(Action {
        place: Place::Volume,
        what: format!("the superblock is damaged: renewed from the copy at sector {}", copy.0),
        loss: None,
    });
    let superblock = at_sector(scratch, Sector(0), capacity)?;
    superblock.check_primary(capacity).map_err(|error| {
        RepairError::NotSupported(format!("no copy of the superblock can be used: {error}"))
    })?;
    Ok((supported(superblock)?, None))
}

fn supported(superblock: Superblock) -> Result<Superblock, RepairError> {
    let features = &superblock.features;
    let refuse = |what: &str| Err(RepairError::NotSupported(what.into()));
    if !features.crc {
        return refuse(
            "the volume is of version 4, whose blocks do not say what they are: xfs_repair repairs it",
        );
    }
    if features.metadir() || superblock.rt_blocks > 0 {
        return refuse(
            "the volume has a realtime device or a metadata directory: xfs_repair repairs it",
        );
    }
    if superblock.log_start.is_null() || superblock.log_blocks == 0 {
        return refuse("the journal is on another device: xfs_repair repairs the volume");
    }
    Ok(superblock)
}

/// The first superblock.
pub(crate) fn read(scratch: &Scratch) -> Result<Superblock, RepairError> {
    at_sector(scratch, Sector(0), scratch.below().capacity().0 * 512)
}

/// Makes a superblock the first one.
pub(crate) fn write(scratch: &Scratch, superblock: &Superblock) -> Result<(), RepairError> {
    let geometry = superblock.geometry();
    let mut sector = vec![0; geometry.sector_size()];
    superblock.encode(&mut sector);
    if let Some(header) = Header::of(BufferKind::Superblock) {
        header.stamp(&mut sector, superblock.lsn, geometry.block_size());
    }
    scratch.write(Sector(0), &sector)
}

/// Makes the counters of a superblock those of the groups, and all copies like it.
pub(crate) fn renew(scratch: &Scratch, superblock: &Superblock) -> Result<(), RepairError> {
    let geometry = superblock.geometry();
    let Counters { inodes, free_inodes, free_blocks } = count(scratch, &geometry)?;
    write(scratch, &Superblock { inodes, free_inodes, free_blocks, ..superblock.clone() })?;
    let first = scratch.read(Sector(0), geometry.sector_size())?;
    (1..geometry.ag_count).try_for_each(|ag| copy(scratch, &first, &geometry, AgNumber(ag)))
}

fn at_sector(scratch: &Scratch, sector: Sector, capacity: u64) -> Result<Superblock, RepairError> {
    let len = capacity.min(LONGEST_SECTOR) as usize;
    let bytes = scratch.read(sector, len)?;
    Superblock::decode(&bytes).map_err(|_| RepairError::NoSuperblock)
}

/// Makes the superblock name the root directory, if what it names cannot be that.
fn find_root(
    scratch: &Scratch,
    superblock: Superblock,
    actions: &mut Vec<Action>,
) -> Result<Superblock, RepairError> {
    let geometry = superblock.geometry();
    let root = root_inode(&geometry);
    let named = superblock.root_inode;
    if named == root || is_root_inode(scratch, named, &geometry) {
        return Ok(superblock);
    }
    let mut sector = scratch.read(Sector(0), geometry.sector_size())?;
    bytes::put_be64(&mut sector, at::ROOT, root.0);
    stamp(&mut sector, &geometry);
    scratch.write(Sector(0), &sector)?;
    let what = format!("the root directory is said to be inode {named}: set to {root}");
    actions.push(Action { place: Place::Volume, what, loss: None });
    Ok(Superblock { root_inode: root, ..superblock })
}

/// Whether a copy says the same sizes; true where none can be read.
fn agrees(scratch: &Scratch, superblock: &Superblock) -> bool {
    let geometry = superblock.geometry();
    let groups = (1..geometry.ag_count).map(AgNumber).take(4);
    let (mut same, mut other) = (0, 0);
    for ag in groups {
        let bytes = scratch.read(geometry.header_sector(ag, 0), geometry.sector_size());
        let Some(copy) = bytes.ok().and_then(|bytes| Superblock::decode(&bytes).ok()) else {
            continue;
        };
        if sizes(&copy.geometry()) == sizes(&geometry) { same += 1 } else { other += 1 }
    }
    other == 0 || same > 0
}

/// The sizes that all copies have.
fn sizes(geometry: &Geometry) -> [u64; 8] {
    [
        geometry.block_log.into(),
        geometry.sector_log.into(),
        geometry.inode_log.into(),
        geometry.dir_block_log.into(),
        geometry.blocks,
        geometry.ag_blocks.into(),
        geometry.ag_count.into(),
        geometry.log_start.0,
    ]
}

/// The copy whose sizes most copies have, of those in their places.
fn best_copy(scratch: &Scratch, capacity: u64) -> Result<(u64, Superblock), RepairError> {
    let whole = 0..capacity / 512;
    let scan = Scan::read(&scratch.device(), std::slice::from_ref(&whole), &mut |_, _, _| {});
    let mut votes: HashMap<[u64; 8], Vec<(u64, Superblock)>> = HashMap::new();
    for traces in &scan.volumes {
        for (sector, superblock) in pieces::superblocks(traces) {
            let geometry = superblock.geometry();
            let group = u64::from(geometry.ag_blocks) << (geometry.block_log - 9);
            if sector > 0 && sector.is_multiple_of(group) && superblock.features.crc {
                votes.entry(sizes(&geometry)).or_default().push((sector, superblock.clone()));
            }
        }
    }
    let best = votes.into_iter().max_by_key(|(sizes, copies)| (copies.len(), *sizes));
    let copy = best.and_then(|(_, copies)| copies.into_iter().next());
    copy.ok_or(RepairError::NoSuperblock)
}

/// What the first superblock has and copies do not.
fn complete(sector: &mut [u8], geometry: &Geometry) {
    let root = root_inode(geometry);
    bytes::put_be64(sector, at::ROOT, root.0);
    bytes::put_be64(sector, at::BITMAP, root.0 + 1);
    bytes::put_be64(sector, at::SUMMARY, root.0 + 2);
    sector[at::IN_PROGRESS] = 0;
    // They are summed up at the end; until then they have to be possible.
    Counters::default().encode(sector);
}

/// Where the root directory must be (docs/format/new-volumes.md#root-directory).
pub(crate) fn root_inode(geometry: &Geometry) -> InodeNumber {
    let features = &geometry.features;
    let heights = TreeHeights::new(geometry);
    let trees = [features.finobt(), features.rmapbt(), features.reflink()];
    let grows = |height: u32| 2 * u32::from(height > 1);
    let free_list =
        2 * grows(heights.alloc) + if features.rmapbt() { grows(heights.rmap) } else { 0 };
    let mut block =
        geometry.ag_header_blocks() + 3 + free_list + trees.into_iter().map(u32::from).sum::<u32>();
    if geometry.split_block(geometry.log_start).0 == AgNumber(0) {
        block += geometry.log_blocks;
    }
    let align = geometry.cluster_alignment();
    let unit = geometry.stripe_unit;
    if unit > 0 && unit.is_multiple_of(align) && align > 1 {
        block = block.next_multiple_of(unit);
    } else if geometry.inode_alignment > 1 {
        block = block.next_multiple_of(geometry.inode_alignment);
    }
    InodeNumber(u64::from(block) << geometry.inodes_per_block_log())
}

fn stamp(sector: &mut [u8], geometry: &Geometry) {
    if let Some(header) = Header::of(BufferKind::Superblock) {
        let lsn = header.lsn(sector).filter(|lsn| !lsn.is_null()).unwrap_or(Lsn(0));
        header.stamp(sector, lsn, geometry.block_size());
    }
}

/// Puts right what the first superblock says beside sizes, and makes the copies that differ anew.
pub(crate) fn settle(
    scratch: &Scratch,
    superblock: &Superblock,
    faults: &Faults,
    actions: &mut Vec<Action>,
) -> Result<(), RepairError> {
    let geometry = superblock.geometry();
    let mut first = scratch.read(Sector(0), geometry.sector_size())?;
    let before = first.clone();
    count(scratch, &geometry)?.encode(&mut first);
    first[superblock.fields_end()..].fill(0);
    let root = root_inode(&geometry);
    if superblock.root_inode != root && !is_root_inode(scratch, superblock.root_inode, &geometry) {
        bytes::put_be64(&mut first, at::ROOT, root.0);
    }
    let own = bytes::be64(&first, at::ROOT);
    bytes::put_be64(&mut first, at::BITMAP, own + 1);
    bytes::put_be64(&mut first, at::SUMMARY, own + 2);
    first[at::FLAGS] = 0;
    bytes::put_be32(&mut first, at::COMPAT, 0);
    bytes::put_be32(&mut first, at::LOG_INCOMPAT, 0);
    let features2 = bytes::be32(&first, at::FEATURES2);
    bytes::put_be32(&mut first, at::BAD_FEATURES2, features2);
    let incompat = bytes::be32(&first, at::INCOMPAT);
    bytes::put_be32(&mut first, at::INCOMPAT, incompat & !at::NEEDS_REPAIR);
    if faults.quota || superblock.quota_flags & 0x30 != 0 {
        bytes::put_be16(&mut first, at::QUOTA_FLAGS, 0);
        for place in at::QUOTA_INODES.into_iter().chain([at::PROJECT_QUOTA]) {
            bytes::put_be64(&mut first, place, u64::MAX);
        }
    }
    stamp(&mut first, &geometry);
    if first != before {
        scratch.write(Sector(0), &first)?;
        let what = "fields or counters of the superblock are wrong: set right".into();
        actions.push(Action { place: Place::Volume, what, loss: None });
    }
    copies(scratch, &first, &geometry, &faults.copies, actions)
}

fn is_root_inode(scratch: &Scratch, number: InodeNumber, geometry: &Geometry) -> bool {
    if !geometry.valid_inode(number) {
        return false;
    }
    let bytes = scratch.read(geometry.inode_sector(number), geometry.inode_size());
    let core = bytes.ok().and_then(|bytes| InodeCore::decode(&bytes, geometry).ok());
    core.is_some_and(|core| core.number == number && core.file_type() == Some(FileType::Directory))
}

/// Makes copies anew.
fn copies(
    scratch: &Scratch,
    first: &[u8],
    geometry: &Geometry,
    damaged: &BTreeSet<AgNumber>,
    actions: &mut Vec<Action>,
) -> Result<(), RepairError> {
    for ag in damaged.iter().copied().filter(|ag| ag.0 > 0 && ag.0 < geometry.ag_count) {
        copy(scratch, first, geometry, ag)?;
        let what = "the copy of the superblock is damaged: made anew".into();
        actions.push(Action { place: Place::Group(ag), what, loss: None });
    }
    Ok(())
}

/// Writes the copy in a group.
fn copy(
    scratch: &Scratch,
    first: &[u8],
    geometry: &Geometry,
    ag: AgNumber,
) -> Result<(), RepairError> {
    let mut copy = first.to_vec();
    Counters::default().encode(&mut copy);
    stamp(&mut copy, geometry);
    scratch.write(geometry.header_sector(ag, 0), &copy)
}

fn count(scratch: &Scratch, geometry: &Geometry) -> Result<Counters, RepairError> {
    let mut sum = Counters::default();
    for ag in (0..geometry.ag_count).map(AgNumber) {
        let header =
            |index| scratch.read(geometry.header_sector(ag, index), geometry.sector_size());
        let (agf, agi) = (header(1)?, header(2)?);
        sum.add(&Agf::decode(&agf, geometry), &Agi::decode(&agi, geometry));
    }
    Ok(sum)
}
