//! Checks that no compiler makes: the size of files, traces of work, neatness, short sentences.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};

use crate::texts;

use super::sentences;

/// The longest source file, in lines.
const MOST_LINES: usize = 1000;

/// Texts that do not belong in the repository. Each is put together here, so that this file does
/// not name them.
const LEFTOVERS: [(&str, &str); 7] = [
    (concat!("to", "do!("), "an unfinished place"),
    (concat!("unimplem", "ented!("), "an unfinished place"),
    (concat!("db", "g!("), "a debugging print"),
    (concat!("TO", "DO"), "a note to oneself"),
    (concat!("FIX", "ME"), "a note to oneself"),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("<<<<", "<<< "), "a merge conflict"),
];

/// Checks every text file below `root`.
pub(super) fn check(root: &Path) -> Result<()> {
    let mut faults = String::new();
    let mut files = 0;
    texts::walk(root, root, &mut |path, text| {
        files += 1;
        for fault in faults_of(path, text) {
            // Writing to a string does not fail.
            let _ = write!(faults, "\n  {}: {fault}", path.display());
        }
    })?;
    if !faults.is_empty() {
        bail!("files that are not tidy:{faults}");
    }
    println!("{files} files are tidy");
    Ok(())
}

/// The faults of one file.
fn faults_of(path: &Path, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = text.lines().count();
    let source = path.extension().is_some_and(|extension| extension == "rs");
    if source && lines > MOST_LINES {
        faults.push(format!("{lines} lines; at most {MOST_LINES}"));
    }
    if source && !text.lines().take(5).any(|line| line.starts_with("//!")) {
        faults.push("does not open with its purpose (//!)".to_owned());
    }
    if !text.is_empty() && !text.ends_with('\n') {
        faults.push("does not end with a new line".to_owned());
    }
    faults.extend(sentences::faults(path, text));
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        if line.ends_with([' ', '\t', '\r']) {
            faults.push(format!("line {number} ends with white space"));
        }
        for (leftover, what) in LEFTOVERS {
            if line.contains(leftover) {
                faults.push(format!("line {number} holds {what}: {leftover}"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_seen() {
        let source = Path::new("a.rs");
        assert!(faults_of(source, "//! Purpose.\nfn main() {}\n").is_empty());
        for text in [
            "fn main() {}\n".to_owned(),
            "//! Purpose.".to_owned(),
            "//! Purpose. \n".to_owned(),
            format!("//! Purpose.\n// {}\n", concat!("TO", "DO")),
            format!("//! See {}x\n", concat!("/wo", "rk/")),
            "//! Line\n".repeat(MOST_LINES + 1),
        ] {
            assert_eq!(faults_of(source, &text).len(), 1, "{}", &text[..text.len().min(40)]);
        }
        assert!(faults_of(Path::new("a.md"), "Long\n").is_empty());
    }
}
