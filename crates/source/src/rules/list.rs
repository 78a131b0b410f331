//! Rules as they are given, one after the other.

use super::addition::{Addition, HostFile, Made};
use super::change::Change;
use super::error::{RuleError, RuleProblem};
use super::{Reach, Rule, Rules, cycle, line, value};
use crate::selinux::FileContexts;
use crate::{Choice, EntryPath, Exclude, Timestamp, glob};
use globset::{Glob, GlobSetBuilder};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keywords of rules and what follows them.
const FORMS: [(&str, &str); 13] = [
    ("exclude", "GLOB"),
    ("include", "GLOB"),
    ("add", "FILE:/PATH"),
    ("mkdir", "/PATH"),
    ("symlink", "TARGET:/PATH"),
    ("owner-map", "FROM:TO[:COUNT][,...]"),
    ("owner", "UID:GID"),
    ("chown", "UID:GID GLOB"),
    ("chmod", "MODE GLOB"),
    ("root-mode", "MODE"),
    ("xattr", "NAME=VALUE GLOB"),
    ("mtime", "TIME"),
    ("selinux", "FILE_CONTEXTS[:POLICY_DIRECTORY]"),
];

/// Largest file of rules.
const MAX_FILE: u64 = 16 << 20;

/// Rules in the order in which they are given. Which they are, and what they do:
/// [`crate::rules`].
#[derive(Debug, Default)]
pub struct RuleList {
    selection: Vec<(Choice, String)>,
    additions: BTreeMap<EntryPath, Addition>,
    changes: Vec<Rule>,
    globs: Vec<Glob>,
    made_at: Timestamp,
}

impl RuleList {
    /// The time of entries that rules make without a file to take it from; 1970 without.
    pub fn made_at(&mut self, time: Timestamp) {
        self.made_at = time;
    }

    /// Adds a rule: its keyword and the words that follow it. `place` names it in errors and
    /// warnings; relative names of host files begin at `directory`.
    ///
    /// # Errors
    /// The rule is wrong, or a file that it names is.
    pub fn add<W: AsRef<[u8]>>(
        &mut self,
        keyword: &str,
        words: &[W],
        place: String,
        directory: &Path,
    ) -> Result<(), RuleError> {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        let given = self.rule(keyword, &words, &place, directory);
        given.map_err(|problem| RuleError::Rule { place, problem })
    }

    /// Adds the rules of a file: a rule on each line, a keyword and words separated by blanks. A
    /// word may stand in single or double quotes. Empty lines and those that begin with `#` count for
    /// nothing. Relative names of host files begin at the directory of the file.
    ///
    /// # Errors
    /// The file cannot be read, or one of its rules is wrong.
    pub fn add_file(&mut self, path: &Path) -> Result<(), RuleError> {
        let failed = |source| RuleError::File { path: path.into(), source };
        let mut text = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_FILE + 1), &mut text)
            .map_err(failed)?;
        if text.len() as u64 > MAX_FILE {
            let error = std::io::Error::other(format!("it has more than {MAX_FILE} bytes"));
            return Err(failed(error));
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        self.add_text(&text, &path.display().to_string(), directory)
    }

    /// Adds the rules of a text, which `name` names in errors; see [`add_file`](Self::add_file).
    ///
    /// # Errors
    /// The first rule that is wrong.
    pub fn add_text(&mut self, text: &[u8], name: &str, directory: &Path) -> Result<(), RuleError> {
        for (number, bytes) in text.split(|&byte| byte == b'\n').enumerate() {
            let place = || format!("{name}, line {} ({})", number + 1, line::shown(bytes));
            let wrong = |problem| RuleError::Rule { place: place(), problem };
            let words = line::words(bytes).map_err(wrong)?;
            let Some((keyword, words)) = words.split_first() else { continue };
            let keyword = std::str::from_utf8(keyword).map_err(|_| wrong(RuleProblem::NotText))?;
            self.add(keyword, words, place(), directory)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        keyword: &str,
        words: &[&[u8]],
        place: &str,
        directory: &Path,
    ) -> Result<(), RuleProblem> {
        let unknown = || RuleProblem::Keyword {
            keyword: keyword.escape_debug().to_string(),
            known: FORMS.map(|(keyword, _)| keyword).join(", "),
        };
        let (_, form) = FORMS.iter().find(|(known, _)| *known == keyword).ok_or_else(unknown)?;
        let wanted = || RuleProblem::Words(format!("{keyword} {form}"));
        let count = form.split(' ').count();
        let (first, glob) = match *words {
            [first] if count == 1 && !first.is_empty() => (first, None),
            [first, glob] if count == 2 && !first.is_empty() => (first, Some(glob)),
            _ => return Err(wanted()),
        };
        let text = || std::str::from_utf8(first).map_err(|_| RuleProblem::NotText);
        let change = match keyword {
            "exclude" | "include" => return self.choose(keyword, text()?),
            "add" | "mkdir" | "symlink" => {
                return self.make(keyword, first, form, place, directory);
            }
            "owner-map" => Change::OwnerMap(value::OwnerMap::parse(text()?)?),
            "owner" | "chown" => {
                let (uid, gid) = value::owner(text()?)?;
                Change::Owner { uid, gid }
            }
            "chmod" | "root-mode" => Change::Mode(text()?.parse().map_err(RuleProblem::Value)?),
            "xattr" => {
                let (name, value) = value::xattr(first)?;
                Change::Xattr { name, value }
            }
            "mtime" => Change::Modified(text()?.parse().map_err(RuleProblem::Value)?),
            "selinux" => Change::Labels(Arc::new(policy(first, directory)?)),
            _ => return Err(unknown()),
        };
        let reach = match glob {
            None if keyword == "root-mode" => Reach::Root,
            None => Reach::Everything,
            Some(glob) => self.reach(glob)?,
        };
        self.changes.push(Rule { change, reach, place: place.to_owned() });
        Ok(())
    }

    fn choose(&mut self, keyword: &str, pattern: &str) -> Result<(), RuleProblem> {
        glob::compile(pattern).map_err(RuleProblem::Glob)?;
        let choice = if keyword == "include" { Choice::Include } else { Choice::Exclude };
        self.selection.push((choice, pattern.to_owned()));
        Ok(())
    }

    fn make(
        &mut self,
        keyword: &str,
        word: &[u8],
        form: &str,
        place: &str,
        directory: &Path,
    ) -> Result<(), RuleProblem> {
        let form = &format!("{keyword} {form}");
        let (made, path) = match keyword {
            "mkdir" => (Made::Directory, value::path(word)?),
            "symlink" => {
                let (target, path) = value::thing_and_path(word, form)?;
                (Made::Symlink(value::target(target)?), path)
            }
            _ => {
                let (file, path) = value::thing_and_path(word, form)?;
                (Made::File(HostFile::find(host_path(file, directory))?), path)
            }
        };
        if let Some(other) = self.additions.get(&path) {
            let (path, other) = (path.to_string(), other.place.clone());
            return Err(RuleProblem::Duplicate { path, other });
        }
        self.additions.insert(path, Addition { made, place: place.to_owned() });
        Ok(())
    }

    fn reach(&mut self, glob: &[u8]) -> Result<Reach, RuleProblem> {
        let text = std::str::from_utf8(glob).map_err(|_| RuleProblem::NotText)?;
        Ok(match text {
            "**" | "/**" => Reach::Everything,
            "/" => Reach::Root,
            text => {
                self.globs.push(glob::compile(text).map_err(RuleProblem::Glob)?);
                Reach::Glob(self.globs.len() - 1)
            }
        })
    }

    /// What is left out, and the other rules.
    ///
    /// # Errors
    /// Rules that contradict each other.
    pub fn finish(self) -> Result<(Exclude, Rules), RuleError> {
        cycle::check(&self.additions)?;
        let globs = |error| RuleError::Rule {
            place: "the patterns of all rules".to_owned(),
            problem: RuleProblem::Glob(error),
        };
        let exclude = Exclude::in_order(self.selection).map_err(|error| match error {
            crate::SourceError::Pattern { source, .. } => globs(source),
            other => RuleError::Rule {
                place: "the patterns of all rules".to_owned(),
                problem: RuleProblem::Value(other.to_string()),
            },
        })?;
        let mut set = GlobSetBuilder::new();
        for glob in self.globs {
            set.add(glob);
        }
        let set = set.build().map_err(globs)?;
        let (additions, changes, made_at) = (self.additions, self.changes, self.made_at);
        Ok((exclude, Rules { additions, changes, set, made_at }))
    }
}

/// A host file as it is named in a rule.
fn host_path(name: &[u8], directory: &Path) -> PathBuf {
    directory.join(OsStr::from_bytes(name))
}

/// `FILE[:DIRECTORY]`; a file whose name has a colon is taken as it is.
fn policy(word: &[u8], directory: &Path) -> Result<FileContexts, RuleProblem> {
    let whole = host_path(word, directory);
    let colon = word.iter().rposition(|&byte| byte == b':');
    match colon.filter(|_| !whole.exists()) {
        None => Ok(FileContexts::read(&whole, None)?),
        Some(at) => {
            let [file, policy] =
                [&word[..at], &word[at + 1..]].map(|name| host_path(name, directory));
            Ok(FileContexts::read(&file, Some(&policy))?)
        }
    }
}
