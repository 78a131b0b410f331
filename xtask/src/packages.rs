//! The packages that `cargo metadata` tells of.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{shell, workspace};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// `None` for those of this repository.
    pub(crate) source: Option<String>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) req: String,
    pub(crate) path: Option<String>,
}

/// The packages of this repository.
pub(crate) fn own() -> Result<Vec<Package>> {
    told(&["--no-deps"])
}

/// All packages, with those of others, as they are locked; `arguments` narrow them.
pub(crate) fn all(arguments: &[&str]) -> Result<Vec<Package>> {
    told(&[&["--locked", "--all-features"], arguments].concat())
}

fn told(arguments: &[&str]) -> Result<Vec<Package>> {
    let mut command = workspace::cargo();
    command.args(["metadata", "--format-version", "1"]).args(arguments);
    let metadata: Metadata = serde_json::from_str(&shell::output(&mut command)?)
        .context("cannot read what `cargo metadata` says")?;
    Ok(metadata.packages)
}
