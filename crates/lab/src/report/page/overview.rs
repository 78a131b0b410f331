//! The head of the page: the machine, its noise, and a row for each experiment.

use maud::{Markup, html};

use super::parts;
use crate::record::{Record, Session};
use crate::report::chapter::{Chapter, Finding};
use crate::report::noise::Noise;
use crate::statistics::Verdict;

pub(super) fn overview(records: &[Record], chapters: &[Chapter<'_>]) -> Markup {
    let sessions: Vec<&Session> = records.iter().map(|record| &record.session).collect();
    html! {
        header {
            h1 { "The laboratory\u{2019}s report" }
            p {
                "Undercroft rebuilds mechanisms of the Linux storage path in user space. Each chapter repeats an "
                "experiment that was published about one of them, and holds the outcome against the published one: "
                "not the figures, which are of other machines, but their shape. A claim holds where the interval of "
                "each figure keeps the rule that is printed with it. It is open where an interval crosses the border, "
                "where there were fewer than three runs, and where the machine was busy; a count needs no runs."
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
    let Some(noise) = Noise::of(records) else { return html! {} };
    let text = noise.text();
    html! {
        @if noise.is_doubtful() {
            p.warning {
                (text) " The machine was busy with other work: figures are doubtful, and all claims on measured "
                "time are open."
            }
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
                        th scope="col" { "all its claims" }
                    }
                }
                tbody { @for chapter in chapters { (row(chapter)) } }
            }
        }
    }
}

/// A chapter by its first claim.
fn row(chapter: &Chapter<'_>) -> Markup {
    let first = chapter.findings.first();
    html! {
        tr {
            td { a href=(format!("#{}", chapter.id)) { (chapter.title) } }
            td data-name="published" { (first.map_or("", |first| first.published.as_str())) }
            td data-name="measured" {
                ul.measured {
                    @for figure in first.into_iter().flat_map(Finding::figures) { li { (figure) } }
                }
            }
            td data-name="verdict" { (parts::verdict(first.map_or(Verdict::NotMeasured, Finding::verdict))) }
            td data-name="all its claims" { (all_verdicts(&chapter.findings)) }
        }
    }
}

/// How many claims have each verdict.
fn all_verdicts(findings: &[Finding]) -> Markup {
    let counts = Verdict::ALL.map(|verdict| {
        (verdict, findings.iter().filter(|finding| finding.verdict() == verdict).count())
    });
    html! {
        ul.measured {
            @for (verdict, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                li { (count) " " (parts::verdict(verdict)) }
            }
        }
    }
}

/// Seconds from 1970 as a date; empty beyond the calendar.
pub(crate) fn date(seconds: u64) -> String {
    let timestamp =
        i64::try_from(seconds).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
    timestamp.map_or_else(String::new, |at| at.strftime("%Y-%m-%d").to_string())
}
