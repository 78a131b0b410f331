//! `cargo xtask book`: the documents of the repository as a book, and the check that all of it leads
//! somewhere.
//!
//! The book has the documents where the repository has them, so that their links to each other and to
//! sources lead to the same places. What is made, and not written, is the reference: the text of `--help`.

mod links;
mod pictures;
mod reference;
mod sources;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use undercroft_judges::cache;

use crate::{shell, system, workspace};
use sources::Sources;

/// Makes the book and checks it; returns its first page.
pub(crate) fn make() -> Result<PathBuf> {
    system::install_crates(system::CRATES_FOR_BOOK)?;
    pictures::check(workspace::root())?;
    let directory = workspace::target("book");
    let mut sources = Sources::read(workspace::root())?;
    sources.add_reference(reference::pages()?);
    sources.write(workspace::root(), &directory)?;
    let mut mdbook = Command::new(cache::programs().join("bin/mdbook"));
    mdbook.arg("build").arg(&directory);
    let output =
        mdbook.output().with_context(|| format!("cannot start `{}`", shell::line(&mdbook)))?;
    let said = String::from_utf8_lossy(&output.stderr);
    // It goes on without files that are to be included.
    let has_faults = said.lines().any(|line| line.contains("ERROR") || line.contains("WARN"));
    let line = shell::line(&mdbook);
    ensure!(output.status.success() && !has_faults, "`{line}` ({}):\n{said}", output.status);
    let html = directory.join("html");
    links::check(&html)?;
    Ok(html.join("index.html"))
}
