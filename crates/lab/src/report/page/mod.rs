//! Pages of HTML that need nothing else: the report, and the layout of a volume.

mod chapter;
mod data;
mod layout;
mod overview;
mod parts;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::error::LabError;
use crate::record::Record;
use crate::report::chapters;

pub use data::records_of_page;
pub use layout::{layout_map, layout_page};
pub(crate) use overview::date;

const STYLE: &str = include_str!("style.css");
/// Nothing is loaded and nothing runs: browsers are told so.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page of `records`, which are inside it, too.
///
/// # Errors
/// A record that is no JSON: a defect.
pub fn page(records: &[Record]) -> Result<String, LabError> {
    let chapters = chapters::all(records);
    let main = html! {
        (overview::overview(records, &chapters))
        @for chapter in &chapters {
            (chapter::chapter(chapter))
        }
    };
    let footer = data::embedded(records)?;
    Ok(document("Undercroft: the laboratory's report", &main, &html! { footer { (footer) } }))
}

/// A whole page.
fn document(title: &str, main: &Markup, footer: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (main) }
                (footer)
            }
        }
    };
    markup.into_string()
}
