//! One pass over a source with its rules.

use super::Rules;
use super::addition::{AddedData, Addition, DIRECTORY_MODE, Made};
use super::cycle::parents;
use super::error::{RuleError, RuleProblem};
use super::findings::Findings;
use super::held::Held;
use crate::{Entry, EntryPath, Exclude, Kind, Links, Metadata, Timestamp};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// An entry that is ready, with its data if a rule added it.
pub(super) struct Ready {
    pub(super) entry: Entry,
    pub(super) data: Option<AddedData>,
    /// It is the last entry that the source gave, which has its data.
    pub(super) in_source: bool,
}

/// The state of a pass.
pub(super) struct Pass {
    pub(super) ready: VecDeque<Ready>,
    /// What rules add and is still to be delivered.
    added: BTreeMap<EntryPath, Addition>,
    /// Its paths in their order, the last one first. Those that the source has meanwhile stay.
    order: Vec<EntryPath>,
    /// The source is sorted, and what is added comes at its place.
    sorted: bool,
    /// What the source has at the paths of additions and above them; `None` until it comes.
    interest: FxHashMap<EntryPath, Option<What>>,
    held: Held,
    pub(super) findings: Findings,
    begun: bool,
    ended: bool,
}

/// The use of a path in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Directory,
    Symlink(Vec<u8>),
    Other,
}

impl What {
    fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Directory => Self::Directory,
            Kind::Symlink(target) => Self::Symlink(target.clone()),
            _ => Self::Other,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Directory => "a directory",
            Self::Symlink(_) => "a symbolic link",
            Self::Other => "a file",
        }
    }
}

impl Pass {
    pub(super) fn new(rules: &Rules, sorted: bool) -> Self {
        let paths = rules.additions.keys();
        let mut order: Vec<_> = paths.clone().cloned().collect();
        if sorted {
            order.sort_by(|one, other| one.components().cmp(other.components()));
        }
        order.reverse();
        let with_parents = paths.flat_map(|path| parents(path).chain([path.clone()]));
        Self {
            ready: VecDeque::new(),
            added: rules.additions.clone(),
            order,
            sorted,
            interest: with_parents.map(|path| (path, None)).collect(),
            held: Held::default(),
            findings: Findings::new(rules),
            begun: false,
            ended: false,
        }
    }

    /// Takes an entry of the source. What is to be delivered is then ready, the entry last.
    pub(super) fn take(
        &mut self,
        rules: &Rules,
        exclude: &Exclude,
        entry: Entry,
    ) -> Result<(), RuleError> {
        if !std::mem::replace(&mut self.begun, true) && !entry.path.is_root() {
            self.put(rules, directory(EntryPath::root(), rules.made_at));
        }
        if self.sorted {
            self.add_before(rules, Some(&entry.path))?;
        }
        let mut kept = false;
        for entry in self.held.pass(exclude, entry) {
            kept = self.is_kept(rules, &entry)?;
            if kept {
                self.put(rules, entry);
            }
        }
        if let Some(last) = self.ready.back_mut().filter(|_| kept) {
            last.in_source = true;
        }
        Ok(())
    }

    /// Whether an entry is not replaced by an addition.
    fn is_kept(&mut self, rules: &Rules, entry: &Entry) -> Result<bool, RuleError> {
        if self.interest.is_empty() {
            return Ok(true);
        }
        if let Kind::HardLink(first) = &entry.kind
            && let Some(addition) = rules.additions.get(first)
            && !rules.additions.contains_key(&entry.path)
        {
            let (path, link) = (first.to_string(), entry.path.to_string());
            return Err(addition.error(RuleProblem::Linked { path, link }));
        }
        let Some(seen) = self.interest.get_mut(&entry.path) else { return Ok(true) };
        let what = seen.insert(What::of(&entry.kind));
        let Some(addition) = rules.additions.get(&entry.path) else { return Ok(true) };
        let path = || entry.path.to_string();
        match (&addition.made, what) {
            (Made::Directory, What::Directory) => {
                self.added.remove(&entry.path);
                Ok(true)
            }
            (Made::Directory, what) => {
                let problem = RuleProblem::IsNoDirectory { path: path(), what: what.name() };
                Err(addition.error(problem))
            }
            (_, What::Directory) => Err(addition.error(RuleProblem::IsDirectory(path()))),
            (Made::Symlink(_) | Made::File(_), _) => Ok(false),
        }
    }

    /// The source is at its end: makes ready what rules add. `false` when that was done before.
    pub(super) fn end(&mut self, rules: &Rules) -> Result<bool, RuleError> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(false);
        }
        if !self.begun {
            self.put(rules, directory(EntryPath::root(), rules.made_at));
        }
        self.add_before(rules, None)?;
        Ok(true)
    }

    /// Makes ready what rules add, up to a path.
    fn add_before(&mut self, rules: &Rules, end: Option<&EntryPath>) -> Result<(), RuleError> {
        let is_before =
            |path: &mut EntryPath| end.is_none_or(|end| path.components().lt(end.components()));
        while let Some(path) = self.order.pop_if(is_before) {
            let Some(addition) = self.added.remove(&path) else { continue };
            for parent in parents(&path) {
                self.need_directory(rules, &addition, parent)?;
            }
            self.interest.insert(path.clone(), Some(What::Directory));
            let (entry, data) = addition.entry(&path, rules.made_at)?;
            self.put(rules, entry);
            if let Some(last) = self.ready.back_mut() {
                last.data = data;
            }
        }
        Ok(())
    }

    /// Makes sure that a path above an addition is a directory. Those that an addition makes come
    /// before it, and additions below others than directories were refused.
    fn need_directory(
        &mut self,
        rules: &Rules,
        addition: &Addition,
        parent: EntryPath,
    ) -> Result<(), RuleError> {
        let (what, remedy) = match self.interest.get(&parent) {
            Some(Some(What::Directory)) => return Ok(()),
            Some(Some(What::Symlink(target))) => {
                let target = target.escape_ascii();
                ("a symbolic link", format!(": name the path behind it, which it has as {target}"))
            }
            Some(Some(other)) => (other.name(), String::new()),
            Some(None) | None => {
                let held = self.held.release(&parent);
                let entry =
                    held.unwrap_or_else(|| directory(parent.clone(), addition.time(rules.made_at)));
                self.interest.insert(parent, Some(What::Directory));
                self.put(rules, entry);
                return Ok(());
            }
        };
        let parent = parent.to_string();
        Err(addition.error(RuleProblem::ParentNotDirectory { parent, what, remedy }))
    }

    /// Applies the changes to an entry, and makes it ready.
    fn put(&mut self, rules: &Rules, mut entry: Entry) {
        let findings = &mut self.findings;
        if let Kind::HardLink(first) = &entry.kind {
            findings.later_name(rules, &entry.path, first);
        } else {
            rules.change(&mut entry, |rule| findings.matched(rule));
            findings.file(rules, &entry);
        }
        self.ready.push_back(Ready { entry, data: None, in_source: false });
    }
}

/// A directory that the source does not describe.
fn directory(path: EntryPath, mtime: Timestamp) -> Entry {
    Entry {
        path,
        kind: Kind::Directory,
        metadata: Metadata { mode: DIRECTORY_MODE, uid: 0, gid: 0, mtime },
        xattrs: Vec::new(),
        links: Links::Single,
        replaces: false,
    }
}
