//! Panels that are maps of a volume: its blocks in rows of cells, group by group.

use undercroft_xfs::frag::{Cell, Picture};

use super::canvas::{Anchor, Canvas, LINE, SIZE};
use super::scale::short;
use super::words::width;

/// Cells of a row.
const COLUMNS: usize = 128;
/// Room between groups.
const GAP: f64 = 5.0;

/// The kinds in the order of the legend, each with the series whose colour it has.
const KINDS: [(Cell, &str, Option<usize>); 4] = [
    (Cell::Data, "data", Some(0)),
    (Cell::FarData, "far-off data", Some(1)),
    (Cell::Metadata, "metadata", Some(3)),
    (Cell::Free, "free", None),
];

/// What a map shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Map {
    blocks_per_cell: u64,
    groups: Vec<Vec<Cell>>,
}

impl Map {
    pub(crate) fn of(picture: &Picture) -> Self {
        let blocks_per_cell = picture.blocks_per_cell();
        Self { blocks_per_cell, groups: picture.groups().collect() }
    }
}

/// Draws `map` in `room` pixels of width; returns the height.
pub(super) fn draw(map: &Map, room: f64, canvas: &mut Canvas) -> f64 {
    let last = map.groups.len().saturating_sub(1).to_string();
    let left = width(&last, SIZE) + 6.0;
    let side = (room - left) / COLUMNS as f64;
    let mut y = draw_legend(map, room, canvas) + 8.0;
    // Next to groups of few rows there is not room for every number.
    let mut free = 0.0;
    for (number, cells) in map.groups.iter().enumerate() {
        if y >= free {
            canvas.text((left - 4.0, y + SIZE * 0.8), Anchor::End, &number.to_string());
            free = y + LINE;
        }
        let group = Group { number, cells, left, top: y, side };
        group.draw(map, canvas);
        y += cells.len().div_ceil(COLUMNS) as f64 * side + GAP;
    }
    y.max(free)
}

/// The colours, and the size of a cell.
fn draw_legend(map: &Map, room: f64, canvas: &mut Canvas) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    let scale = format!("{} blocks a cell", short(map.blocks_per_cell as f64));
    let names = KINDS.map(|(_, name, series)| (name, Some(series)));
    for (name, colour) in names.into_iter().chain([(scale.as_str(), None)]) {
        let taken = 18.0 + width(name, SIZE) + 14.0;
        if x > 0.0 && x + taken > room {
            (x, y) = (0.0, y + LINE);
        }
        if let Some(series) = colour {
            canvas.cell(series, (x, y + 2.0), (12.0, 12.0), name);
        }
        canvas.text((x + 18.0, y + 12.0), Anchor::Start, name);
        x += taken;
    }
    y + LINE
}

/// A group of a map, and where its cells are drawn.
struct Group<'m> {
    number: usize,
    cells: &'m [Cell],
    left: f64,
    top: f64,
    /// Of a cell, which is a square.
    side: f64,
}

impl Group<'_> {
    /// Draws a box for each run of equal cells of a row, with words that a pointer brings up.
    fn draw(&self, map: &Map, canvas: &mut Canvas) {
        let Self { number, cells, left, top, side } = *self;
        for (row, of_row) in cells.chunks(COLUMNS).enumerate() {
            let mut column = 0;
            for run in of_row.chunk_by(|one, next| one == next) {
                let kind = KINDS.iter().find(|(cell, ..)| *cell == run[0]);
                let (name, series) = kind.map_or(("", None), |(_, name, series)| (*name, *series));
                let first = (row * COLUMNS + column) as u64 * map.blocks_per_cell;
                let end = first + run.len() as u64 * map.blocks_per_cell;
                let tip = format!("group {number}, blocks {first} to {}: {name}", end - 1);
                let place = (left + column as f64 * side, top + row as f64 * side);
                canvas.cell(series, place, (run.len() as f64 * side, side), &tip);
                column += run.len();
            }
        }
    }
}
