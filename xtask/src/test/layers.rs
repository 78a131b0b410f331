//! Which way the arrows between the rooms of a crate point.
//!
//! `lib.rs` declares the rooms of a crate floor by floor, from the ground up: floors are separated by
//! blank lines. A room imports only from the floors before its own. So there are no circles, and
//! the list tells a reader what stands on what.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Crates whose rooms have floors.
const CRATES: [&str; 4] = ["crates/block", "crates/source", "crates/xfs-format", "crates/xfs"];

/// Checks the crates that have floors.
pub(super) fn check(root: &Path) -> Result<()> {
    let mut faults = String::new();
    for name in CRATES {
        let source = root.join(name).join("src");
        let path = source.join("lib.rs");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let house = House::new(&text);
        if house.floors.is_empty() {
            bail!("{} declares no rooms", path.display());
        }
        visit(&source, &source, &mut |file, text| {
            for fault in house.faults_of(file, text) {
                // Writing to a string does not fail.
                let _ = write!(faults, "\n  {name}/src/{}: {fault}", file.display());
            }
        })?;
        println!("{name}: {} rooms on {} floors", house.floors.len(), house.count);
    }
    if !faults.is_empty() {
        bail!("imports that lead up:{faults}");
    }
    Ok(())
}

/// Calls `visit` with the path below `source` and the text of each source file, but for tests.
fn visit(source: &Path, directory: &Path, visit_file: &mut impl FnMut(&Path, &str)) -> Result<()> {
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
            visit(source, &path, visit_file)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            visit_file(path.strip_prefix(source)?, &text);
        }
    }
    Ok(())
}

/// The rooms of a crate.
struct House {
    /// Floor of each room, the ground is 0.
    floors: BTreeMap<String, usize>,
    /// Room of each name that the crate hands on at its root.
    names: BTreeMap<String, String>,
    /// Number of floors.
    count: usize,
}

impl House {
    /// Reads the declarations in a `lib.rs`.
    fn new(text: &str) -> Self {
        let (mut floors, mut floor, mut is_open) = (BTreeMap::new(), 0, false);
        for line in text.lines() {
            let declared = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ");
            if let Some(room) = declared.and_then(|rest| rest.strip_suffix(';')) {
                floors.insert(room.to_owned(), floor);
                is_open = true;
            } else if line.trim().is_empty() && is_open {
                (floor, is_open) = (floor + 1, false);
            }
        }
        let mut names = BTreeMap::new();
        for statement in code(text).split("use ").skip(1) {
            let Some((statement, _)) = statement.split_once(';') else { continue };
            let Some((room, rest)) = statement.trim().split_once("::") else { continue };
            if floors.contains_key(room) {
                for name in words(rest) {
                    names.insert(name.to_owned(), room.to_owned());
                }
            }
        }
        Self { floors, names, count: floor + usize::from(is_open) }
    }

    /// Imports of a file that do not lead down.
    fn faults_of(&self, file: &Path, text: &str) -> Vec<String> {
        let first = file.components().next().map(|part| part.as_os_str().to_string_lossy());
        let room = first.unwrap_or_default().trim_end_matches(".rs").to_owned();
        let Some(own) = self.floors.get(&room) else { return Vec::new() };
        let code = code(text);
        let mut faults = Vec::new();
        for (at, _) in code.match_indices("crate::") {
            for name in targets(&code[at + "crate::".len()..]) {
                let target = self.names.get(name).map_or(name, String::as_str);
                let is_below = |floor: &usize| floor < own;
                if target != room && !self.floors.get(target).is_none_or(is_below) {
                    faults.push(format!("`{name}` is not below `{room}`"));
                }
            }
        }
        faults.sort();
        faults.dedup();
        faults
    }
}

/// The text without comments and without the module of tests at its end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines();
    lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The names right behind `crate::`: one, or those of a list.
fn targets(rest: &str) -> Vec<&str> {
    let Some(list) = rest.strip_prefix('{') else { return words(rest).take(1).collect() };
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&list[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.into_iter().filter_map(|part| words(part).next()).collect()
}

/// Identifiers in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.split(move |character| !is_part(character)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "// Ground.\nmod low;\nmod other;\n\n// Above.\npub mod high;\n\n\
                       pub use high::{Tower, roof as top};\n";

    #[test]
    fn an_arrow_that_leads_up_is_seen() {
        let house = House::new(LIB);
        assert_eq!(house.count, 2);
        let faults = |file: &str, text: &str| house.faults_of(Path::new(file), text);
        assert_eq!(faults("low/mod.rs", "use crate::high::Tower;").len(), 1);
        assert_eq!(faults("low.rs", "use crate::{Tower, other::{a, high}};").len(), 2);
        assert_eq!(faults("low.rs", "fn f() { crate::high::roof() }").len(), 1);
        assert_eq!(faults("high.rs", "use crate::{low, other::thing};").len(), 0);
        assert_eq!(faults("low.rs", "// crate::high\nuse crate::low::x;").len(), 0);
        assert_eq!(faults("low.rs", "#[cfg(test)]\nmod tests {\nuse crate::high;\n}").len(), 0);
    }
}
