//! Entries of `file_contexts` and equivalences.
//!
//! Expressions are drawn from characters that mean something in them; random bytes have none. The
//! first byte says how many of the others are equivalences.

use std::path::Path;
use undercroft_source::selinux::{FileContexts, LabelledKind};

const ALPHABET: &[u8] = b"/ab.*+?()[]{}|^$\\-:<,1 \t\ndwxAbZ\x00\xe9&~#";
/// Paths that are looked up.
const PATHS: [&[u8]; 6] = [b"/", b"/a", b"/a/b", b"/ab/ba/a.b", b"/a\n", b"/\xff/{"];

fn text(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| ALPHABET[usize::from(*byte) % ALPHABET.len()]).collect()
}

pub(crate) fn run(input: &[u8]) {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let (subs, entries) = rest.split_at(usize::from(*first).min(rest.len()));
    let subs = text(subs);
    // Whole lines with one expression each reach the compiler; the raw text reaches the reader.
    let expressions = text(entries);
    let lines = expressions.split(u8::is_ascii_whitespace);
    let entry = |line: &[u8]| [b"/", line, b" u:r:t\n"].concat();
    let lines: Vec<u8> = lines.filter(|line| !line.is_empty()).flat_map(entry).collect();
    for text in [&lines[..], &expressions, entries] {
        let parsed = FileContexts::parse([(Path::new("fuzzed"), text)], [&subs, rest]);
        match parsed {
            Ok(contexts) => {
                for path in PATHS {
                    contexts.lookup(path, LabelledKind::Regular);
                    contexts.lookup(path, LabelledKind::Directory);
                }
            }
            Err(error) => drop(error.to_string()),
        }
    }
}
