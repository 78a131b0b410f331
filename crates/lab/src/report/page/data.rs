//! The records inside the page, as a block of data that no browser runs.

use maud::{Markup, PreEscaped, html};

use crate::error::LabError;
use crate::record::{Record, read_records, write_record};

/// What stands before the records and behind them.
const BEGIN: &str = "<script type=\"application/jsonl\" id=\"records\">\n";
const END: &str = "</script>";

/// The records of a page that [`page`](super::page) wrote.
///
/// # Errors
/// There are none in it, or a line of them is not a record.
pub fn records_of_page(page: &str) -> Result<Vec<Record>, LabError> {
    let begin = page.rfind(BEGIN).ok_or(LabError::NoRecordsInPage)?;
    let rest = &page[begin + BEGIN.len()..];
    let end = rest.find(END).ok_or(LabError::NoRecordsInPage)?;
    read_records(&mut &rest.as_bytes()[..end])
}

pub(super) fn embedded(records: &[Record]) -> Result<Markup, LabError> {
    let mut lines = Vec::new();
    for record in records {
        write_record(&mut lines, record)?;
    }
    // `<` only stands in strings, where JSON has another way to write it: so nothing ends the block.
    let lines = String::from_utf8_lossy(&lines).replace('<', "\\u003c");
    Ok(html! {
        p.faint {
            "The records are in this page: " code { "undercroft lab report --records" } " prints them."
        }
        (PreEscaped(format!("{BEGIN}{lines}{END}\n")))
    })
}
