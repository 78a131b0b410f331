//! Rules over a source: what of it is left out, what is added, and what becomes of its attributes.
//!
//! A source with rules is a source, whatever is below: a directory, an archive. Its scan shows the
//! entries as they will be.
//!
//! Rules act in this order:
//! 1. `exclude` and `include` choose among the entries of the source; the last that matches counts.
//! 2. `add`, `mkdir` and `symlink` put entries behind those of the source, sorted by path. Parents
//!    that are missing are made. A file that comes under the same path in the source is left out.
//! 3. `owner-map`, `owner`, `chown`, `chmod`, `root-mode`, `xattr`, `mtime` and `selinux` change the
//!    attributes of all entries, in the order in which they are given: each begins with what those
//!    before it left.
//!
//! A file with several names has one set of attributes, and the rules go by the name that comes
//! first in the source. A rule that matches a later name alone changes nothing, and is reported.

mod access;
mod addition;
mod change;
mod cycle;
mod error;
mod findings;
mod held;
mod line;
mod list;
mod pass;
mod ruled;
mod unmatched;
mod value;

pub use error::{RuleError, RuleProblem};
pub use list::RuleList;
pub(crate) use ruled::RuledSource;
pub(crate) use unmatched::MatchedSource;

use crate::{Entry, EntryPath, Timestamp};
use addition::Addition;
use change::Change;
use globset::{Candidate, GlobSet};
use std::collections::BTreeMap;

/// Rules that add entries and change them; made by a [`RuleList`].
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// By path, so that parents come first.
    additions: BTreeMap<EntryPath, Addition>,
    /// In order.
    changes: Vec<Rule>,
    /// The patterns of changes.
    set: GlobSet,
    /// Time of entries that have none of their own.
    made_at: Timestamp,
}

/// A change, and the entries that it is for.
#[derive(Debug, Clone)]
struct Rule {
    change: Change,
    reach: Reach,
    place: String,
}

/// The entries that a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Everything,
    Root,
    /// Those that match a pattern, by its place in the set.
    Glob(usize),
}

impl Rules {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.additions.is_empty() && self.changes.is_empty()
    }

    /// Places of the patterns that a path matches.
    fn matching(&self, path: &EntryPath) -> Vec<usize> {
        if self.set.is_empty() || path.is_root() {
            return Vec::new();
        }
        self.set.matches_candidate(&Candidate::from_bytes(path.as_bytes()))
    }

    /// Applies all changes to an entry that is no hard link; `each` learns which rules were for it.
    fn change(&self, entry: &mut Entry, mut each: impl FnMut(usize)) {
        let matching = self.matching(&entry.path);
        for (number, rule) in self.changes.iter().enumerate() {
            if rule.reach.includes(entry.path.is_root(), &matching) {
                rule.change.apply(entry);
                each(number);
            }
        }
    }
}

impl Reach {
    fn includes(self, is_root: bool, matching: &[usize]) -> bool {
        match self {
            Self::Everything => true,
            Self::Root => is_root,
            Self::Glob(place) => matching.contains(&place),
        }
    }
}
