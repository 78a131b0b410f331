//! The mapping of one fork: extents in the inode or in a tree, and the blocks they claim.

use super::Location;
use super::checker::{Block, Checker, Defect};
use super::claim_list::ClaimList;
use super::tree::{Home, TreeWalk};
use crate::btree::Bmbt;
use crate::cache::BufferAddress;
use crate::format::{
    BmapRoot, BufferKind, Extent, FileType, ForkFormat, InodeCore, InodeFlags, RmapFlags,
    RmapOwner, RmapRecord,
};
use crate::inode::ForkKind;
use crate::read_ahead::pipeline;
use crate::units::{AgNumber, FileBlock, FsBlock, InodeNumber};
use undercroft_block::Sector;

/// File blocks a mapping can end at.
const FILE_BLOCKS_END: u64 = (1 << 54) + (1 << 21);

/// A fork whose mapping was looked at.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) inode: InodeNumber,
    pub(super) kind: ForkKind,
    /// Ascending, disjoint, in range.
    pub(super) extents: Vec<Extent>,
    /// Blocks of the mapping tree and of all extents.
    pub(super) blocks: u64,
    /// Extents on disk, those left out for damage included.
    pub(super) count: u64,
    /// Whether nothing was left out.
    pub(super) complete: bool,
}

/// Claims of blocks by file forks, by group.
#[derive(Debug)]
pub(super) struct Claims(pub(super) Vec<ClaimList>);

impl Claims {
    pub(super) fn new(groups: u32) -> Self {
        Self((0..groups).map(|_| ClaimList::default()).collect())
    }

    fn add(&mut self, ag: AgNumber, record: RmapRecord) {
        if let Some(group) = self.0.get_mut(ag.0 as usize) {
            group.push(&record);
        }
    }
}

/// The volume as the home of one mapping tree.
struct ForkHome<'a> {
    checker: &'a Checker,
    inode: InodeNumber,
    kind: ForkKind,
}

impl Home for ForkHome<'_> {
    type Pointer = FsBlock;

    fn contains(&self, pointer: FsBlock) -> bool {
        self.checker.geometry().valid_extent(pointer, 1)
    }

    fn sector(&self, pointer: FsBlock) -> Sector {
        self.checker.geometry().sector(pointer)
    }

    fn location(&self, _pointer: FsBlock) -> Location {
        Location::Inode(self.inode)
    }

    fn owner(&self) -> u64 {
        self.inode.0
    }
}

impl ForkHome<'_> {
    fn flags(&self) -> RmapFlags {
        match self.kind {
            ForkKind::Attr => RmapFlags::ATTR_FORK,
            ForkKind::Data => RmapFlags::empty(),
        }
    }
}

/// Reads the mapping of a fork in `bytes`, checks it and adds the blocks it claims.
pub(super) fn load(
    checker: &Checker,
    claims: &mut Claims,
    inode: InodeNumber,
    core: &InodeCore,
    kind: ForkKind,
    bytes: &[u8],
) -> Fork {
    let mut fork = Fork { inode, kind, extents: Vec::new(), blocks: 0, count: 0, complete: true };
    let (format, expected) = match kind {
        ForkKind::Data => (core.data_format, core.data_extents),
        ForkKind::Attr => (core.attr_format, u64::from(core.attr_extents)),
    };
    let records = match format {
        ForkFormat::Extents => {
            let fits = usize::try_from(expected)
                .map_or(bytes.len() / Extent::LEN, |count| count.min(bytes.len() / Extent::LEN));
            bytes.chunks_exact(Extent::LEN).take(fits).map(Extent::decode).collect()
        }
        ForkFormat::Btree => tree(checker, claims, &mut fork, bytes),
        _ => return fork,
    };
    fork.count = records.len() as u64;
    if fork.complete && fork.count != expected {
        let field = if kind == ForkKind::Data { "nextents" } else { "anextents" };
        checker.expect("inode", Location::Inode(inode), field, expected, fork.count);
    }
    let realtime = kind == ForkKind::Data
        && core.flags.contains(InodeFlags::REALTIME)
        && core.file_type() == Some(FileType::Regular);
    for record in records {
        extent(checker, claims, &mut fork, record, realtime);
    }
    fork
}

/// Extents of a fork in tree format.
fn tree(checker: &Checker, claims: &mut Claims, fork: &mut Fork, bytes: &[u8]) -> Vec<Extent> {
    let root = match BmapRoot::decode(bytes) {
        Ok(root) => root,
        Err(defect) => {
            checker.error("bmbt", Location::Inode(fork.inode), format!("root: {defect}"));
            checker.set_incomplete();
            fork.complete = false;
            return Vec::new();
        }
    };
    let home = ForkHome { checker, inode: fork.inode, kind: fork.kind };
    let children: Vec<_> = root.entries().collect();
    let content = TreeWalk::<Bmbt, _>::below(checker, &home, root.level().into(), &children);
    fork.blocks += content.blocks.len() as u64;
    fork.complete = content.complete;
    for block in &content.blocks {
        let (ag, start) = checker.geometry().split_block(*block);
        let flags = home.flags() | RmapFlags::BMBT_BLOCK;
        let owner = RmapOwner::inode(fork.inode);
        claims.add(ag, RmapRecord { start, len: 1, owner, offset: FileBlock(0), flags });
    }
    content.records
}

/// Checks one extent and adds it to the fork and to the claims.
fn extent(checker: &Checker, claims: &mut Claims, fork: &mut Fork, record: Extent, realtime: bool) {
    let (geometry, location) = (checker.geometry(), Location::Inode(fork.inode));
    let structure = if fork.kind == ForkKind::Data { "data fork" } else { "attribute fork" };
    let mut bad = |what: String| {
        let range = format!("{} blocks at file block {}", record.len, record.offset);
        checker.error(structure, location, format!("{range}: {what}"));
        checker.set_incomplete();
        fork.complete = false;
    };
    if let Err(defect) = record.validate() {
        return bad(defect.to_string());
    }
    if record.end().0 > FILE_BLOCKS_END {
        return bad("behind the end of the largest file".into());
    }
    if fork.extents.last().is_some_and(|last| last.end() > record.offset) {
        return bad("out of order, or overlaps the extent before".into());
    }
    if realtime {
        // Blocks of the realtime device; there is nothing to compare them with.
        fork.blocks += u64::from(record.len);
        fork.extents.push(record);
        return;
    }
    if !geometry.valid_extent(record.start, record.len.into()) {
        return bad(format!("start block {} is out of range", record.start));
    }
    let mut flags = RmapFlags::empty();
    if fork.kind == ForkKind::Attr {
        flags |= RmapFlags::ATTR_FORK;
        if record.unwritten {
            return bad("attributes cannot be unwritten".into());
        }
    } else if record.unwritten {
        flags |= RmapFlags::UNWRITTEN;
    }
    fork.blocks += u64::from(record.len);
    let (ag, start) = geometry.split_block(record.start);
    let owner = RmapOwner::inode(fork.inode);
    claims.add(ag, RmapRecord { start, len: record.len, owner, offset: record.offset, flags });
    fork.extents.push(record);
}

impl Fork {
    /// Location of a block of the fork in a report.
    pub(super) fn location(&self, block: FileBlock) -> Location {
        match self.kind {
            ForkKind::Data => Location::DataBlock(self.inode, block),
            ForkKind::Attr => Location::AttributeBlock(self.inode, block),
        }
    }

    /// Where `len` file blocks from `first` are; `None` if a block is not mapped.
    fn parts(&self, checker: &Checker, first: FileBlock, len: u32) -> Option<Vec<(Sector, u32)>> {
        let geometry = checker.geometry();
        let (mut next, end) = (first.0, first.0 + u64::from(len));
        let mut parts: Vec<(Sector, u32)> = Vec::new();
        while next < end {
            let at = self.extents.partition_point(|extent| extent.end().0 <= next);
            let extent = self.extents.get(at).filter(|extent| extent.offset.0 <= next)?;
            let stop = end.min(extent.end().0);
            let start = FsBlock(extent.start.0 + (next - extent.offset.0));
            let sectors = (stop - next) as u32 * geometry.sectors_per_block();
            parts.push((geometry.sector(start), sectors));
            next = stop;
        }
        Some(parts)
    }

    /// Reads a block of `len` file blocks at `first`, which must be mapped and new.
    pub(super) fn read(
        &self,
        checker: &Checker,
        kind: BufferKind,
        first: FileBlock,
        len: u32,
    ) -> Result<Block, Defect> {
        let Some(parts) = self.parts(checker, first, len) else {
            return Err(Defect::Foreign("is not mapped".into()));
        };
        if !checker.first_visit(parts[0].0) {
            return Err(Defect::Foreign("is used twice".into()));
        }
        checker.read_block(kind, &parts, self.inode.0)
    }

    /// The blocks in turn, each of `len` file blocks, with those behind them on their way.
    pub(super) fn ahead(
        &self,
        checker: &Checker,
        blocks: impl Iterator<Item = FileBlock>,
        len: u32,
    ) -> impl Iterator<Item = FileBlock> {
        let parts = move |block: &FileBlock| self.parts(checker, *block, len);
        pipeline(blocks, move |next| {
            let addresses = next.iter().filter_map(parts);
            checker.read_ahead(addresses.map(|parts| BufferAddress::scattered(&parts)));
        })
    }

    /// Number of mapped blocks of `[from, to)`.
    pub(super) fn mapped_between(&self, from: FileBlock, to: FileBlock) -> u64 {
        let inside =
            |extent: &Extent| extent.end().0.min(to.0).saturating_sub(extent.offset.0.max(from.0));
        self.extents.iter().map(inside).sum()
    }

    /// Multiples of `unit` in `[from, to)` at which a block begins that is mapped at least in part.
    pub(super) fn units(&self, from: u64, to: u64, unit: u64) -> impl Iterator<Item = FileBlock> {
        let mut next = from;
        self.extents.iter().flat_map(move |extent| {
            let start = extent.offset.0.max(next) / unit * unit;
            let start = if start < next { next } else { start };
            let end = extent.end().0.min(to).max(start);
            next = next.max(end.next_multiple_of(unit));
            (start..end).step_by(unit as usize).map(FileBlock)
        })
    }
}
