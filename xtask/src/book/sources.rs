//! What the book is made of: its chapters, and the files that they link to or include.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::citations;
use crate::texts;

/// The list of chapters, with paths from its own directory.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The settings of mdbook.
const SETTINGS: &str = "docs/book.toml";

/// The chapter below which the pages of the reference stand.
const REFERENCE: &str = "docs/reference.md";

/// The chapters and other files of the book, by their paths from the root of the repository.
pub(super) struct Sources {
    /// The list of chapters, with paths from the root.
    summary: String,
    pages: BTreeMap<PathBuf, String>,
    others: BTreeSet<PathBuf>,
}

impl Sources {
    /// Reads the chapters that `SUMMARY.md` lists, which are all documents below `docs` at least.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let listed = read(root, Path::new(SUMMARY))?;
        let mut sources =
            Self { summary: String::new(), pages: BTreeMap::new(), others: BTreeSet::new() };
        for line in listed.lines() {
            let line = match citations::links(line).next() {
                Some(link) => {
                    let path = citations::resolve(Path::new(SUMMARY), link);
                    let text = read(root, &path)?;
                    let line = line.replace(&format!("({link})"), &format!("({})", path.display()));
                    sources.pages.insert(path, text);
                    line
                }
                None => line.to_owned(),
            };
            sources.summary += &format!("{line}\n");
        }
        sources.find_others(root)?;
        sources.check_complete(root)?;
        Ok(sources)
    }

    /// Finds the files that are no chapters and that chapters link to, show or include.
    fn find_others(&mut self, root: &Path) -> Result<()> {
        let mut missing = String::new();
        for (page, text) in &self.pages {
            let linked = citations::prose(text).flat_map(|(_, line)| citations::links(line));
            // Neither to other sites nor to a place of the same page.
            let leaves = |target: &&str| !target.contains(':') && !target.starts_with('#');
            for target in linked.chain(included(text)).filter(leaves) {
                let path = target.split('#').next().unwrap_or_default();
                let path = citations::resolve(page, path);
                if path.as_os_str().is_empty() || self.pages.contains_key(&path) {
                    continue;
                }
                if path.extension().is_some_and(|end| end == "md") || !root.join(&path).exists() {
                    missing += &format!("\n  {}: {target}", page.display());
                } else {
                    self.others.insert(path);
                }
            }
        }
        ensure!(missing.is_empty(), "neither chapters of {SUMMARY} nor other files:{missing}");
        Ok(())
    }

    fn check_complete(&self, root: &Path) -> Result<()> {
        let mut left = Vec::new();
        texts::walk(root, &root.join("docs"), &mut |path, _| {
            let is_page = path.extension().is_some_and(|end| end == "md");
            if is_page && path != Path::new(SUMMARY) && !self.pages.contains_key(path) {
                left.push(path.display().to_string());
            }
        })?;
        ensure!(
            left.is_empty(),
            "documents that are no chapters of {SUMMARY}: {}",
            left.join(", ")
        );
        Ok(())
    }

    /// Puts pages below the chapter of the reference: titles and texts.
    pub(super) fn add_reference(&mut self, pages: Vec<(String, String)>) {
        let mut lines = String::new();
        for (name, text) in pages {
            let path = Path::new(REFERENCE).with_extension("").join(format!("{name}.md"));
            lines += &format!("  - [{name}]({})\n", path.display());
            self.pages.insert(path, text);
        }
        let chapter = format!("({REFERENCE})\n");
        self.summary = self.summary.replace(&chapter, &format!("{chapter}{lines}"));
    }

    /// Writes all of it into `directory`, as mdbook wants it, and nothing else.
    pub(super) fn write(&self, root: &Path, directory: &Path) -> Result<()> {
        if directory.exists() {
            fs::remove_dir_all(directory)
                .with_context(|| format!("cannot remove {}", directory.display()))?;
        }
        let source = directory.join("src");
        put(&directory.join("book.toml"), &read(root, Path::new(SETTINGS))?)?;
        put(&source.join("SUMMARY.md"), &self.summary)?;
        for (path, text) in &self.pages {
            put(&source.join(path), text)?;
        }
        for path in &self.others {
            copy(&root.join(path), &source.join(path))?;
        }
        Ok(())
    }
}

/// The files that a page includes.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{#include ").skip(1).filter_map(|rest| rest.split("}}").next())
}

fn read(root: &Path, path: &Path) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {}", path.display()))
}

fn put(path: &Path, text: &str) -> Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies a file, or a directory with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if !from.is_file() {
        bail!("{} is no file that a book can have", from.display());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(pages: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in pages {
            put(&root.path().join(path), text).unwrap();
        }
        root
    }

    #[test]
    fn chapters_bring_what_they_link_to() {
        let root = repository(&[
            ("docs/SUMMARY.md", "- [a](a.md)\n- [top](../TOP.md)\n"),
            (
                "docs/a.md",
                "[top](../TOP.md#x) [code](../src/b.rs) [here](#a)\n{{#include c.txt}}\n",
            ),
            ("TOP.md", "[out](https://a.b/c.md)\n"),
            ("src/b.rs", ""),
            ("docs/c.txt", ""),
        ]);
        let sources = Sources::read(root.path()).unwrap();
        assert_eq!(sources.summary, "- [a](docs/a.md)\n- [top](TOP.md)\n");
        let others: Vec<_> = sources.others.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(others, ["docs/c.txt", "src/b.rs"]);
    }

    #[test]
    fn what_is_left_out_is_named() {
        let message = |pages: &[(&str, &str)]| {
            let root = repository(pages);
            Sources::read(root.path()).err().unwrap().to_string()
        };
        let summary = ("docs/SUMMARY.md", "- [a](a.md)\n");
        assert!(message(&[summary]).contains("docs/a.md"));
        let said = message(&[summary, ("docs/a.md", "[b](b.md)\n"), ("docs/b.md", "")]);
        assert!(said.contains("docs/a.md: b.md"), "{said}");
        let said = message(&[summary, ("docs/a.md", "{{#include b.rs}}\n")]);
        assert!(said.contains("docs/a.md: b.rs"), "{said}");
        let said = message(&[summary, ("docs/a.md", ""), ("docs/x/b.md", "")]);
        assert!(said.contains("docs/x/b.md"), "{said}");
    }

    #[test]
    fn the_reference_stands_below_its_chapter() {
        let root = repository(&[
            ("docs/SUMMARY.md", "- [Commands](reference.md)\n- [a](a.md)\n"),
            ("docs/reference.md", ""),
            ("docs/a.md", ""),
        ]);
        let mut sources = Sources::read(root.path()).unwrap();
        sources.add_reference(vec![("build".to_owned(), "text".to_owned())]);
        let lines: Vec<_> = sources.summary.lines().collect();
        assert_eq!(lines[1..], ["  - [build](docs/reference/build.md)", "- [a](docs/a.md)"]);
        assert_eq!(sources.pages[Path::new("docs/reference/build.md")], "text");
    }
}
