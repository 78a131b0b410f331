//! What no manifest names, removed.
//!
//! Names go first, then manifests, then chunks: whatever ends this early leaves no manifest that names a chunk
//! which is missing.

use crate::digest::Digest;
use crate::error::StoreError;
use crate::location::Reference;
use crate::marker::{Marker, Work};
use crate::repository::Repository;
use object_store::path::Path;
use std::collections::HashSet;
use std::time::Duration;

/// What is removed.
#[derive(Clone, Debug, Default)]
pub struct PruneOptions {
    /// Nothing is removed that is younger, by the clock of the store.
    pub grace: Duration,
    /// Names that are removed first.
    pub forget: Vec<String>,
    /// Also manifests that have no name, which may be known by their digests.
    pub unnamed: bool,
    /// Only say what would be removed.
    pub dry_run: bool,
}

/// What was removed, or would be, and what stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Manifests that stay.
    pub manifests: u64,
    /// Chunks that stay: they are named, or young.
    pub chunks: u64,
    /// Manifests removed.
    pub removed_manifests: u64,
    /// Chunks removed.
    pub removed_chunks: u64,
    /// Their bytes in the store.
    pub removed_bytes: u64,
}

/// Removes chunks that no manifest names.
///
/// # Errors
/// Something is being published there; a name, or a manifest that is to stay, cannot be read; or the store
/// does not let objects be removed.
pub fn prune(repository: &Repository, options: &PruneOptions) -> Result<Pruned, StoreError> {
    let mut marker = Marker::put(repository, Work::Pruning)?;
    let grace = i64::try_from(options.grace.as_nanos()).unwrap_or(i64::MAX);
    let limit = marker.now.saturating_sub(grace);
    let client = &repository.client;
    let named = named(repository, options)?;
    let mut pruned = Pruned::default();
    let mut wanted = HashSet::new();
    for (path, version) in client.list(&repository.path(&["manifests"]))? {
        marker.keep()?;
        let Some(digest) = path.filename().and_then(Digest::from_hex) else { continue };
        if options.unnamed && !named.contains(&digest) && version.modified <= limit {
            remove(repository, &path, options)?;
            pruned.removed_manifests += 1;
            continue;
        }
        let manifest = repository.manifest(&digest)?;
        wanted.extend(manifest.chunks().iter().map(|(_, digest)| *digest));
        pruned.manifests += 1;
    }
    for (path, version) in client.list(&repository.path(&["chunks"]))? {
        marker.keep()?;
        let Some(digest) = path.filename().and_then(Digest::from_hex) else { continue };
        if wanted.contains(&digest) || version.modified > limit {
            pruned.chunks += 1;
            continue;
        }
        remove(repository, &path, options)?;
        pruned.removed_chunks += 1;
        pruned.removed_bytes += version.bytes;
    }
    Ok(pruned)
}

/// The manifests that have names, once those are gone that are to be forgotten.
fn named(repository: &Repository, options: &PruneOptions) -> Result<HashSet<Digest>, StoreError> {
    for name in &options.forget {
        // One that is not there is a mistake.
        repository.resolve(&Reference::Name(name.clone()))?;
    }
    let mut named = HashSet::new();
    for name in repository.names()? {
        if options.forget.contains(&name) {
            remove(repository, &repository.name_path(&name), options)?;
        } else {
            named.insert(repository.resolve(&Reference::Name(name))?);
        }
    }
    Ok(named)
}

fn remove(repository: &Repository, path: &Path, options: &PruneOptions) -> Result<(), StoreError> {
    if options.dry_run { Ok(()) } else { repository.client.delete(path) }
}
