//! The report as a document in Markdown: claims and figures without pictures.

use crate::record::Record;
use crate::report::chapter::{Chapter, Finding};
use crate::report::chapters;
use crate::report::noise::Noise;
use crate::report::page::date;

/// The report of `records` as a document: for each experiment what was published, and whether it
/// holds here. The records are not in it.
#[must_use]
pub fn document(records: &[Record]) -> String {
    let mut text = String::from(
        "# Report of the laboratory\n\nMade by `undercroft lab report`: do not edit. Each experiment \
         was published, and is repeated here. Its claims are judged by rules.\n",
    );
    let sessions = records.iter().map(|record| &record.session);
    if let Some(last) = sessions.max_by_key(|session| session.started) {
        let (machine, day) = (last.machine.summary(), date(last.started));
        text += &format!("\n{machine}; undercroft {}; {day}.\n", last.version);
    }
    if let Some(noise) = Noise::of(records).filter(Noise::is_doubtful) {
        text += &format!(
            "\n{} The machine was busy, so claims on measured time are open.\n",
            noise.text()
        );
    }
    for chapter in &chapters::all(records) {
        add_chapter(chapter, &mut text);
    }
    text
}

fn add_chapter(chapter: &Chapter<'_>, text: &mut String) {
    *text += &format!("\n## {}\n\n{}\n", chapter.title, chapter.question);
    if !chapter.source.is_empty() {
        *text += &format!("\nPublished: {}\n", chapter.source);
    }
    *text +=
        "\n| claim | rule | published | median, 95 % interval | verdict |\n|---|---|---|---|---|\n";
    for finding in &chapter.findings {
        add_finding(finding, text);
    }
    let mut commands: Vec<_> =
        chapter.sections.iter().map(|section| section[0].session.command.as_str()).collect();
    commands.dedup();
    for command in commands {
        *text += &format!("\n    {command}\n");
    }
}

fn add_finding(finding: &Finding, text: &mut String) {
    let measured: Vec<String> = finding.figures().collect();
    let cells = [
        finding.claim.clone(),
        finding.rule_text(),
        finding.published.clone(),
        measured.join("<br>"),
        finding.verdict().words().to_owned(),
    ];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    *text += &format!("| {} |\n", cells.join(" | "));
}
