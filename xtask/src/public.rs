//! The public items of the crates for programs: kept as lists under `docs/public`, so that a change
//! of it shows in a diff. Taken from the documentation that `cargo doc` has written.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{shell, workspace};

/// Crates with a stable public surface.
const CRATES: [&str; 13] = [
    "undercroft-block",
    "undercroft-container",
    "undercroft-fs",
    "undercroft-fuse",
    "undercroft-image",
    "undercroft-nbd",
    "undercroft-recover",
    "undercroft-repair",
    "undercroft-source",
    "undercroft-store",
    "undercroft-tags",
    "undercroft-xfs",
    "undercroft-xfs-format",
];

/// Behind this the page of an item lists its items from traits.
const TRAITS: &str = "id=\"trait-implementations\"";

/// What an item has that is public with it: anchors of its page.
const PARTS: [&str; 5] = ["associatedconstant", "method", "structfield", "tymethod", "variant"];

/// Writes the documentation; warnings are errors.
pub(crate) fn write_documentation() -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["doc", "--workspace", "--no-deps", "--all-features"]);
    shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Compares the lists with the documentation that is there.
pub(crate) fn check() -> Result<()> {
    let mut changed = String::new();
    for name in CRATES {
        let (path, now) = (list(name), surface(name)?);
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        let (before, after) = (lines(&kept), lines(&now));
        for line in before.difference(&after) {
            // Writing to a string does not fail.
            let _ = write!(changed, "\n  {name}: - {line}");
        }
        for line in after.difference(&before) {
            let _ = write!(changed, "\n  {name}: + {line}");
        }
    }
    if !changed.is_empty() {
        bail!("what is public has changed; if it should, run `cargo xtask public`:{changed}");
    }
    Ok(())
}

/// Writes the lists anew.
pub(crate) fn write() -> Result<()> {
    write_documentation()?;
    for name in CRATES {
        let (path, now) = (list(name), surface(name)?);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
        }
        fs::write(&path, &now).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}: {} lines", path.display(), now.lines().count());
    }
    Ok(())
}

fn list(name: &str) -> PathBuf {
    workspace::root().join("docs/public").join(format!("{name}.txt"))
}

/// One line for each public item, and for each public part of one.
fn surface(name: &str) -> Result<String> {
    let directory = workspace::target("doc").join(name.replace('-', "_"));
    let index = read(&directory.join("all.html"))?;
    let mut lines = BTreeSet::new();
    for link in between(&index, "<li><a href=\"", "\"") {
        let Some((kind, item)) = kind_and_name(link) else { continue };
        lines.insert(format!("{item}: {kind}"));
        let page = read(&directory.join(link))?;
        let own = page.split(TRAITS).next().unwrap_or_default();
        for part in PARTS {
            for anchor in between(own, &format!("id=\"{part}."), "\"") {
                // Fields of variants repeat the name of the variant.
                lines.insert(format!("{item}::{}: {part}", anchor.replace('.', "::")));
            }
        }
    }
    if lines.is_empty() {
        bail!("{} lists nothing", directory.display());
    }
    Ok(lines.into_iter().fold(String::new(), |text, line| text + &line + "\n"))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// "ops/fn.create.html" is the function `ops::create`.
fn kind_and_name(link: &str) -> Option<(&str, String)> {
    let (path, file) = link.rsplit_once('/').map_or(("", link), |(path, file)| (path, file));
    let (kind, name) = file.strip_suffix(".html")?.split_once('.')?;
    let separator = if path.is_empty() { "" } else { "::" };
    Some((kind, format!("{}{separator}{name}", path.replace('/', "::"))))
}

/// The texts between `start` and the next `end`.
fn between<'t>(text: &'t str, start: &str, end: &'t str) -> impl Iterator<Item = &'t str> {
    let parts = text.split(start).skip(1).collect::<Vec<_>>();
    parts.into_iter().filter_map(move |part| part.split(end).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_name_items() {
        let named = |link| kind_and_name(link).map(|(kind, name)| format!("{name}: {kind}"));
        assert_eq!(named("struct.Volume.html").unwrap(), "Volume: struct");
        assert_eq!(named("ops/fn.create.html").unwrap(), "ops::create: fn");
        assert_eq!(named("index.html"), None);
        let anchors: Vec<_> =
            between("<a id=\"method.x\"> id=\"method.y\"", "id=\"method.", "\"").collect();
        assert_eq!(anchors, ["x", "y"]);
    }
}
