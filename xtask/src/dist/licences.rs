//! The licences of all that is linked into the binary, in one text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use spdx::{Expression, ParseMode};

use super::architecture::Architecture;
use crate::packages::{self, Package};
use crate::{shell, workspace};

/// What is linked in and is not a crate.
const OTHERS: [(&str, &str, &str); 2] = [
    ("musl", "Copyright \u{a9} 2005-2024 Rich Felker, et al.", "MIT"),
    ("the Rust standard library", "Copyright \u{a9} The Rust Project Contributors", "MIT"),
];

/// Beginnings of files with licences.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// Licences that are offered beside others, or are of tools that are not linked in; the check of
/// licences sees to it that there is another.
const NOT_TAKEN: [&str; 2] = ["GNU GENERAL PUBLIC LICENSE", "GNU LESSER GENERAL PUBLIC LICENSE"];

/// The text: a list of all packages, then each licence with the packages that it is for.
pub(super) fn text(architecture: Architecture) -> Result<String> {
    let mut list = String::from("This program is linked with:\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked(architecture)? {
        let name = format!("{} {}", package.name, package.version);
        writeln!(list, "{name}: {}", package.license.as_deref().unwrap_or_default())?;
        for text in texts_of(&package)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (name, holder, licence) in OTHERS {
        writeln!(list, "{name}: {licence}")?;
        let text = format!("{holder}\n\n{}", standard(licence)?);
        texts.entry(text).or_default().push(name.to_owned());
    }
    let mut by_package: Vec<_> = texts.into_iter().collect();
    by_package.sort_by(|(_, left), (_, right)| left.cmp(right));
    for (text, packages) in by_package {
        let packages = packages.join(", ");
        write!(list, "\n{}\n{packages}\n\n{}\n", "=".repeat(78), text.trim_matches('\n'))?;
    }
    Ok(list)
}

/// The crates of others that the command is linked with, in order of their names.
fn linked(architecture: Architecture) -> Result<Vec<Package>> {
    let mut command = workspace::cargo();
    command.args(["tree", "--locked", "--package", "undercroft", "--edges", "normal"]);
    command.args(["--prefix", "none", "--format", "{p}", "--target", architecture.triple()]);
    let tree = shell::output(&mut command)?;
    let mut packages = packages::all(&[])?;
    packages.retain(|package| {
        let line = format!("{} v{}", package.name, package.version);
        package.source.is_some()
            && tree.lines().any(|one| {
                one.trim_end_matches(" (*)") == line || one == format!("{line} (proc-macro)")
            })
    });
    ensure!(!packages.is_empty(), "`cargo tree` named no package of the registry");
    packages.sort_by(|left, right| (&left.name, &left.version).cmp(&(&right.name, &right.version)));
    Ok(packages)
}

/// The licences of a package as they are in its files, else as SPDX has them.
fn texts_of(package: &Package) -> Result<Vec<String>> {
    let root = package.manifest_path.parent().unwrap_or(Path::new("/"));
    let mut texts = Vec::new();
    collect(root, &mut texts).with_context(|| format!("cannot read {}", root.display()))?;
    if !texts.is_empty() {
        return Ok(texts);
    }
    let licence = package.license.as_deref().unwrap_or_default();
    let expression = Expression::parse_mode(licence, ParseMode::LAX)
        .map_err(|error| anyhow::anyhow!("{}: {error}", package.name))?;
    // Any of them may be chosen where there are several; all are given.
    expression.requirements().map(|one| standard(&one.req.license.to_string())).collect()
}

/// The text of a licence without a holder.
fn standard(name: &str) -> Result<String> {
    let licence = spdx::license_id(name).with_context(|| format!("no licence is named {name}"))?;
    Ok(licence.text().to_owned())
}

/// Adds the licences that lie in or below a directory, by name of file.
fn collect(directory: &Path, texts: &mut Vec<String>) -> Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            collect(&path, texts)?;
            continue;
        }
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_code = path.extension().is_some_and(|end| end == "rs" || end == "sh" || end == "c");
        if !kind.is_file() || is_code || !NAMES.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let bytes = fs::read(&path)?;
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        let head: String = text.chars().take(300).collect();
        if !NOT_TAKEN.iter().any(|licence| head.contains(licence)) {
            texts.push(text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_a_text() {
        let text = text(Architecture::X86_64).unwrap();
        for part in ["mimalloc", "zstd-sys", "Rich Felker", "Permission is hereby granted"] {
            assert!(text.contains(part), "{part}");
        }
        let (list, rest) = text.split_once(&"=".repeat(78)).unwrap();
        for line in list.lines().skip(2).filter(|line| !line.is_empty()) {
            let (package, licence) = line.split_once(": ").unwrap();
            assert!(!licence.is_empty() && rest.contains(package), "{line}");
        }
        assert!(!text.contains("GNU GENERAL PUBLIC LICENSE\n"));
    }
}
