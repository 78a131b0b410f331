//! Sentences of documents are short enough to be understood at once.

use std::mem;
use std::path::Path;

use crate::citations::prose;

/// The most words of a sentence.
const MOST_WORDS: usize = 30;

/// Documents that programs write.
const GENERATED: [&str; 3] = ["docs/measurements.md", "docs/reference.md", "docs/report/README.md"];

/// A fault for each sentence of a document that is too long.
pub(super) fn faults(path: &Path, text: &str) -> Vec<String> {
    let is_document = path.extension().is_some_and(|extension| extension == "md");
    if !is_document || GENERATED.iter().any(|file| path == Path::new(file)) {
        return Vec::new();
    }
    let long = sentences(text).into_iter().filter(|sentence| sentence.words.len() > MOST_WORDS);
    long.map(|Sentence { line, words }| {
        let (count, start) = (words.len(), words[..5].join(" "));
        format!("line {line}: a sentence of {count} words; at most {MOST_WORDS}: {start} ...")
    })
    .collect()
}

/// Words up to a full stop, or to the end of a paragraph or item of a list.
#[derive(Default)]
struct Sentence {
    /// The line of its first word.
    line: usize,
    words: Vec<String>,
}

/// The sentences of a document, but for code, tables, quotations and headings.
fn sentences(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut sentence = Sentence::default();
    let (mut previous, mut is_paragraph) = (0, false);
    for (number, line) in prose(text) {
        let goes_on = is_paragraph && number == previous + 1;
        previous = number;
        let item = item(line);
        let is_code = line.starts_with("    ") && !goes_on && item.is_none();
        is_paragraph = !is_code && !line.trim().is_empty() && !line.starts_with(['#', '|', '>']);
        if !goes_on || !is_paragraph || item.is_some() {
            found.push(mem::take(&mut sentence));
        }
        if !is_paragraph {
            continue;
        }
        for word in without_targets(item.unwrap_or(line)).split_whitespace() {
            if word.contains(char::is_alphanumeric) {
                if sentence.words.is_empty() {
                    sentence.line = number;
                }
                sentence.words.push(word.to_owned());
            }
            if word.trim_end_matches([')', '*', ']']).ends_with(['.', '!', '?']) {
                found.push(mem::take(&mut sentence));
            }
        }
    }
    found.push(sentence);
    found
}

/// The text of an item of a list that begins with this line.
fn item(line: &str) -> Option<&str> {
    let (mark, text) = line.trim_start().split_once(' ')?;
    let is_number = |mark: &str| !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_digit());
    (mark == "-" || mark == "*" || mark.strip_suffix('.').is_some_and(is_number)).then_some(text)
}

/// A line without the places that its links lead to.
fn without_targets(line: &str) -> String {
    let mut parts = line.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push(']');
        text.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Option<String> {
        let faults = faults(Path::new("a.md"), text);
        assert!(faults.len() < 2, "{text}: {faults:?}");
        faults.into_iter().next()
    }

    #[test]
    fn a_long_sentence_is_seen() {
        let long = "word ".repeat(31);
        let found = fault(&format!("# Heading\n\nA short one. {long}")).unwrap();
        assert_eq!(
            found,
            "line 3: a sentence of 31 words; at most 30: word word word word word ..."
        );
        for text in [
            format!("- {long}\n"),
            format!("12. {long}\n"),
            format!("    code\n\n{long}"),
            format!("Before. {}\n    {}", "a ".repeat(16), "b ".repeat(15)),
            format!("(Before.) [word](https://d.d/a) {} x", "[a](b), ".repeat(29)),
            format!("**Before.** {long} Behind!"),
        ] {
            assert!(fault(&text).is_some(), "{text}");
        }
    }

    #[test]
    fn short_sentences_and_other_texts_are_accepted() {
        let (most, long) = ("word ".repeat(30), "word ".repeat(31));
        let (half, link) = ("word ".repeat(16), format!("[word {most}](https://d.d/a)"));
        for text in [
            format!(
                "{most}. {most}! ({most}?) {most}\n\n{most}\n- {most}\n1. {most}\n# {most}\n{most}"
            ),
            format!("# {long}\n| {long} |\n> {long}\n\n    {long}\n```\n{long}\n```\n"),
            format!("{half}\n```\n```\n{half}\n- {half}\n* {half}"),
            link.replacen("word ", "", 1),
        ] {
            assert_eq!(fault(&text), None, "{text}");
        }
        assert_eq!(faults(Path::new("docs/measurements.md"), &long), [""; 0]);
        assert_eq!(faults(Path::new("a.rs"), &long), [""; 0]);
    }
}
