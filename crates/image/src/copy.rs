//! A tree copied into a volume that exists, through its journal.
//!
//! The source is looked through before anything changes: names that are there, and a volume that is
//! too small, change nothing. Each entry is a few transactions. The whole is none: what fails on the
//! way, or a crash, leaves a sound volume with a part of the tree.

use crate::entry_writer::{EntryWriter, Fault, free_bytes};
use crate::pack::file_type;
use std::path::Path;
use thiserror::Error;
use undercroft_fs::{ErrorKind, FileSystem, NewFile, Owner, PathError};
use undercroft_source::{Entry, EntryPath, Kind, Source, SourceError, Warnings};
use undercroft_xfs::Error as VolumeError;
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::is_property;
use undercroft_xfs::units::InodeNumber;

/// Why a tree could not be copied.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file of the tree has the name of one that is there.
    #[error("{path} exists; nothing was changed")]
    Exists {
        /// Its path in the tree, escaped.
        path: String,
    },
    /// A directory would take the place of another file, or the other way round.
    #[error("{path} is {there} in the volume, and {here} in the tree; nothing was changed")]
    Kind {
        /// Its path in the tree, escaped.
        path: String,
        /// What it is in the volume.
        there: &'static str,
        /// What it is in the tree.
        here: &'static str,
    },
    /// The volume does not have the space.
    #[error(
        "the tree has {needed} bytes of data, the volume has {free} bytes free; nothing was changed"
    )]
    NoRoom {
        /// Bytes of data in the tree.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// An entry cannot be stored. Those before it are on the volume.
    #[error("cannot store {path}; the volume holds a part of the tree")]
    Entry {
        /// Its path in the tree, escaped.
        path: String,
        /// Why not.
        source: VolumeError,
    },
    /// There is no such place.
    #[error(transparent)]
    Place(#[from] PathError),
    /// The volume cannot be read.
    #[error("cannot read the volume")]
    Volume(#[source] VolumeError),
}

/// How a tree is copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyOptions {
    /// Files take the place of those that have their names.
    pub force: bool,
    /// Whose everything is; by default as in the source.
    pub owner: Option<Owner>,
}

/// What was copied.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CopySummary {
    /// Entries, the directory on top among them.
    pub entries: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// The warnings of the source.
    pub warnings: Warnings,
}

/// Copies a tree to a path of a volume that is open for change: the directory there, which is made if it is
/// missing, is the top of the tree, and gets its attributes. Directories that are there keep what is in
/// them. `progress` gets entries and bytes so far.
///
/// # Errors
/// See [`CopyError`].
pub fn copy(
    fs: &FileSystem,
    path: &Path,
    source: &mut dyn Source,
    options: CopyOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CopySummary, CopyError> {
    let there = match fs.metadata(path) {
        Ok(found) if !found.is_dir() => {
            return Err(mixed(&EntryPath::root(), found.kind, FileType::Directory));
        }
        Ok(found) => Some(EntryWriter::new(fs, found.number, path.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    check(fs, there.as_ref(), source, options)?;
    let mut writer = match there {
        Some(writer) => writer,
        None => EntryWriter::new(fs, make_top(fs, path)?, path.into()),
    };
    let mut entries = 0;
    while let Some(mut entry) = source.next_entry()? {
        if let Some(Owner { uid, gid }) = options.owner {
            (entry.metadata.uid, entry.metadata.gid) = (uid, gid);
        }
        if entry.path.is_root() {
            // The root directory of a volume may have properties of that, which another has for itself.
            entry.xattrs.retain(|xattr| !is_property(&xattr.name));
        }
        store(&mut writer, source, &entry).map_err(|fault| match fault {
            Fault::Source(error) => CopyError::Source(error),
            Fault::Volume(error) => at(&entry.path, error),
        })?;
        entries += 1;
        progress(entries, writer.bytes);
    }
    writer.set_times().map_err(|(path, error)| at(&path, error))?;
    Ok(CopySummary { entries, bytes: writer.bytes, warnings: source.warnings() })
}

fn at(path: &EntryPath, source: VolumeError) -> CopyError {
    CopyError::Entry { path: path.to_string(), source }
}

fn mixed(path: &EntryPath, there: FileType, here: FileType) -> CopyError {
    let name = |kind| if kind == FileType::Directory { "a directory" } else { "another file" };
    CopyError::Kind { path: path.to_string(), there: name(there), here: name(here) }
}

/// Makes the directory on top, whose attributes come with its entry.
fn make_top(fs: &FileSystem, path: &Path) -> Result<InodeNumber, PathError> {
    /// Of a directory that the source says nothing of.
    const MODE: u16 = 0o755;
    let place = fs.place(path)?;
    let made = fs.nodes().mkdir(place.directory().number(), place.name(), &NewFile::new(MODE));
    Ok(made.map_err(|error| place.failed(error))?.number)
}

/// Finds what speaks against the tree before anything is changed: reads all of it but the data.
fn check(
    fs: &FileSystem,
    there: Option<&EntryWriter<'_>>,
    source: &mut dyn Source,
    options: CopyOptions,
) -> Result<(), CopyError> {
    let (mut needed, mut first) = (0_u64, None);
    source.scan(&mut |entry| {
        if let Kind::Regular { data, .. } = &entry.kind {
            needed = data.iter().fold(needed, |sum, range| sum.saturating_add(range.length));
        }
        if let (Some(there), None) = (there, &first) {
            first = refusal(there, entry, options).err();
        }
    })?;
    if let Some(error) = first {
        return Err(error);
    }
    let free = free_bytes(fs).map_err(CopyError::Volume)?;
    if needed > free {
        return Err(CopyError::NoRoom { needed, free });
    }
    Ok(())
}

/// Refuses an entry whose name has another file.
fn refusal(there: &EntryWriter<'_>, entry: &Entry, options: CopyOptions) -> Result<(), CopyError> {
    let Some((_, found)) = there.find(&entry.path).map_err(CopyError::Volume)? else {
        return Ok(());
    };
    let kind = file_type(&entry.kind);
    let is_directory = |kind| kind == FileType::Directory;
    if is_directory(found) != is_directory(kind) {
        return Err(mixed(&entry.path, found, kind));
    }
    if is_directory(found) || options.force {
        return Ok(());
    }
    Err(CopyError::Exists { path: entry.path.to_string() })
}

/// Stores one entry.
fn store(
    writer: &mut EntryWriter<'_>,
    source: &mut dyn Source,
    entry: &Entry,
) -> Result<(), Fault> {
    match &entry.kind {
        Kind::HardLink(target) => Ok(writer.link(&entry.path, target)?),
        Kind::Directory => match writer.find(&entry.path)? {
            Some((number, _)) => Ok(writer.set_metadata(number, entry)?),
            None => writer.replace(entry, &mut || Ok(None)),
        },
        _ => writer.replace(entry, &mut || source.next_data()),
    }
}
