//! The places that a scan found of one volume, counted from its start.

use std::collections::BTreeMap;
use std::ops::Range;

use undercroft_xfs_format::units::InodeNumber;
use undercroft_xfs_format::{BufferKind, Geometry, TreeKind};

use crate::scan::{BlockTrace, InodeRun, Traces};
use crate::stream::joined;

/// Places of inodes and blocks, in their order on the device.
#[derive(Debug)]
pub(super) struct Index {
    /// Inodes in use, as they say themselves.
    pub(super) files: u64,
    pub(super) inodes: Vec<InodeRun>,
    /// Blocks that inodes own.
    pub(super) owned: Vec<BlockTrace>,
    /// Blocks of the trees of inodes and of owners, by group.
    pub(super) groups: BTreeMap<u32, Vec<BlockTrace>>,
    /// Sectors of all blocks with a header, and of all inodes, ascending.
    pub(super) metadata: Vec<Range<u64>>,
}

impl Index {
    /// The places of a volume that starts at a sector. What says that it belongs elsewhere is a copy.
    pub(super) fn new(traces: &Traces, start: u64, geometry: &Geometry) -> Self {
        let inodes = traces.inodes.iter().filter(|run| run.sector >= start);
        let inodes = inodes.map(|run| InodeRun { sector: run.sector - start, ..*run });
        let mut index = Self {
            files: traces.files + traces.directories,
            inodes: inodes.collect(),
            owned: Vec::new(),
            groups: BTreeMap::new(),
            metadata: Vec::new(),
        };
        let per_block = 1 << (geometry.block_log - 9);
        let mut metadata = Vec::new();
        // Without checksums what looks like metadata may be data.
        let is_certain = geometry.features.crc;
        for trace in traces.blocks_from(start) {
            let trace = BlockTrace { sector: trace.sector - start, ..*trace };
            let count = match trace.kind {
                BufferKind::DirBlock | BufferKind::DirData => per_block << geometry.dir_block_log,
                _ => per_block,
            };
            if is_certain {
                metadata.push(trace.sector..trace.sector + count);
            }
            match trace.kind {
                BufferKind::Tree(TreeKind::Inobt | TreeKind::Rmapbt) => {
                    let ag = u32::try_from(trace.owner).ok().filter(|ag| *ag < geometry.ag_count);
                    if let Some(ag) = ag {
                        index.groups.entry(ag).or_default().push(trace);
                    }
                }
                BufferKind::Tree(TreeKind::Bmbt)
                | BufferKind::DirBlock
                | BufferKind::DirData
                | BufferKind::AttrLeaf => index.owned.push(trace),
                _ => {}
            }
        }
        metadata.extend(index.inode_sectors(geometry));
        metadata.sort_unstable_by_key(|range| range.start);
        index.metadata = joined(metadata);
        index
    }

    /// In version 4: keeps those of the blocks of inodes that can be some.
    pub(super) fn keep_inodes(
        &mut self,
        geometry: &Geometry,
        is_one: impl Fn(InodeNumber) -> bool,
    ) {
        let (count, sectors) = (geometry.inodes_per_block(), geometry.sectors_per_block());
        let blocks = self.inodes.iter().flat_map(|run| {
            let blocks = 0..run.count / count;
            blocks.map(|block| InodeRun {
                sector: run.sector + u64::from(block) * u64::from(sectors),
                number: InodeNumber(run.number.0 + u64::from(block) * u64::from(count)),
                count,
            })
        });
        self.inodes = blocks.filter(|block| is_one(block.number)).collect();
        let sectors = self.inode_sectors(geometry);
        self.metadata = joined(sectors);
    }

    /// The sectors of all inodes.
    pub(super) fn inode_sectors(&self, geometry: &Geometry) -> impl Iterator<Item = Range<u64>> {
        let runs = self.inodes.iter();
        // The shortest have half a sector, and come in whole blocks.
        let size = geometry.inode_size() as u64;
        runs.map(move |run| run.sector..run.sector + u64::from(run.count) * size / 512)
    }

    /// Blocks of a kind that inodes own.
    pub(super) fn of_kind(
        &self,
        is_kind: impl Fn(BufferKind) -> bool + Clone,
    ) -> impl Iterator<Item = &BlockTrace> + Clone {
        self.owned.iter().filter(move |trace| is_kind(trace.kind))
    }
}
