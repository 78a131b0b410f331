//! Commands on images that are published in chunks: `publish`, `fetch`, `verify`, `prune`.

pub(super) mod fetch;
pub(super) mod prune;
pub(super) mod publish;
pub(super) mod verify;

use crate::image::CacheArgs;
use crate::stats::StatsArgs;
use anyhow::{Context, Result, anyhow};
use std::io::Write;
use std::path::Path;
use undercroft_store::{Client, Location, Reference, Repository};

/// What all of them have.
#[derive(clap::Args)]
pub(super) struct StoreArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    stats: StatsArgs,
}

impl StoreArgs {
    fn print_stats(&self, out: &mut dyn Write) -> Result<()> {
        Ok(self.stats.print_traffic(self.json, out)?)
    }
}

/// The URI of a store: as it is, or that of a directory by its path.
fn uri(text: &str) -> Result<String> {
    if text.contains("://") {
        return Ok(text.to_owned());
    }
    let (path, image) = match text.rsplit_once('@') {
        Some((path, image)) if !image.contains('/') => (path, format!("@{image}")),
        _ => (text, String::new()),
    };
    let whole = std::path::absolute(Path::new(if path.is_empty() { "." } else { path }))
        .with_context(|| format!("cannot find {path}"))?;
    let whole = whole.to_str().with_context(|| format!("{path} is not UTF-8"))?;
    Ok(format!("file://{}{image}", whole.replace('@', "%40")))
}

/// The store that a text names, and what is named of it.
fn open(text: &str) -> Result<(Repository, Option<Reference>)> {
    let location = Location::parse(&uri(text)?)?;
    let patience = CacheArgs::default().settings().patience;
    let reference = location.reference().cloned();
    Ok((Repository::new(Client::new(&location, patience)?), reference))
}

/// An image that was published; nothing else has a manifest.
fn expect_image(text: &str, reference: Option<Reference>) -> Result<Reference> {
    reference
        .ok_or_else(|| anyhow!("{text} names no image; write {text}@NAME or {text}@sha256:DIGEST"))
}
