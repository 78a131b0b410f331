//! One more layer on a volume that exists: through its journal, with what the layer hides taken
//! away.
//!
//! The layer is read once before anything changes, so a layer that cannot be read, or that links to
//! what is not there, changes nothing. Then what it hides goes, and its entries come in the order of
//! the archive; each is a few transactions. The whole is none: what fails on the way, or a crash,
//! leaves a sound volume with a part of the layer.

use crate::entry_writer::{EntryWriter, Fault, free_bytes};
use std::path::PathBuf;
use thiserror::Error;
use undercroft_fs::FileSystem;
use undercroft_source::oci::{LayerEntry, LayerSource, Mark};
use undercroft_source::{Entry, EntryPath, Kind, SourceError, Warnings};
use undercroft_xfs::Error as VolumeError;
use undercroft_xfs::format::FileType;

/// Why a layer could not be put on a volume.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The layer cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A hard link of the layer names a file that is not there, or that the layer hides.
    #[error("the layer has a hard link to {target}, which {reason}; nothing was changed")]
    Link {
        /// The file.
        target: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The volume does not have the space.
    #[error(
        "the layer has {needed} bytes of data, the volume has {free} bytes free; nothing was changed: make the volume larger"
    )]
    NoRoom {
        /// Bytes of data in the layer.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// An entry cannot be stored. Those before it are on the volume.
    #[error("cannot store {path}; the volume holds a part of the layer")]
    Entry {
        /// Its path, escaped.
        path: String,
        /// Why not.
        source: VolumeError,
    },
    /// The volume cannot be read.
    #[error("cannot read the volume")]
    Volume(#[source] VolumeError),
}

/// What was done.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LayerSummary {
    /// Names that the layer took away, with all that was below them.
    pub removed: u64,
    /// Entries that it brought.
    pub entries: u64,
    /// Bytes of data that it brought.
    pub bytes: u64,
    /// The warnings of the archive.
    pub warnings: Warnings,
}

/// Puts a layer on a volume that is open for change. `progress` gets entries and bytes so far.
///
/// # Errors
/// See [`LayerError`].
pub fn apply(
    fs: &FileSystem,
    layer: &mut LayerSource,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<LayerSummary, LayerError> {
    let mut writer = EntryWriter::new(fs, fs.root(), PathBuf::from("/"));
    let mut entries = 0;
    check(fs, &writer, layer)?;
    for mark in layer.marks() {
        hide(&mut writer, &mark)?;
    }
    while let Some(LayerEntry { entry, is_implicit }) = layer.next_entry()? {
        store(&mut writer, layer, &entry, is_implicit).map_err(|fault| match fault {
            Fault::Source(error) => LayerError::Source(error),
            Fault::Volume(error) => at(&entry.path, error),
        })?;
        entries += u64::from(!is_implicit);
        progress(entries, writer.bytes);
    }
    let removed = writer.removed;
    for path in layer.leftovers() {
        hide(&mut writer, &Mark::Whiteout(path.clone()))?;
    }
    writer.set_times().map_err(|(path, error)| at(&path, error))?;
    Ok(LayerSummary { removed, entries, bytes: writer.bytes, warnings: layer.warnings() })
}

fn at(path: &EntryPath, source: VolumeError) -> LayerError {
    LayerError::Entry { path: path.to_string(), source }
}

/// Finds what speaks against the layer before anything is changed.
fn check(fs: &FileSystem, writer: &EntryWriter<'_>, layer: &LayerSource) -> Result<(), LayerError> {
    for (target, is_hidden) in layer.links_below() {
        let found = writer.find(&target).map_err(LayerError::Volume)?;
        let reason = match found {
            None => "neither the layer has before it, nor the volume",
            Some(_) if is_hidden => "the layer hides",
            Some((_, FileType::Directory)) => "is a directory",
            Some(_) => continue,
        };
        return Err(LayerError::Link { target: target.to_string(), reason });
    }
    let (needed, _) = layer.content();
    let free = free_bytes(fs).map_err(LayerError::Volume)?;
    if needed > free {
        return Err(LayerError::NoRoom { needed, free });
    }
    Ok(())
}

/// Takes away what a mark hides.
fn hide(writer: &mut EntryWriter<'_>, mark: &Mark) -> Result<(), LayerError> {
    let (Mark::Whiteout(path) | Mark::Opaque(path)) = mark;
    let mut hide = || {
        let found = writer.find(path)?;
        match (mark, found) {
            (Mark::Whiteout(_), Some(_)) => writer.remove(path),
            (Mark::Opaque(_), Some((_, FileType::Directory))) => {
                writer.names(path)?.iter().try_for_each(|name| writer.remove(name))
            }
            _ => Ok(()),
        }
    };
    hide().map_err(|error| at(path, error))
}

/// Stores one entry.
fn store(
    writer: &mut EntryWriter<'_>,
    layer: &mut LayerSource,
    entry: &Entry,
    is_implicit: bool,
) -> Result<(), Fault> {
    let there = writer.find(&entry.path)?;
    match (&entry.kind, there) {
        (Kind::Directory, Some((_, FileType::Directory))) if is_implicit => Ok(()),
        (Kind::Directory, Some((number, FileType::Directory))) => {
            Ok(writer.set_metadata(number, entry)?)
        }
        (Kind::HardLink(target), _) => Ok(writer.link(&entry.path, target)?),
        _ => writer.replace(entry, &mut || layer.next_data()),
    }
}
