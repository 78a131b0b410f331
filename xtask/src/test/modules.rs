//! The modules of a crate, and which of them use which, read from the text.
//!
//! A path is followed through what modules hand on (`pub use`) to the file that has the item. Tests
//! are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A module by its names from the root of the crate, which has none.
pub(super) type Name = Vec<String>;

/// The modules of a crate that have a file.
#[derive(Default)]
pub(super) struct Modules {
    texts: BTreeMap<Name, Module>,
}

/// What a file says.
struct Module {
    /// The path below `src`.
    file: String,
    /// Names that it has from elsewhere, with their paths.
    names: BTreeMap<String, Vec<String>>,
    /// All paths that it uses.
    uses: Vec<Vec<String>>,
}

impl Modules {
    /// Reads all files below `source`.
    pub(super) fn read(source: &Path) -> Result<Self> {
        let mut modules = Self::default();
        modules.visit(source, source)?;
        Ok(modules)
    }

    fn visit(&mut self, source: &Path, directory: &Path) -> Result<()> {
        let entries = fs::read_dir(directory)
            .with_context(|| format!("cannot list {}", directory.display()))?
            .collect::<Result<Vec<_>, _>>()?;
        for entry in entries {
            let path = entry.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if stem.ends_with("tests") || stem == "testing" {
                continue;
            }
            if entry.file_type()?.is_dir() {
                self.visit(source, &path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let file = path.strip_prefix(source)?.to_string_lossy().into_owned();
                self.add(file, &text);
            }
        }
        Ok(())
    }

    /// Adds the file at a path below `src`.
    pub(super) fn add(&mut self, file: String, text: &str) {
        let mut name: Name = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        let is_root = name.len() == 1 && matches!(&*name[0], "lib" | "main");
        if is_root || name.last().is_some_and(|last| last == "mod") {
            name.pop();
        }
        let (mut names, mut uses) = (BTreeMap::new(), Vec::new());
        let code = code(text);
        let mut rest = String::new();
        for (at, piece) in code.split("use ").enumerate() {
            let statement = piece.split_once(';').filter(|(tree, _)| at > 0 && is_tree(tree));
            let Some((tree, after)) = statement else {
                rest.push_str(piece);
                continue;
            };
            for (path, alias) in paths(&[], tree) {
                if let Some(name) = alias.as_ref().or(path.last()) {
                    names.entry(name.clone()).or_insert_with(|| path.clone());
                }
                uses.push(path);
            }
            rest.push_str(after);
        }
        uses.extend(written_out(&rest));
        self.texts.insert(name, Module { file, names, uses });
    }

    /// The file of a module, below `src`.
    pub(super) fn file(&self, name: &[String]) -> &str {
        self.texts.get(name).map_or("", |module| &module.file)
    }

    /// All modules with those that each uses.
    pub(super) fn arrows(&self) -> BTreeMap<Name, BTreeSet<Name>> {
        let targets = |(name, module): (&Name, &Module)| {
            let found = module.uses.iter().filter_map(|path| self.follow(name, path, 0));
            (name.clone(), found.filter(|target| target != name).collect())
        };
        self.texts.iter().map(targets).collect()
    }

    /// The module with the item that a path in `from` leads to.
    fn follow(&self, from: &[String], path: &[String], depth: usize) -> Option<Name> {
        // A crate has no names that lead on and on.
        let first = path.first().filter(|_| depth < 20)?;
        let (mut at, mut rest) = match &**first {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                (from[..from.len().checked_sub(up)?].to_vec(), &path[up..])
            }
            _ if self.child(from, first).is_some() => (from.to_vec(), path),
            _ => {
                let alias = self.texts.get(from)?.names.get(first)?;
                let is_other = path.len() > 1 && alias.first() != Some(first);
                let whole = || [&alias[..], &path[1..]].concat();
                return is_other.then(|| self.follow(from, &whole(), depth + 1)).flatten();
            }
        };
        while let Some(part) = rest.first() {
            if let Some(child) = self.child(&at, part) {
                (at, rest) = (child, &rest[1..]);
                continue;
            }
            let handed_on = self.texts.get(&at).and_then(|module| module.names.get(part));
            if let Some(alias) = handed_on.filter(|_| at != from) {
                return self.follow(&at, &[&alias[..], &rest[1..]].concat(), depth + 1);
            }
            break;
        }
        self.texts.contains_key(&at).then_some(at)
    }

    fn child(&self, name: &[String], part: &str) -> Option<Name> {
        let child = [name, &[part.to_owned()]].concat();
        self.texts.contains_key(&child).then_some(child)
    }
}

/// The text without comments and without the module of tests at its end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines();
    lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether a text behind `use` is one of imports, and not of a sentence in a string.
fn is_tree(text: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || "_:{},* \n".contains(character);
    text.chars().all(is_part)
}

/// The paths of a tree of imports, each with the other name that it gets.
fn paths(prefix: &[String], tree: &str) -> Vec<(Vec<String>, Option<String>)> {
    let (head, list) = tree.split_once('{').map_or((tree, None), |(head, list)| (head, Some(list)));
    let (path, alias) = head
        .split_once(" as ")
        .map_or((head, None), |(path, alias)| (path, Some(alias.trim().to_owned())));
    let parts = path.split("::").map(|part| part.trim().to_owned());
    let mut path: Vec<String> = prefix.to_vec();
    path.extend(parts.filter(|part| !part.is_empty()));
    let Some(list) = list else {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        return if path.len() > prefix.len() || !prefix.is_empty() {
            vec![(path, alias)]
        } else {
            Vec::new()
        };
    };
    let (mut depth, mut start, mut all) = (0_usize, 0, Vec::new());
    for (at, character) in list.char_indices() {
        let is_end = character == '}' && depth == 0;
        if (character == ',' && depth == 0) || is_end {
            if !list[start..at].trim().is_empty() {
                all.extend(paths(&path, &list[start..at]));
            }
            start = at + 1;
        }
        match character {
            '}' if is_end => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    all
}

/// The paths in code that begin at the crate, at the module or above it.
fn written_out(code: &str) -> Vec<Vec<String>> {
    let is_part =
        |character: char| character.is_alphanumeric() || character == '_' || character == ':';
    let words = code.split(|character| !is_part(character)).filter(|word| word.contains("::"));
    let paths = words.map(|word| word.split("::").map(str::to_owned).collect::<Vec<_>>());
    paths.filter(|path| matches!(&*path[0], "crate" | "self" | "super")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.split("::").map(str::to_owned).collect()
    }

    #[test]
    fn paths_lead_to_the_file_that_has_the_item() {
        let mut modules = Modules::default();
        modules.add("lib.rs".into(), "mod low;\nmod high;\npub use low::{Stone as Rock, deep};");
        modules.add("low/mod.rs".into(), "mod deep;\npub use deep::Stone;\npub fn sand() {}");
        modules.add("low/deep.rs".into(), "use super::sand;\npub struct Stone;");
        modules.add(
            "high.rs".into(),
            "use crate::{Rock,\n low::{self, sand}};\nfn f() { low::deep::x() }\n// crate::none\n\
             #[cfg(test)]\nmod tests {\nuse crate::Rock;\n}",
        );
        let arrows = modules.arrows();
        let of = |text: &str| arrows[&name(text)].iter().cloned().collect::<Vec<_>>();
        assert_eq!(of("high"), [name("low"), name("low::deep")]);
        assert_eq!(of("low::deep"), [name("low")]);
        assert_eq!(modules.file(&name("low::deep")), "low/deep.rs");
    }
}
