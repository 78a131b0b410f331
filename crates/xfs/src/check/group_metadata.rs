//! Everything rooted in the headers of a group: headers, free list and trees.

use super::checker::Checker;
use super::group::{FREE, Group};
use super::tree::{Home, TreeContent, TreeWalk};
use super::{Location, free_space, inode_trees};
use crate::btree::{Bnobt, BtreeKind, Cntbt, Finobt, Inobt, Refcountbt, Rmapbt};
use crate::format::{
    Agf, Agi, AllocRecord, BufferKind, Header, HeaderError, RefcountDomain, RmapOwner, TreeRoot,
    agfl,
};
use crate::units::{AgBlock, AgNumber};
use undercroft_block::{Buffer, Sector};

/// The blocks of a group as the home of its trees.
struct GroupHome<'a> {
    checker: &'a Checker,
    ag: AgNumber,
}

impl Home for GroupHome<'_> {
    type Pointer = AgBlock;

    fn contains(&self, pointer: AgBlock) -> bool {
        let geometry = self.checker.geometry();
        pointer > geometry.ag_header_last() && pointer.0 < geometry.ag_length(self.ag)
    }

    fn sector(&self, pointer: AgBlock) -> Sector {
        self.checker.geometry().ag_sector(self.ag, pointer)
    }

    fn location(&self, pointer: AgBlock) -> Location {
        Location::Block(self.ag, pointer)
    }

    fn owner(&self) -> u64 {
        self.ag.0.into()
    }
}

/// Reads and checks everything that is rooted in the headers of group `ag`.
pub(super) fn check(checker: &Checker, ag: AgNumber) -> Group {
    let geometry = checker.geometry();
    let mut group =
        Group { space_known: true, rmaps_known: true, shared_known: true, ..Group::default() };
    group.claim(AgBlock(0), geometry.ag_header_blocks(), RmapOwner::FILE_SYSTEM);
    if !geometry.log_start.is_null() {
        let (log_ag, start) = geometry.split_block(geometry.log_start);
        if log_ag == ag {
            group.claim(start, geometry.log_blocks, RmapOwner::LOG);
        }
    }
    let agf = header(checker, ag, 1, BufferKind::Agf).and_then(|bytes| agf(checker, ag, &bytes));
    let agi = header(checker, ag, 2, BufferKind::Agi).and_then(|bytes| agi(checker, ag, &bytes));
    match agf {
        Some(agf) => {
            free_list(checker, ag, &agf, &mut group);
            space_trees(checker, ag, &agf, &mut group);
            group.agf = Some(agf);
        }
        None => {
            (group.space_known, group.rmaps_known, group.shared_known) = (false, false, false);
            checker.set_incomplete();
        }
    }
    match agi {
        Some(agi) => {
            inode_side(checker, ag, &agi, &mut group);
            group.agi = Some(agi);
        }
        None => {
            group.space_known = false;
            checker.set_incomplete();
        }
    }
    group
}

/// Header sector `index` of a group, with a right checksum, magic and identifier.
fn header(checker: &Checker, ag: AgNumber, index: u32, kind: BufferKind) -> Option<Buffer> {
    let geometry = checker.geometry();
    let (sector, location) = (geometry.header_sector(ag, index), Location::Group(ag));
    let bytes = match checker.read_bytes(&[(sector, checker.sectors())]) {
        Ok(bytes) => bytes,
        Err(what) => {
            checker.error(kind.name(), location, what);
            return None;
        }
    };
    if geometry.features.crc
        && let Some(header) = Header::of(kind)
        && let Err(what) = header.verify(&bytes, sector, &geometry.meta_uuid, geometry.block_size())
    {
        checker.error(kind.name(), location, what);
        return None;
    }
    checker.note_header_lsn(kind, &bytes);
    Some(bytes)
}

/// Reports the defects of a header and says whether it can be used.
fn judge(
    checker: &Checker,
    structure: &'static str,
    ag: AgNumber,
    result: Result<(), HeaderError>,
) -> bool {
    result
        .inspect_err(|error| checker.error(structure, Location::Group(ag), error.to_string()))
        .is_ok()
}

fn agf(checker: &Checker, ag: AgNumber, bytes: &[u8]) -> Option<Agf> {
    let geometry = checker.geometry();
    if !judge(checker, "AGF", ag, Agf::verify(bytes, geometry, ag)) {
        return None;
    }
    let agf = Agf::decode(bytes, geometry);
    judge(checker, "AGF", ag, agfl::ring(&agf, geometry).map(drop));
    if agfl::is_short(&agf, geometry) {
        let what = "the free list is that of a kernel before 4.5, whose ring has a slot less: it is \
                    put in order when space of the group is taken or freed; today's kernels leak it";
        checker.error("AGF", Location::Group(ag), what);
    }
    Some(agf)
}

fn agi(checker: &Checker, ag: AgNumber, bytes: &[u8]) -> Option<Agi> {
    let geometry = checker.geometry();
    if !judge(checker, "AGI", ag, Agi::verify(bytes, geometry, ag)) {
        return None;
    }
    Some(Agi::decode(bytes, geometry))
}

fn free_list(checker: &Checker, ag: AgNumber, agf: &Agf, group: &mut Group) {
    let geometry = checker.geometry();
    let known = header(checker, ag, 3, BufferKind::Agfl).filter(|bytes| {
        judge(checker, "AGFL", ag, agfl::verify(bytes, geometry, ag))
            && agfl::ring(agf, geometry).is_ok()
    });
    let Some(bytes) = known else {
        group.space_known = false;
        checker.set_incomplete();
        return;
    };
    for block in agfl::live(agf, &bytes, geometry) {
        if block > geometry.ag_header_last() && block.0 < geometry.ag_length(ag) {
            group.claim(block, 1, RmapOwner::GROUP);
        } else {
            checker.error("AGFL", Location::Group(ag), format!("block {block} is out of range"));
        }
    }
}

/// Walks one tree of a group.
fn walk<K: BtreeKind<Pointer = AgBlock>>(
    checker: &Checker,
    ag: AgNumber,
    root: TreeRoot,
) -> TreeContent<K> {
    let home = GroupHome { checker, ag };
    // The verifier of the header bounds the number of levels.
    TreeWalk::<K, _>::rooted(checker, &home, root.block, root.levels as usize)
}

fn space_trees(checker: &Checker, ag: AgNumber, agf: &Agf, group: &mut Group) {
    let features = &checker.geometry().features;
    let location = Location::Group(ag);
    let by_block = walk::<Bnobt>(checker, ag, agf.bnobt);
    let by_size = walk::<Cntbt>(checker, ag, agf.cntbt);
    group.claim_blocks(&by_block.blocks, RmapOwner::GROUP);
    group.claim_blocks(&by_size.blocks, RmapOwner::GROUP);
    let mut tree_blocks = by_block.blocks.len() + by_size.blocks.len()
        - 2.min(usize::from(!by_block.blocks.is_empty()) + usize::from(!by_size.blocks.is_empty()));
    let mut all = by_block.complete && by_size.complete;
    let complete = by_block.complete || by_size.complete;
    group.space_known &= by_block.complete && by_size.complete;
    let free: Vec<AllocRecord> = free_space::check(checker, ag, agf, by_block, by_size);
    if complete {
        for record in free {
            group.claim(record.start, record.len, FREE);
        }
    }
    if features.rmapbt() {
        let tree = walk::<Rmapbt>(checker, ag, agf.rmapbt);
        group.claim_blocks(&tree.blocks, RmapOwner::GROUP);
        tree_blocks += tree.blocks.len().saturating_sub(1);
        all &= tree.complete;
        if tree.complete {
            checker.expect(
                "AGF",
                location,
                "rmap_blocks",
                agf.rmap_blocks as usize,
                tree.blocks.len(),
            );
        } else {
            (group.rmaps_known, group.space_known) = (false, false);
        }
        tree.records.iter().for_each(|record| group.rmaps.push(record));
    }
    if all {
        checker.expect("AGF", location, "btreeblks", agf.tree_blocks as usize, tree_blocks);
    }
    if features.reflink() {
        reference_counts(checker, ag, agf, group);
    }
}

fn reference_counts(checker: &Checker, ag: AgNumber, agf: &Agf, group: &mut Group) {
    let (geometry, location) = (checker.geometry(), Location::Group(ag));
    let tree = walk::<Refcountbt>(checker, ag, agf.refcountbt);
    group.claim_blocks(&tree.blocks, RmapOwner::REFCOUNT_TREE);
    if tree.complete {
        let blocks = tree.blocks.len();
        checker.expect("AGF", location, "refcount_blocks", agf.refcount_blocks as usize, blocks);
    } else {
        (group.shared_known, group.space_known) = (false, false);
    }
    let mut staged = 0_u64;
    for record in tree.records {
        let end = u64::from(record.start.0) + u64::from(record.len);
        if record.start <= geometry.ag_header_last() || end > u64::from(geometry.ag_length(ag)) {
            let what = format!("{} blocks from {} are out of range", record.len, record.start);
            checker.error("refcountbt", location, what);
            group.shared_known = false;
        } else if record.domain == RefcountDomain::Cow {
            staged += u64::from(record.len);
            group.claim(record.start, record.len, RmapOwner::COW);
        } else {
            group.shared.push(record);
        }
    }
    if staged > 0 && !checker.dirty() {
        let what = format!("{staged} blocks were left behind by an interrupted copy-on-write");
        checker.error("refcountbt", location, what);
    }
}

fn inode_side(checker: &Checker, ag: AgNumber, agi: &Agi, group: &mut Group) {
    let (features, location) = (&checker.geometry().features, Location::Group(ag));
    let all = walk::<Inobt>(checker, ag, agi.inobt);
    group.claim_blocks(&all.blocks, RmapOwner::INODE_TREES);
    group.space_known &= all.complete;
    let with_free = features.finobt().then(|| walk::<Finobt>(checker, ag, agi.finobt));
    if let Some(tree) = &with_free {
        group.claim_blocks(&tree.blocks, RmapOwner::INODE_TREES);
        group.space_known &= tree.complete;
    }
    if features.inobtcnt() {
        if all.complete {
            checker.expect("AGI", location, "iblocks", agi.inobt_blocks as usize, all.blocks.len());
        }
        if let Some(tree) = with_free.as_ref().filter(|tree| tree.complete) {
            let blocks = tree.blocks.len();
            checker.expect("AGI", location, "fblocks", agi.finobt_blocks as usize, blocks);
        }
    }
    for (list, head) in agi.unlinked.iter().enumerate() {
        if !head.is_null() && !checker.dirty() {
            let what = format!("list {list} of unlinked inodes starts at {head}, must be empty");
            checker.error("AGI", location, what);
        }
    }
    group.chunks = inode_trees::check(checker, ag, agi, &all, with_free.as_ref());
    inode_trees::claim(checker.geometry(), group);
}
