//! The head of the page: the machine, its noise, and a row for each experiment.

use maud::{Markup, html};

use super::parts;
use crate::outcome::Outcome;
use crate::record::{Record, Session};
use crate::report::chapter::{Chapter, Finding};
use crate::statistics::Spread;
use crate::statistics::{Estimate, Verdict};

/// Variation of the fixed loop from which figures are called doubtful.
const NOISY: f64 = 0.05;

pub(super) fn overview(records: &[Record], chapters: &[Chapter<'_>]) -> Markup {
    let sessions: Vec<&Session> = records.iter().map(|record| &record.session).collect();
    html! {
        header {
            h1 { "The laboratory\u{2019}s report" }
            p {
                "Undercroft rebuilds mechanisms of the Linux storage path in user space. Each chapter repeats an "
                "experiment that was published about one of them, and holds the outcome against the published one: "
                "not the figures, which are of other machines, but their shape. A claim holds where the interval of "
                "each figure keeps the rule that is printed with it; where an interval crosses the border, or there "
                "were fewer than three runs, the claim is open."
            }
            @if let Some(last) = sessions.iter().max_by_key(|session| session.started) {
                p.faint {
                    (last.machine.summary()) "; undercroft " (last.version) "; " (date(last.started))
                }
            }
            (noise(records))
        }
        nav aria-label="Experiments" { (rows(chapters)) }
    }
}

/// How much the fixed loop varied, within steps and between them.
fn noise(records: &[Record]) -> Markup {
    let loops = records.iter().filter_map(|record| match &record.outcome {
        Outcome::Calibration(of) => Some(of.ns_of_runs.as_slice()),
        _ => None,
    });
    let all: Vec<f64> = loops.flatten().copied().collect();
    let Some(Estimate { middle, low, high, .. }) = Estimate::of_variation(&all) else {
        return html! {};
    };
    let mean = Spread::of(&all).mean;
    let text = format!(
        "A loop that is always the same ran behind each step: {mean:.2} ns a round, variation {:.1} % \
         [{:.1} to {:.1}].",
        100.0 * middle,
        100.0 * low,
        100.0 * high
    );
    html! {
        @if middle > NOISY {
            p.warning { (text) " The machine was busy with other work: figures are doubtful." }
        } @else {
            p.faint { (text) }
        }
    }
}

fn rows(chapters: &[Chapter<'_>]) -> Markup {
    html! {
        div.wide {
            table.claims {
                thead {
                    tr {
                        th scope="col" { "experiment" }
                        th scope="col" { "published" }
                        th scope="col" { "measured" }
                        th scope="col" { "verdict" }
                        th scope="col" { "claims that hold" }
                    }
                }
                tbody { @for chapter in chapters { (row(chapter)) } }
            }
        }
    }
}

/// A chapter by its first claim.
fn row(chapter: &Chapter<'_>) -> Markup {
    let holding =
        chapter.findings.iter().filter(|finding| finding.verdict() == Verdict::Holds).count();
    let first = chapter.findings.first();
    html! {
        tr {
            td { a href=(format!("#{}", chapter.id)) { (chapter.title) } }
            td data-name="published" { (first.map_or("", |first| first.published.as_str())) }
            td data-name="measured" {
                ul.measured {
                    @for (name, estimate) in first.into_iter().flat_map(|first| &first.measured) {
                        li { (name) ": " (estimate) }
                    }
                }
            }
            td data-name="verdict" { (parts::verdict(first.map_or(Verdict::NotMeasured, Finding::verdict))) }
            td data-name="claims that hold" { (holding) " of " (chapter.findings.len()) }
        }
    }
}

/// Seconds from 1970 as a date; empty beyond the calendar.
pub(crate) fn date(seconds: u64) -> String {
    let timestamp =
        i64::try_from(seconds).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
    timestamp.map_or_else(String::new, |at| at.strftime("%Y-%m-%d").to_string())
}
