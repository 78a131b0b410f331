//! The page of a volume's layout: a map, key figures, histograms.

use maud::{Markup, PreEscaped, html};
use undercroft_xfs::frag::{Histogram, Layout};

use super::parts;
use crate::measure::histogram::{Line, lines};
use crate::report::blocks::{Blocks, Table};
use crate::report::plot::{self, BarChart, Drawing, Map, Panel, Value};

/// The page of the layout of the volume `name`, of which the inodes that `selection` names were
/// measured.
#[must_use]
pub fn layout_page(name: &str, selection: &str, layout: &Layout) -> String {
    let title = format!("Layout of {name}");
    let main = html! {
        header {
            h1 { (title) }
            p {
                "Where the blocks of the volume lie, and how files are cut into extents. An extent is ideally "
                "behind the one before it in its file, and the first of a file at its inode; the distance from "
                "there is counted in blocks. Measured were " (selection) "."
            }
            (parts::blocks(&figures(layout)))
        }
        section id="map" {
            h2 { "Map" }
            p { "Allocation groups from top to bottom. Data is far off if it is more than a hundredth of a group from its \
                 ideal place, or in another group. A pointer on a box brings up its blocks." }
            figure.map { (PreEscaped(plot::panel(&map(layout)))) }
        }
        @for histogram in histograms(layout) { (section(&histogram)) }
    };
    super::document(&title, &main, &html! {})
}

/// The map of a layout as a picture that stands alone.
#[must_use]
pub fn layout_map(name: &str, layout: &Layout) -> String {
    plot::alone(&format!("Layout of {name}"), map(layout).drawing)
}

fn map(layout: &Layout) -> Panel {
    Panel { title: String::new(), drawing: Drawing::Map(Map::of(&layout.picture)) }
}

fn figures(layout: &Layout) -> Blocks {
    let mut table = Table::new().words("").numbers("count");
    let other_group = layout.locality.first_switches + layout.locality.later_switches;
    for (name, count) in [
        ("inodes", layout.inodes),
        ("of them with extents", layout.mapped_inodes),
        ("extents", layout.actual),
        ("least number possible", layout.ideal),
        ("extents in another group than their ideal place", other_group),
        ("longest free extent, in blocks", layout.free.longest.into()),
    ] {
        table.row([name.to_owned(), count.to_string()]);
    }
    let factor = format!("{:.2} %", layout.factor());
    table.row(["fragmentation factor: share that could be saved".to_owned(), factor]);
    let mut blocks = Blocks::default();
    blocks.table(table);
    blocks
}

/// A histogram under its title.
struct Section {
    id: &'static str,
    title: &'static str,
    /// What is counted, and the sum of what.
    count: &'static str,
    sum: &'static str,
    lines: Vec<Line>,
}

fn histograms(layout: &Layout) -> [Section; 3] {
    let of = |histogram: &Histogram| lines(histogram.buckets(u64::MAX));
    [
        Section {
            id: "extents",
            title: "Files by extents",
            count: "files",
            sum: "extents",
            lines: of(&layout.extents_per_inode),
        },
        Section {
            id: "distances",
            title: "Extents by distance in blocks",
            count: "extents",
            sum: "blocks",
            lines: lines(layout.locality.buckets()),
        },
        Section {
            id: "free",
            title: "Free extents by length in blocks",
            count: "extents",
            sum: "blocks",
            lines: of(&layout.free.by_block),
        },
    ]
}

fn section(histogram: &Section) -> Markup {
    let Section { id, title, count, sum, lines } = histogram;
    let panel = |axis: &str, value: fn(&Line) -> u64| {
        let mut chart = BarChart::new(axis);
        for line in lines {
            chart.put(axis, &range(line), Value::plain(value(line) as f64));
        }
        plot::panel(&Panel { title: axis.to_owned(), drawing: Drawing::Bars(chart) })
    };
    let mut table = Table::new().numbers("from").numbers("to").group(count).numbers(sum);
    for line in lines {
        let Line { from, to, count, blocks } = *line;
        table.row([from, to, count, blocks].map(|number| number.to_string()));
    }
    let mut blocks = Blocks::default();
    blocks.table(table);
    html! {
        section id=(id) {
            h2 { (title) }
            @if lines.is_empty() {
                p.faint { "There are none." }
            } @else {
                figure {
                    div.panels {
                        div { (PreEscaped(panel(count, |line| line.count))) }
                        div { (PreEscaped(panel(sum, |line| line.blocks))) }
                    }
                }
                details {
                    summary { "The whole table" }
                    (parts::blocks(&blocks))
                }
            }
        }
    }
}

/// The numbers of a bucket, as the name of a bar.
fn range(line: &Line) -> String {
    if line.from == line.to {
        line.from.to_string()
    } else {
        format!("{} to {}", line.from, line.to)
    }
}
