//! Lines and tables in a row: the parts of a report, before they are text or HTML.

mod table;

use std::io::{self, Write};

use crate::measure::histogram::Line;

pub(crate) use table::{Align, Row, Table};

/// The parts of a report, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Blocks {
    list: Vec<Block>,
}

/// One part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Block {
    /// A line of text, in columns of its own where sources have such.
    Line(String),
    /// A table.
    Table(Table),
}

impl Blocks {
    /// Adds a line.
    pub(crate) fn line(&mut self, text: impl Into<String>) {
        self.list.push(Block::Line(text.into()));
    }

    /// Adds an empty line.
    pub(crate) fn gap(&mut self) {
        self.line("");
    }

    /// Adds a table.
    pub(crate) fn table(&mut self, table: Table) {
        self.list.push(Block::Table(table));
    }

    /// Adds a histogram in the columns of the sources.
    pub(crate) fn histogram(&mut self, lines: &[Line], total: u64) {
        let [from, to, extents, blocks] = ["from", "to", "extents", "blocks"];
        self.line(format!("{from:>8} {to:>8} {extents:>8} {blocks:>12} {:>6}", "pct"));
        for Line { from, to, count, blocks } in lines {
            let percent = *count as f64 * 100.0 / total.max(1) as f64;
            self.line(format!("{from:>8} {to:>8} {count:>8} {blocks:>12} {percent:>6.2}"));
        }
    }

    /// The parts.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Block> {
        self.list.iter()
    }

    /// Writes all as plain text.
    pub(crate) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.list.iter().try_for_each(|block| match block {
            Block::Line(text) => writeln!(out, "{text}"),
            Block::Table(table) => table.write_text(out),
        })
    }
}
