//! The fields about which the judges differ, from the table in CONTRIBUTING.md: the reasons stand
//! there, and nowhere else.

use crate::xfs::fields::Who;
use std::error::Error;

const TEXT: &str = include_str!("../../../../../CONTRIBUTING.md");
const HEAD: &str = "| structure | fields | who complains | why that is so |";

/// Structures and fields of one row, and the judge that complains alone.
struct Row {
    structures: Vec<&'static str>,
    fields: Vec<&'static str>,
    who: Vec<Who>,
}

pub(crate) struct Known(Vec<Row>);

impl Known {
    pub(crate) fn new() -> Result<Self, Box<dyn Error + Send + Sync>> {
        let lines = TEXT.lines().skip_while(|line| *line != HEAD).skip(2);
        let rows: Result<Vec<_>, _> =
            lines.take_while(|line| line.starts_with('|')).map(Row::parse).collect();
        let rows = rows?;
        if rows.is_empty() {
            return Err(format!("CONTRIBUTING.md: no table {HEAD:?}").into());
        }
        Ok(Self(rows))
    }

    pub(crate) fn contains(&self, structure: &str, field: &str, who: Who) -> bool {
        let named = |names: &[&str], name| names.contains(&name) || names == ["any"];
        self.0.iter().any(|row| {
            named(&row.structures, structure) && named(&row.fields, field) && row.who.contains(&who)
        })
    }
}

impl Row {
    fn parse(line: &'static str) -> Result<Self, String> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [structures, fields, who, reason] = cells[..] else {
            return Err(format!("CONTRIBUTING.md: four cells are needed: {line}"));
        };
        if reason.is_empty() {
            return Err(format!("CONTRIBUTING.md: no reason: {line}"));
        }
        let who = match who {
            "check" => vec![Who::Check],
            "repair" => vec![Who::Repair],
            "either" => vec![Who::Check, Who::Repair],
            _ => return Err(format!("CONTRIBUTING.md: who is {who:?}: {line}")),
        };
        let names = |cell: &'static str| cell.split(',').map(str::trim).collect();
        Ok(Self { structures: names(structures), fields: names(fields), who })
    }
}
