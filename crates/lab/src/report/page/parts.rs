//! Parts of the page that stand in several places.

use maud::{Markup, html};

use crate::report::blocks::{Align, Block, Blocks, Row, Table};
use crate::statistics::Verdict;

/// A verdict in its colour.
pub(super) fn verdict(verdict: Verdict) -> Markup {
    let class = match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::Open => "open",
        Verdict::NotMeasured => "faint",
    };
    html! { span class=(class) { (verdict.words()) } }
}

/// Lines and tables; lines that follow one another are one text in columns.
pub(super) fn blocks(blocks: &Blocks) -> Markup {
    let list: Vec<&Block> = blocks.iter().collect();
    html! {
        @for group in list.chunk_by(|a, b| is_line(a) && is_line(b)) {
            @match group[0] {
                Block::Table(table) => (self::table(table)),
                Block::Line(_) => (lines(group)),
            }
        }
    }
}

fn is_line(block: &Block) -> bool {
    matches!(block, Block::Line(_))
}

fn lines(group: &[&Block]) -> Markup {
    let texts: Vec<&str> = group
        .iter()
        .filter_map(|block| if let Block::Line(text) = block { Some(text.as_str()) } else { None })
        .collect();
    let text = texts.join("\n");
    html! { @if !text.trim().is_empty() { div.wide { pre { (text.trim_matches('\n')) } } } }
}

fn table(table: &Table) -> Markup {
    let classes = |index: usize| {
        let column = &table.columns()[index];
        let side = if column.align == Align::Right { "number" } else { "words" };
        if column.opens_group { format!("{side} group") } else { side.to_owned() }
    };
    let mut ruled = false;
    html! {
        div.wide {
            table {
                thead {
                    tr {
                        @for (index, column) in table.columns().iter().enumerate() {
                            th scope="col" class=(classes(index)) { (column.title) }
                        }
                    }
                }
                tbody {
                    @for row in table.rows() {
                        @match row {
                            Row::Rule(_) => { ({ ruled = true; "" }) }
                            Row::Cells(cells) => {
                                tr class=[std::mem::take(&mut ruled).then_some("rule")] {
                                    @for (index, cell) in cells.iter().enumerate() {
                                        td class=(classes(index)) { (cell) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
