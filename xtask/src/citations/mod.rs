//! Citations of documents lead somewhere.
//!
//! Comments and documents cite a document by its path from the root of the repository, with a
//! heading where one has the fact, as docs/format/inodes.md#core. Documents also link to each other
//! by relative paths. Each must lead to a file, and to a heading by the rule of GitHub. Citations
//! by number go stale unseen and are refused.

mod headings;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};

use crate::texts;
use headings::anchors;
pub(crate) use headings::prose;

/// Where documents are that comments cite by their path.
const DOCUMENTS: &str = "docs/";

/// Files whose tests have documents that are not there: this is one.
const WITH_SAMPLES: [&str; 2] = [file!(), "xtask/src/book/sources.rs"];

/// Checks all sources, documents and manifests below `root`.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut files = Vec::new();
    texts::walk(root, root, &mut |path, text| {
        if matches!(extension(path), "rs" | "md" | "toml")
            && !WITH_SAMPLES.iter().any(|file| path == Path::new(file))
        {
            files.push((path.to_owned(), text.to_owned()));
        }
    })?;
    let documents = Documents::new(&files);
    let exists = |path: &Path| root.join(path).exists();
    let mut report = String::new();
    let mut count = 0;
    for (path, text) in &files {
        for citation in citations(path, text) {
            count += 1;
            if let Some(what) = documents.fault(path, &citation, &exists) {
                let Citation { line, text, .. } = &citation;
                // Writing to a string does not fail.
                let _ = write!(report, "\n  {}:{line}: {text}: {what}", path.display());
            }
        }
    }
    if !report.is_empty() {
        bail!("citations that lead nowhere:{report}");
    }
    println!("{count} citations lead somewhere");
    Ok(())
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// What a citation names, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A path from the root of the repository, perhaps with a heading.
    Path,
    /// The target of a link in Markdown, relative to its file.
    Link,
    /// A document and the number of a part of it.
    Number,
}

/// A citation in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Citation {
    line: usize,
    text: String,
    kind: Kind,
}

/// The headings of all documents.
struct Documents(BTreeMap<PathBuf, BTreeSet<String>>);

impl Documents {
    fn new(files: &[(PathBuf, String)]) -> Self {
        let documents = files.iter().filter(|(path, _)| extension(path) == "md");
        Self(documents.map(|(path, text)| (path.clone(), anchors(text))).collect())
    }

    /// Why a citation in `file` leads nowhere, and what to do.
    fn fault(
        &self,
        file: &Path,
        citation: &Citation,
        exists: &dyn Fn(&Path) -> bool,
    ) -> Option<String> {
        let (path, anchor) = match citation.text.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (&*citation.text, None),
        };
        let target = match citation.kind {
            Kind::Number => {
                let remedy = "numbers go stale; cite path and heading, as docs/NAME.md#heading";
                return Some(remedy.to_owned());
            }
            Kind::Path => PathBuf::from(path),
            Kind::Link if path.is_empty() => file.to_owned(),
            Kind::Link => resolve(file, path),
        };
        if !self.0.contains_key(&target) && !exists(&target) {
            return Some("there is no such file; write the document, or cite another".to_owned());
        }
        let anchor = anchor?;
        let Some(headings) = self.0.get(&target) else {
            return Some("only documents have headings; leave the anchor out".to_owned());
        };
        if headings.contains(anchor) {
            return None;
        }
        let known: Vec<_> = headings.iter().map(|heading| format!("#{heading}")).collect();
        Some(format!("there is no such heading; cite one of {}", known.join(", ")))
    }
}

/// The path that a link in `file` leads to, from the root of the repository.
pub(crate) fn resolve(file: &Path, link: &str) -> PathBuf {
    let mut target = file.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(link).components() {
        match part {
            // A link out of the repository leads to no file of it.
            Component::ParentDir if !target.pop() => return PathBuf::from(link),
            Component::ParentDir | Component::CurDir => {}
            part => target.push(part),
        }
    }
    target
}

/// All citations in a file.
fn citations(path: &Path, text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        found.extend(paths(content).map(|text| Citation { line, text, kind: Kind::Path }));
    }
    let is_document = extension(path) == "md";
    for (line, content) in prose(text) {
        for target in links(content) {
            let is_local = !target.contains(':') && !target.is_empty();
            let to_document = target.split('#').next().is_some_and(|path| path.ends_with(".md"));
            if is_local && (is_document || to_document) {
                let text = target.to_owned();
                found.push(Citation { line, text, kind: Kind::Link });
            }
        }
    }
    found.extend(numbers(text));
    found
}

/// Paths of documents, with anchors, as they stand in a text.
fn paths(line: &str) -> impl Iterator<Item = String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '#');
    line.match_indices(DOCUMENTS).filter_map(move |(at, _)| {
        // A longer path is the citation of something else, or a link.
        if line[..at].ends_with(is_part) {
            return None;
        }
        let rest = &line[at..];
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        // The end of a sentence is not part of the path.
        let word = word.trim_end_matches('.');
        let path = word.split('#').next().unwrap_or_default();
        path.ends_with(".md").then(|| word.to_owned())
    })
}

/// Targets of links, those in code spans left out.
pub(crate) fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, _)| {
        let in_code = line[..at].matches('`').count() % 2 == 1;
        let rest = &line[at + 2..];
        let end = rest.find(')').filter(|_| !in_code)?;
        Some(rest[..end].split(' ').next().unwrap_or_default())
    })
}

/// Citations of a numbered part, whose words may be wrapped over lines of a comment.
fn numbers(text: &str) -> Vec<Citation> {
    let mut words: Vec<(usize, &str)> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim_start();
        let comment = ["//!", "///", "//", "#"].iter().find_map(|mark| content.strip_prefix(mark));
        let content = comment.unwrap_or(content);
        words.extend(content.split_whitespace().map(|word| (line, word)));
        // A paragraph ends a sentence.
        if content.trim().is_empty() {
            words.push((line, ""));
        }
    }
    let citation = |at: usize| {
        let around = &words[at.saturating_sub(1)..(at + 3).min(words.len())];
        let text = around.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
        Citation { line: words[at].0, text: text.trim().to_owned(), kind: Kind::Number }
    };
    let is_stale = |at: &usize| {
        // Documents of others have their own numbers.
        let of_others = *at > 0 && words[at - 1].1.ends_with("specification,");
        !of_others && is_number(words[*at].1, words[at + 1].1)
    };
    (0..words.len().saturating_sub(1)).filter(is_stale).map(citation).collect()
}

/// Whether two words name a part of a document by its number.
fn is_number(first: &str, second: &str) -> bool {
    let opening = ['(', '[', '"', '*'];
    let first = first.trim_start_matches(opening).to_lowercase();
    let second = second.trim_start_matches(opening).to_lowercase();
    let has_number = second.starts_with(|c: char| c.is_ascii_digit());
    let (name, is_list) = first.strip_suffix(',').map_or((&*first, false), |name| (name, true));
    match name {
        "decision" | "decisions" | "section" | "sections" => has_number && !is_list,
        name if name == "reference" || name.ends_with(".md") => {
            second == "appendix" || (is_list && has_number)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a text in a repository of two documents and a source.
    fn faults(file: &str, text: &str) -> Vec<String> {
        let files = [("docs/a/one.md", "# One\n## Core\n"), ("docs/two.md", "# Two\n")];
        let files = files.map(|(path, text)| (PathBuf::from(path), text.to_owned()));
        let documents = Documents::new(&files);
        let exists = |path: &Path| path == Path::new("crates/source.rs");
        let file = Path::new(file);
        let citations = citations(file, text).into_iter();
        citations
            .filter_map(|citation| {
                let what = documents.fault(file, &citation, &exists)?;
                Some(format!("{}: {}: {what}", citation.line, citation.text))
            })
            .collect()
    }

    #[test]
    fn a_citation_that_leads_nowhere_is_seen() {
        let fault = |file, text: &str, start| {
            let faults = faults(file, text);
            assert!(faults.len() == 1 && faults[0].starts_with(start), "{text}: {faults:?}");
        };
        fault("a.rs", "//! As (docs/three.md).\n", "1: docs/three.md: there is no such file");
        let faulty = "2: docs/a/one.md#cor: there is no such heading; cite one of #core, #one";
        fault("a.rs", "x\n// docs/a/one.md#cor.", faulty);
        fault("docs/two.md", "[a](a/one.md#x)", "1: a/one.md#x: there is no such heading; cite");
        fault("docs/two.md", "[a](#core)", "1: #core: ");
        fault("docs/two.md", "[a](one.md)", "1: one.md: ");
        fault("docs/two.md", "[a](../../out.md)", "1: ../../out.md: ");
        fault("docs/two.md", "[a](../crates/source.rs#L1)", "1: ../crates/source.rs#L1: only ");
        fault("a.rs", "//! [a](b.md)", "1: b.md: ");
    }

    #[test]
    fn a_citation_by_number_is_seen() {
        for (first, second) in [
            ("(format reference,", "sections 6 and 7)."),
            ("The journal reference", "section 3"),
            ("algorithms reference,", "3.3"),
            ("(design, decision", "5)"),
            ("(ARCHITECTURE.md,", "12)"),
            ("docs/two.md,", "section 1"),
            ("the format reference,", "appendix A"),
            ("first (section", "2.8)."),
        ] {
            for between in [" ", "\n    /// "] {
                let text = [first, between, second].concat();
                assert_eq!(faults("a.rs", &text).len(), 1, "{text}");
            }
        }
    }

    #[test]
    fn what_leads_somewhere_is_accepted() {
        for text in [
            "// See docs/a/one.md#core, and docs/two.md.",
            "another/docs/three.md",
            "let a = b[c](d); // a reference, and a decision",
            "// (UEFI specification, section 5.3)",
            "## Decisions\n\n1. The first.",
        ] {
            assert_eq!(faults("a.rs", text), [""; 0], "{text}");
        }
        let text = "[a](a/one.md#core) [b](#two) [c](../crates/source.rs) [d](https://d.d/e.md)\n\
                    `[e](f.md)`\n```\n[g](h.md)\n```\n";
        assert_eq!(faults("docs/two.md", text), [""; 0]);
        assert_eq!(faults("docs/a/one.md", "[a](../two.md#two)"), [""; 0]);
    }
}
