//! What the blocks of a volume hold, in cells of as many as a picture has room for.

use crate::format::{AllocRecord, Extent};
use crate::geometry::Geometry;
use crate::units::{AgBlock, AgNumber};

/// Cells of the whole picture, about.
const CELLS: u64 = 1 << 15;

/// What blocks hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Free,
    /// Data of files, close to where it should be.
    Data,
    /// Data of files more than a hundredth of a group from where it should be, or in another group.
    FarData,
    /// Everything else: headers, trees, inodes, directories, the journal.
    Metadata,
}

/// Blocks of each kind in every cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    blocks_per_cell: u64,
    /// Per group: length in blocks, and per cell blocks free, of data, of far-off data.
    groups: Vec<(u64, Vec<[u64; 3]>)>,
}

impl Picture {
    /// A volume full of metadata.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        let blocks_per_cell = geometry.blocks.div_ceil(CELLS).max(1);
        let groups = (0..geometry.ag_count)
            .map(|ag| {
                let length = u64::from(geometry.ag_length(AgNumber(ag)));
                (length, vec![[0; 3]; length.div_ceil(blocks_per_cell) as usize])
            })
            .collect();
        Self { blocks_per_cell, groups }
    }

    /// Blocks that one cell stands for.
    #[must_use]
    pub fn blocks_per_cell(&self) -> u64 {
        self.blocks_per_cell
    }

    /// Marks blocks of a group.
    pub(super) fn add(&mut self, ag: AgNumber, part: AllocRecord, cell: Cell) {
        let slot = match cell {
            Cell::Free => 0,
            Cell::Data => 1,
            Cell::FarData => 2,
            Cell::Metadata => return,
        };
        let Some((_, cells)) = self.groups.get_mut(ag.0 as usize) else { return };
        let (mut at, end) =
            (u64::from(part.start.0), u64::from(part.start.0) + u64::from(part.len));
        while at < end {
            let index = at / self.blocks_per_cell;
            let next = ((index + 1) * self.blocks_per_cell).min(end);
            let Some(counts) = cells.get_mut(index as usize) else { return };
            counts[slot] += next - at;
            at = next;
        }
    }

    /// Marks an extent of a file.
    pub(super) fn add_extent(&mut self, geometry: &Geometry, extent: Extent, cell: Cell) {
        let (ag, start): (AgNumber, AgBlock) = geometry.split_block(extent.start);
        self.add(ag, AllocRecord { start, len: extent.len }, cell);
    }

    /// What most blocks of each cell hold, group by group.
    pub fn groups(&self) -> impl Iterator<Item = Vec<Cell>> + '_ {
        self.groups.iter().map(|(length, cells)| self.cells(*length, cells).collect())
    }

    fn cells(&self, length: u64, cells: &[[u64; 3]]) -> impl Iterator<Item = Cell> {
        (0..).zip(cells).map(move |(index, [free, data, far])| {
            let blocks = self.blocks_per_cell.min(length - index * self.blocks_per_cell);
            // Blocks shared between files are counted once for each.
            let metadata = blocks.saturating_sub(free + data + far);
            let counts = [metadata, *data, *far, *free];
            let most = counts.iter().max().copied().unwrap_or(0);
            // Of equal shares the first, so that little metadata in much free space is not lost.
            let place = counts.iter().position(|count| *count == most).unwrap_or(0);
            [Cell::Metadata, Cell::Data, Cell::FarData, Cell::Free][place]
        })
    }
}
