//! Tables with groups of columns, as mailing lists print them.

use std::io::{self, Write};

/// A table under construction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) align: Align,
    /// Whether a bar stands left of it.
    pub(crate) opens_group: bool,
}

/// The side on which cells begin or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A row below the head.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Row {
    Cells(Vec<String>),
    /// A line of this character, crossed where bars stand.
    Rule(char),
}

impl Table {
    /// A table without columns.
    pub(crate) fn new() -> Self {
        Self { columns: Vec::new(), rows: Vec::new() }
    }

    /// Adds a column of words.
    pub(crate) fn words(self, title: &str) -> Self {
        self.column(title, Align::Left, false)
    }

    /// Adds a column of numbers.
    pub(crate) fn numbers(self, title: &str) -> Self {
        self.column(title, Align::Right, false)
    }

    /// Adds a column of numbers behind a bar.
    pub(crate) fn group(self, title: &str) -> Self {
        self.column(title, Align::Right, true)
    }

    fn column(mut self, title: &str, align: Align, opens_group: bool) -> Self {
        self.columns.push(Column { title: title.to_owned(), align, opens_group });
        self
    }

    /// Adds a row; missing cells are empty, surplus ones are a defect of the caller.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<_> = cells.into_iter().collect();
        debug_assert!(cells.len() <= self.columns.len(), "more cells than columns: {cells:?}");
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a line of `symbol`s.
    pub(crate) fn rule(&mut self, symbol: char) {
        self.rows.push(Row::Rule(symbol));
    }

    /// The columns.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Writes the table as plain text: titles, a rule, rows.
    pub(crate) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: Vec<usize> = (0..self.columns.len()).map(|index| self.width(index)).collect();
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        self.write_cells(out, &widths, &titles)?;
        self.write_rule(out, &widths, '-')?;
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.write_cells(out, &widths, cells)?,
                Row::Rule(symbol) => self.write_rule(out, &widths, *symbol)?,
            }
        }
        Ok(())
    }

    fn width(&self, index: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => cells.get(index).map(|cell| cell.chars().count()),
            Row::Rule(_) => None,
        });
        cells.chain([self.columns[index].title.chars().count()]).max().unwrap_or(0)
    }

    fn write_cells(
        &self,
        out: &mut dyn Write,
        widths: &[usize],
        cells: &[String],
    ) -> io::Result<()> {
        let mut line = String::new();
        for (index, (column, &width)) in self.columns.iter().zip(widths).enumerate() {
            let cell = cells.get(index).map_or("", String::as_str);
            line.push_str(if column.opens_group { " | " } else { "  " });
            line.push_str(&match column.align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
        }
        writeln!(out, "{}", line.trim_end())
    }

    fn write_rule(&self, out: &mut dyn Write, widths: &[usize], symbol: char) -> io::Result<()> {
        let mut line = String::new();
        for (column, &width) in self.columns.iter().zip(widths) {
            line.push_str(if column.opens_group { " | " } else { "  " });
            line.extend(std::iter::repeat_n(symbol, width));
        }
        writeln!(out, "{line}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new().words("policy").numbers("depth").group("IOPS");
        table.row(["counters".into(), "2".into(), "1721.8K".into()]);
        table.rule('=');
        table.row(["cyclic".into(), "16".into()]);
        let mut out = Vec::new();
        table.write_text(&mut out).unwrap();
        let expected = "  policy    depth |    IOPS
  --------  ----- | -------
  counters      2 | 1721.8K
  ========  ===== | =======
  cyclic       16 |
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
