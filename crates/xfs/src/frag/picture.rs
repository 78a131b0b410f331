//! A picture of a volume: the use of its blocks, cell by cell.

use crate::format::{AllocRecord, Extent};
use crate::geometry::Geometry;
use crate::units::{AgBlock, AgNumber};
use std::fmt::{self, Write};

/// Cells of a row.
const COLUMNS: u64 = 256;
/// Cells of the whole picture, about.
const CELLS: u64 = 1 << 15;
/// Side of a cell in pixels.
const SIDE: u64 = 4;
/// Pixels on the left, for the numbers of the groups, and at the top, for the legend.
const MARGIN: u64 = 40;
/// Pixels between groups.
const GAP: u64 = 6;

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

impl Cell {
    const ALL: [Self; 4] = [Self::Metadata, Self::Data, Self::FarData, Self::Free];

    const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Data => "data",
            Self::FarData => "far-off data",
            Self::Metadata => "metadata",
        }
    }

    const fn colour(self) -> &'static str {
        match self {
            Self::Free => "#e6e6e6",
            Self::Data => "#3b7dd8",
            Self::FarData => "#e0862c",
            Self::Metadata => "#5b3a8c",
        }
    }
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

    /// What most blocks of each cell of a group hold.
    fn cells(&self, group: usize) -> impl Iterator<Item = Cell> + '_ {
        let (length, cells) = &self.groups[group];
        (0..).zip(cells).map(move |(index, [free, data, far])| {
            let blocks = self.blocks_per_cell.min(length - index * self.blocks_per_cell);
            // Blocks shared between files are counted once for each.
            let metadata = blocks.saturating_sub(free + data + far);
            let counts = [metadata, *data, *far, *free];
            let most = counts.iter().max().copied().unwrap_or(0);
            // Of equal shares the first, so that little metadata in much free space is not lost.
            let place = counts.iter().position(|count| *count == most).unwrap_or(0);
            Cell::ALL[place]
        })
    }

    /// The picture as a document in SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_svg(&mut svg);
        svg
    }

    fn write_svg(&self, svg: &mut String) -> fmt::Result {
        let rows = |cells: usize| (cells as u64).div_ceil(COLUMNS);
        let height: u64 = self.groups.iter().map(|(_, cells)| rows(cells.len()) * SIDE + GAP).sum();
        let (width, height) = (MARGIN + COLUMNS * SIDE + GAP, MARGIN + height);
        writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">"
        )?;
        writeln!(svg, "<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>")?;
        for (cell, x) in Cell::ALL.into_iter().zip((MARGIN..).step_by(130)) {
            let (colour, name, text) = (cell.colour(), cell.name(), x + 18);
            writeln!(
                svg,
                "<rect x=\"{x}\" y=\"12\" width=\"12\" height=\"12\" fill=\"{colour}\"/>"
            )?;
            writeln!(svg, "<text x=\"{text}\" y=\"22\">{name}</text>")?;
        }
        let (blocks, x) = (self.blocks_per_cell, MARGIN + 4 * 130);
        writeln!(svg, "<text x=\"{x}\" y=\"22\">{blocks} blocks per cell</text>")?;
        let mut y = MARGIN;
        for group in 0..self.groups.len() {
            writeln!(svg, "<text x=\"4\" y=\"{}\">{group}</text>", y + 10)?;
            self.write_group(svg, group, y)?;
            y += rows(self.groups[group].1.len()) * SIDE + GAP;
        }
        writeln!(svg, "</svg>")
    }

    /// One rectangle for each run of equal cells of a row.
    fn write_group(&self, svg: &mut String, group: usize, y: u64) -> fmt::Result {
        let cells: Vec<Cell> = self.cells(group).collect();
        for (row, cells) in (0..).zip(cells.chunks(COLUMNS as usize)) {
            let (mut column, y) = (0, y + row * SIDE);
            for run in cells.chunk_by(|left, right| left == right) {
                let (x, width) = (MARGIN + column * SIDE, run.len() as u64 * SIDE);
                let colour = run[0].colour();
                writeln!(
                    svg,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{SIDE}\" fill=\"{colour}\"/>"
                )?;
                column += run.len() as u64;
            }
        }
        Ok(())
    }
}
