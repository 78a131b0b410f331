//! What a pass over a source finds out about its rules, for warnings.

use super::change::{self, Change};
use super::{Reach, Rules};
use crate::selinux::LabelledKind;
use crate::{Entry, EntryPath, Kind, Links};
use rustc_hash::FxHashMap;
use std::hash::Hasher;

/// Findings of one pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// For each rule.
    rules: Vec<Finding>,
    /// Files that are not regular and may have further names, by a hash of the path.
    kinds: FxHashMap<u64, LabelledKind>,
}

#[derive(Debug, Clone, Default)]
struct Finding {
    matched: bool,
    /// Later names of files for which the rule would do something else than for the first.
    later: u64,
    /// The first of them.
    example: Option<String>,
}

impl Findings {
    pub(super) fn new(rules: &Rules) -> Self {
        Self { rules: vec![Finding::default(); rules.changes.len()], kinds: FxHashMap::default() }
    }

    pub(super) fn matched(&mut self, rule: usize) {
        self.rules[rule].matched = true;
    }

    /// Remembers the kind of a file that is not regular, for its later names.
    pub(super) fn file(&mut self, rules: &Rules, entry: &Entry) {
        let labels = rules.changes.iter().any(|rule| matches!(rule.change, Change::Labels(_)));
        if !labels || entry.links == Links::Single || matches!(entry.kind, Kind::Regular { .. }) {
            return;
        }
        if let Some(kind) = LabelledKind::of(&entry.kind) {
            self.kinds.insert(hash(&entry.path), kind);
        }
    }

    /// Looks at a later name of the file whose first name is `first`.
    pub(super) fn later_name(&mut self, rules: &Rules, path: &EntryPath, first: &EntryPath) {
        let [own, of_first] = [path, first].map(|path| rules.matching(path));
        let kind = self.kinds.get(&hash(first)).copied().unwrap_or(LabelledKind::Regular);
        for (rule, finding) in rules.changes.iter().zip(&mut self.rules) {
            let differs = match (&rule.change, rule.reach) {
                (Change::Labels(contexts), _) => {
                    let [own, first] =
                        [path, first].map(|path| change::label(contexts, path, kind));
                    own != first
                }
                (_, Reach::Glob(place)) => {
                    finding.matched |= own.contains(&place);
                    own.contains(&place) && !of_first.contains(&place)
                }
                _ => false,
            };
            if differs {
                finding.later += 1;
                let text = || format!("{path}, another name of {first}");
                finding.example.get_or_insert_with(text);
            }
        }
    }

    /// Sentences for people.
    pub(super) fn warnings(&self, rules: &Rules) -> Vec<String> {
        let mut warnings = Vec::new();
        for (rule, finding) in rules.changes.iter().zip(&self.rules) {
            let place = &rule.place;
            if !finding.matched && rule.reach != Reach::Everything {
                warnings.push(format!("{place}: matches nothing"));
            }
            let Some(example) = &finding.example else { continue };
            let count = finding.later;
            warnings.push(match rule.change {
                Change::Labels(_) => format!(
                    "{place}: {count} files have names with different labels and got that of the \
                     first; the first is {example}"
                ),
                _ => format!(
                    "{place}: matches {count} later names of files, whose attributes follow the \
                     first name; the first is {example}, which the rule should match"
                ),
            });
        }
        warnings
    }
}

/// A hash of a path; two paths with one hash only make a warning wrong.
fn hash(path: &EntryPath) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(path.as_bytes());
    hasher.finish()
}
