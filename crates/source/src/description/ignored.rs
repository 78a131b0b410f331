//! What a description says that is not followed.

use std::collections::BTreeMap;

/// Most keywords that are told by name.
const NAMED_MAX: usize = 20;

/// How often something was met, and where first.
#[derive(Debug, Default)]
struct Count {
    lines: u64,
    first: u64,
}

/// What is not followed.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    keywords: BTreeMap<String, Count>,
    /// Names of files with several, of which nothing says which are one.
    unlinked: Count,
}

impl Count {
    fn add(&mut self, line: u64) {
        if self.lines == 0 {
            self.first = line;
        }
        self.lines += 1;
    }
}

impl Ignored {
    /// A keyword that means nothing here.
    pub(super) fn keyword(&mut self, keyword: &[u8], line: u64) {
        let keyword = keyword[..keyword.len().min(40)].escape_ascii().to_string();
        if self.keywords.len() < NAMED_MAX || self.keywords.contains_key(&keyword) {
            self.keywords.entry(keyword).or_default().add(line);
        }
    }

    /// A name of a file with several.
    pub(super) fn unlinked(&mut self, line: u64) {
        self.unlinked.add(line);
    }

    /// A sentence for each, with the line where it was met first.
    fn all(&self) -> Vec<(u64, String)> {
        let mut all: Vec<_> = self
            .keywords
            .iter()
            .map(|(keyword, Count { lines, first })| {
                let sentence = format!(
                    "the keyword {keyword} is not followed, which {lines} lines have, line {first} \
                     first"
                );
                (*first, sentence)
            })
            .collect();
        let Count { lines, first } = self.unlinked;
        if lines > 0 {
            let sentence = format!(
                "{lines} names, line {first} first, are of files with several names (nlink), and \
                 nothing says of which (inode and resdevice do): each is a file of its own"
            );
            all.push((first, sentence));
        }
        all.sort();
        all
    }

    pub(super) fn first(&self) -> Option<(u64, String)> {
        self.all().into_iter().next()
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        self.all().into_iter().map(|(_, sentence)| sentence).collect()
    }
}
