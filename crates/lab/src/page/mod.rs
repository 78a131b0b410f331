//! The report: one page of HTML that needs nothing else.

mod chapter;
mod data;
mod overview;
mod parts;

use maud::{DOCTYPE, PreEscaped, html};

use crate::chapters;
use crate::error::LabError;
use crate::record::Record;

pub use data::records_of_page;

const STYLE: &str = include_str!("style.css");
/// Nothing is loaded and nothing runs: browsers are told so.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page of `records`, which are inside it, too.
///
/// # Errors
/// A record that is no JSON: a defect.
pub fn page(records: &[Record]) -> Result<String, LabError> {
    let chapters = chapters::all(records);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "Undercroft: the laboratory's report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (overview::overview(records, &chapters))
                    @for chapter in &chapters {
                        (chapter::chapter(chapter))
                    }
                }
                footer { (data::embedded(records)?) }
            }
        }
    };
    Ok(markup.into_string())
}
