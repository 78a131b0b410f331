//! A chapter of the page.

use maud::{Markup, PreEscaped, html};

use super::parts;
use crate::report::blocks::Blocks;
use crate::report::chapter::{Chapter, Finding};
use crate::report::tables;
use crate::report::{figures, plot};

pub(super) fn chapter(chapter: &Chapter<'_>) -> Markup {
    let has_source = !chapter.source.is_empty();
    html! {
        section id=(chapter.id) {
            h2 { (chapter.title) }
            p { (chapter.question) }
            @if has_source {
                h3 { "Published" }
                p.faint { (chapter.source) }
                (parts::blocks(&chapter.published))
            }
            h3 { "Does it hold here?" }
            (claims(&chapter.findings, has_source))
            @if chapter.sections.is_empty() {
                p.faint { "No records: this experiment was not part of the run." }
            } @else {
                h3 { "Measured" }
                @for section in &chapter.sections { (figure(section)) }
                (repeat(chapter))
            }
            h3 { "Differences" }
            p { (chapter.differs) }
        }
    }
}

fn claims(findings: &[Finding], has_source: bool) -> Markup {
    html! {
        div.wide {
            table.claims {
                thead {
                    tr {
                        th scope="col" { "claim" }
                        th scope="col" { "rule" }
                        @if has_source { th scope="col" { "published" } }
                        th scope="col" { "measured: median, 95 % interval" }
                        th scope="col" { "verdict" }
                    }
                }
                tbody {
                    @for finding in findings {
                        tr {
                            td.claim { (finding.claim) }
                            td.rule data-name="rule" { (finding.rule_text()) }
                            @if has_source { td data-name="published" { (finding.published) } }
                            td data-name="measured" { (measured(finding)) }
                            td data-name="verdict" { (parts::verdict(finding.verdict())) }
                        }
                    }
                }
            }
        }
    }
}

fn measured(finding: &Finding) -> Markup {
    html! {
        @if finding.measured.is_empty() {
            span.faint { "nothing" }
        } @else {
            ul.measured {
                @for figure in finding.figures() { li { (figure) } }
            }
        }
    }
}

/// The figure of a session, its table behind a click.
fn figure(section: &[crate::record::Record]) -> Markup {
    let figure = figures::figure_of(section);
    let mut blocks = Blocks::default();
    tables::add_section(section, &mut blocks);
    html! {
        figure {
            figcaption { (figure.title) }
            div.panels {
                @for panel in &figure.panels { div { (PreEscaped(plot::panel(panel))) } }
            }
        }
        details {
            summary { "The whole table" }
            (parts::blocks(&blocks))
        }
    }
}

/// The commands that repeat it.
fn repeat(chapter: &Chapter<'_>) -> Markup {
    let mut commands: Vec<(&str, u64)> = chapter
        .sections
        .iter()
        .map(|section| (section[0].session.command.as_str(), section[0].session.seed))
        .collect();
    commands.dedup();
    html! {
        p { "To repeat it:" }
        @for (command, seed) in commands {
            p { code { (command) } span.faint { " (seed " (seed) ")" } }
        }
    }
}
