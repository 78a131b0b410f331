//! A group made anew: all trees from the claims of files and the chunks of inodes, then its headers.

use std::iter;

use undercroft_xfs::format::{
    Agf, Agi, BufferKind, Geometry, Header, RefcountDomain, RefcountRecord, RmapFlags, RmapOwner,
    RmapRecord, TreeHeights, TreeKind, TreeRoot, agfl, bytes,
};
use undercroft_xfs::units::{AgBlock, AgInode, AgNumber, FileBlock, FsBlock, Lsn};

use crate::chunks::Chunks;
use crate::claims::{self, Claims};
use crate::error::RepairError;
use crate::free::Free;
use crate::subject::Subject;
use crate::tree::TreePlan;

/// Inodes of a list of unlinked ones that does not exist.
const NO_LISTS: [AgInode; agi_lists()] = [AgInode::NULL; agi_lists()];

const fn agi_lists() -> usize {
    64
}

/// The sizes and places of the new trees of a group.
#[derive(Debug, Default)]
struct Room {
    bnobt: Vec<AgBlock>,
    cntbt: Vec<AgBlock>,
    rmapbt: Vec<AgBlock>,
    free_list: Vec<AgBlock>,
    inobt: Vec<AgBlock>,
    finobt: Vec<AgBlock>,
    refcountbt: Vec<AgBlock>,
}

/// What a group has, and is to keep while it is made anew.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Where new trees go as long as there is room: blocks that are free on the volume as it was.
    pub(crate) space: Option<Free>,
    /// The lists of inodes without a name.
    pub(crate) unlinked: [AgInode; agi_lists()],
}

impl Default for Kept {
    /// Nothing.
    fn default() -> Self {
        Self { space: None, unlinked: NO_LISTS }
    }
}

/// Makes the trees and headers of a group anew. `claims` are those of files on its blocks.
pub(crate) fn rebuild(
    subject: &Subject,
    chunks: &Chunks,
    ag: AgNumber,
    claims: &Claims,
    kept: &Kept,
) -> Result<(), RepairError> {
    let geometry = &subject.geometry;
    let mut all = claims::fixed(subject, chunks, ag);
    all.extend(claims.of(ag));
    let shared = reference_counts(geometry, &all);
    let free = Free::of(geometry.ag_length(ag), &all);
    canonical(&mut all);
    let builder = Builder { subject, geometry, ag, kept };
    let (room, free) = builder.room(chunks, &free, all.len(), shared.len())?;
    all.extend(room.claims());
    canonical(&mut all);
    all.sort_unstable_by_key(RmapRecord::key);
    builder.write(chunks, &room, &free, &all, &shared)
}

struct Builder<'s> {
    subject: &'s Subject,
    geometry: &'s Geometry,
    ag: AgNumber,
    kept: &'s Kept,
}

impl Builder<'_> {
    fn plan(&self, kind: TreeKind) -> TreePlan<'_> {
        TreePlan::new(self.geometry, kind, self.ag.0.into())
    }

    /// Takes room for all trees. What it takes changes what they hold, so that it is tried until it is enough.
    fn room(
        &self,
        chunks: &Chunks,
        free: &Free,
        claims: usize,
        shared: usize,
    ) -> Result<(Room, Free), RepairError> {
        let features = &self.geometry.features;
        let group = &chunks.groups[self.ag.0 as usize];
        let with_free = group.values().filter(|record| record.freecount > 0).count();
        let inobt = self.plan(TreeKind::Inobt).blocks(group.len(), 0);
        let finobt =
            if features.finobt() { self.plan(TreeKind::Finobt).blocks(with_free, 0) } else { 0 };
        let refcountbt =
            if features.reflink() { self.plan(TreeKind::Refcountbt).blocks(shared, 0) } else { 0 };
        let mut extra = 8;
        loop {
            let bnobt = self.plan(TreeKind::Bnobt).blocks(free.len() + extra, 0);
            let rmapbt = if features.rmapbt() {
                self.plan(TreeKind::Rmapbt).blocks(claims + 4 * extra, 0)
            } else {
                0
            };
            let least = self.free_list(bnobt, rmapbt);
            let counts = [bnobt, bnobt, rmapbt, least, inobt, finobt, refcountbt];
            let total = counts.iter().sum::<usize>();
            let taken = self.take(free, total).or_else(|| self.take(free, total - least));
            let Some((taken, left)) = taken else {
                let what = format!("no room for new trees in allocation group {}", self.ag);
                return Err(RepairError::NotSupported(what));
            };
            let mut blocks = taken.into_iter();
            let has_list = blocks.len() == total;
            let mut next = |count: usize| blocks.by_ref().take(count).collect::<Vec<_>>();
            let room = Room {
                bnobt: next(bnobt),
                cntbt: next(bnobt),
                rmapbt: next(rmapbt),
                free_list: next(if has_list { least } else { 0 }),
                inobt: next(inobt),
                finobt: next(finobt),
                refcountbt: next(refcountbt),
            };
            // Each block of a tree has a record of its own at most.
            let (spaces, records) = (left.len(), claims + room.runs());
            let is_enough = self.plan(TreeKind::Bnobt).blocks(spaces, 0) <= bnobt
                && (rmapbt == 0 || self.plan(TreeKind::Rmapbt).blocks(records, 0) <= rmapbt);
            if is_enough {
                return Ok((room, left));
            }
            extra *= 2;
        }
    }

    /// Takes blocks, of those that are to be taken first if they are enough; returns what is left, too.
    fn take(&self, free: &Free, count: usize) -> Option<(Vec<AgBlock>, Free)> {
        if let Some(space) = &self.kept.space
            && let Some(taken) = space.common(free).take(count as u32)
        {
            let left = free.without(&taken);
            return Some((taken, left));
        }
        let mut left = free.clone();
        left.take(count as u32).map(|taken| (taken, left))
    }

    /// Blocks of the free list: what its trees need to grow by a level each.
    fn free_list(&self, bnobt: usize, rmapbt: usize) -> usize {
        let heights = TreeHeights::new(self.geometry);
        let levels = |blocks: usize| blocks.ilog2() + 1;
        let of = |blocks: usize, most: u32| (levels(blocks.max(1)) + 1).min(most) as usize;
        let mut least = 2 * of(bnobt, heights.alloc);
        if rmapbt > 0 {
            least += of(rmapbt, heights.rmap);
        }
        least.min(agfl::slots(self.geometry) as usize)
    }

    fn write(
        &self,
        chunks: &Chunks,
        room: &Room,
        free: &Free,
        rmaps: &[RmapRecord],
        shared: &[RefcountRecord],
    ) -> Result<(), RepairError> {
        let features = &self.geometry.features;
        let mut by_block: Vec<_> = free.records().collect();
        let encode = |records: &[undercroft_xfs::format::AllocRecord]| {
            let mut bytes = vec![0; records.len() * 8];
            let places = bytes.chunks_exact_mut(8);
            records.iter().zip(places).for_each(|(record, place)| record.encode(place));
            bytes
        };
        let longest = by_block.iter().map(|record| record.len).max().unwrap_or(0);
        let (bnobt, mut spare) = self.tree(TreeKind::Bnobt, &encode(&by_block), &room.bnobt)?;
        by_block.sort_unstable_by_key(|record| (record.len, record.start));
        let (cntbt, more) = self.tree(TreeKind::Cntbt, &encode(&by_block), &room.cntbt)?;
        spare.extend(more);
        let mut rmapbt = TreeRoot::default();
        if features.rmapbt() {
            let mut bytes = vec![0; rmaps.len() * RmapRecord::LEN];
            let places = bytes.chunks_exact_mut(RmapRecord::LEN);
            rmaps.iter().zip(places).for_each(|(record, place)| record.encode(place));
            let (root, more) = self.tree(TreeKind::Rmapbt, &bytes, &room.rmapbt)?;
            spare.extend(more);
            rmapbt = root;
        }
        let mut refcountbt = TreeRoot::default();
        if features.reflink() {
            let mut bytes = vec![0; shared.len() * 12];
            let places = bytes.chunks_exact_mut(12);
            shared.iter().zip(places).for_each(|(record, place)| record.encode(place));
            refcountbt = self.tree(TreeKind::Refcountbt, &bytes, &room.refcountbt)?.0;
        }
        let used = |blocks: &[AgBlock]| blocks.len() as u32;
        let space = used(&room.bnobt) + used(&room.cntbt) + used(&room.rmapbt) - spare.len() as u32;
        let mut agf = Agf {
            ag: self.ag,
            length: self.geometry.ag_length(self.ag),
            bnobt,
            cntbt,
            rmapbt,
            refcountbt,
            free_list_first: agfl::EMPTY_FIRST,
            free_list_last: agfl::EMPTY_LAST,
            free_list_count: 0,
            free_blocks: free.blocks() as u32,
            longest,
            tree_blocks: space - 2 - u32::from(features.rmapbt()),
            rmap_blocks: 0,
            refcount_blocks: used(&room.refcountbt),
        };
        if features.rmapbt() {
            let unused = spare.iter().filter(|block| room.rmapbt.contains(block)).count();
            agf.rmap_blocks = used(&room.rmapbt) - unused as u32;
        }
        let kept: Vec<_> = room.free_list.iter().copied().chain(spare).collect();
        self.headers(agf, &kept)?;
        self.inode_side(chunks, room)
    }

    /// Writes a tree; returns its root, and the blocks that it did not need.
    fn tree(
        &self,
        kind: TreeKind,
        records: &[u8],
        blocks: &[AgBlock],
    ) -> Result<(TreeRoot, Vec<AgBlock>), RepairError> {
        let mut places = blocks.iter().map(|block| self.geometry.fs_block(self.ag, *block));
        let places: &mut dyn Iterator<Item = FsBlock> = &mut places;
        let (root, levels) = self.plan(kind).write(&self.subject.scratch, records, places, 0)?;
        let block = root.first().map_or(AgBlock::NULL, |child| AgBlock(child.pointer() as u32));
        let rest = places.map(|place| self.geometry.split_block(place).1).collect();
        Ok((TreeRoot { block, levels: levels.into() }, rest))
    }

    fn headers(&self, mut agf: Agf, kept: &[AgBlock]) -> Result<(), RepairError> {
        let mut list = vec![0; self.geometry.sector_size()];
        agfl::encode_empty(&mut list, self.geometry, self.ag);
        let mut changes = bytes::Changes::default();
        for block in kept {
            let mut edit = bytes::EditBytes::new(&mut list, &mut changes);
            if !agfl::put_tail(&mut agf, &mut edit, self.geometry, *block) {
                let what = format!("the free list of allocation group {} is full", self.ag);
                return Err(RepairError::NotSupported(what));
            }
        }
        let mut header = vec![0; self.geometry.sector_size()];
        agf.encode(self.geometry, &mut header);
        self.put(1, BufferKind::Agf, &mut header)?;
        self.put(3, BufferKind::Agfl, &mut list)
    }

    fn inode_side(&self, chunks: &Chunks, room: &Room) -> Result<(), RepairError> {
        let features = &self.geometry.features;
        let group = &chunks.groups[self.ag.0 as usize];
        let sparse = features.sparse_inodes();
        let encode = |is_wanted: &dyn Fn(u8) -> bool| {
            let mut all = Vec::new();
            for record in group.values().filter(|record| is_wanted(record.freecount)) {
                let mut bytes = [0; 16];
                record.encode(sparse, &mut bytes);
                all.extend(bytes);
            }
            all
        };
        let inobt = self.tree(TreeKind::Inobt, &encode(&|_| true), &room.inobt)?.0;
        let mut finobt = TreeRoot::default();
        if features.finobt() {
            finobt = self.tree(TreeKind::Finobt, &encode(&|free| free > 0), &room.finobt)?.0;
        }
        let counted = |blocks: &[AgBlock]| {
            if features.inobtcnt() { blocks.len() as u32 } else { 0 }
        };
        let agi = Agi {
            ag: self.ag,
            length: self.geometry.ag_length(self.ag),
            count: group.values().map(|record| u32::from(record.count)).sum(),
            inobt,
            free_count: group.values().map(|record| u32::from(record.freecount)).sum(),
            newest: group.keys().next_back().copied().unwrap_or(AgInode::NULL),
            unlinked: self.kept.unlinked,
            finobt,
            inobt_blocks: counted(&room.inobt),
            finobt_blocks: counted(&room.finobt),
        };
        let mut header = vec![0; self.geometry.sector_size()];
        agi.encode(self.geometry, &mut header);
        self.put(2, BufferKind::Agi, &mut header)
    }

    fn put(&self, index: u32, kind: BufferKind, bytes: &mut [u8]) -> Result<(), RepairError> {
        if let Some(header) = Header::of(kind) {
            header.stamp(bytes, Lsn(0), self.geometry.block_size());
        }
        self.subject.scratch.write(self.geometry.header_sector(self.ag, index), bytes)
    }
}

impl Room {
    /// Runs of blocks that follow each other, of each tree.
    fn runs(&self) -> usize {
        let lists = [
            &self.bnobt,
            &self.cntbt,
            &self.rmapbt,
            &self.free_list,
            &self.inobt,
            &self.finobt,
            &self.refcountbt,
        ];
        lists.iter().map(|list| list.chunk_by(|a, b| a.0 + 1 == b.0).count()).sum()
    }

    /// What the trees claim.
    fn claims(&self) -> impl Iterator<Item = RmapRecord> + '_ {
        let group = [&self.bnobt, &self.cntbt, &self.rmapbt, &self.free_list];
        let inodes = [&self.inobt, &self.finobt];
        let of = |blocks: &[&Vec<AgBlock>], owner: RmapOwner| {
            let blocks: Vec<AgBlock> =
                blocks.iter().flat_map(|list| list.iter().copied()).collect();
            blocks.into_iter().map(move |start| RmapRecord {
                start,
                len: 1,
                owner,
                offset: FileBlock(0),
                flags: RmapFlags::empty(),
            })
        };
        of(&group, RmapOwner::GROUP)
            .chain(of(&inodes, RmapOwner::INODE_TREES))
            .chain(of(&[&self.refcountbt], RmapOwner::REFCOUNT_TREE))
    }
}

/// Makes records that continue each other one.
fn canonical(records: &mut Vec<RmapRecord>) {
    let place = |record: &RmapRecord| {
        let diagonal = if record.has_offset() {
            record.offset.0.wrapping_sub(record.start.0.into())
        } else {
            0
        };
        (record.owner.0, record.flags.bits(), diagonal, record.start)
    };
    records.sort_unstable_by_key(place);
    records.dedup_by(|next, last| {
        let (a, b) = (place(last), place(next));
        let joins = (a.0, a.1, a.2) == (b.0, b.1, b.2)
            && last.start.0 + last.len == next.start.0
            && last.len.checked_add(next.len).is_some();
        if joins {
            last.len += next.len;
        }
        joins
    });
}

/// The blocks that two files or more share, by how many.
fn reference_counts(geometry: &Geometry, claims: &[RmapRecord]) -> Vec<RefcountRecord> {
    if !geometry.features.reflink() {
        return Vec::new();
    }
    let data =
        claims.iter().filter(|record| record.flags.is_empty() && record.owner.as_inode().is_some());
    let ends = data.flat_map(|record| {
        iter::once((record.start.0, 1)).chain(iter::once((record.start.0 + record.len, -1)))
    });
    let mut ends: Vec<(u32, i32)> = ends.collect();
    ends.sort_unstable();
    let (mut counts, mut at, mut count): (Vec<RefcountRecord>, u32, i32) = (Vec::new(), 0, 0);
    for (place, change) in ends {
        if place > at && count >= 2 {
            let follows = counts
                .last_mut()
                .filter(|last| last.start.0 + last.len == at && last.refcount == count as u32);
            match follows {
                Some(last) => last.len += place - at,
                None => counts.push(RefcountRecord {
                    domain: RefcountDomain::Shared,
                    start: AgBlock(at),
                    len: place - at,
                    refcount: count as u32,
                }),
            }
        }
        (at, count) = (place, count + change);
    }
    counts
}
