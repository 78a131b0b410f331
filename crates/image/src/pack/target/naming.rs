//! How files get their names when the image is whole: all of them, or none.
//!
//! One file gets its name in one step, also where it replaces another. Several cannot: the
//! operating system knows no such step. So steps that can fail come first, and steps done are
//! undone when a later one fails. A process that is killed between two steps leaves nothing that
//! opens as an image but is not whole. The order is:
//!
//! 1. All new files get temporary names, beside those they will have.
//! 2. Old files that are replaced are moved aside, the first one first.
//! 3. New files get their names, the first one last.
//! 4. Old files are removed.
//!
//! From the first move to the last step of 3, the first file is missing: opening the image fails
//! then, and the message says so. The old files lie beside their names as `.undercroft-*.old` until
//! step 4.

use super::file::{TargetFile, TargetKind, directory_of, temporary};
use super::link::link;
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// What could not be done with which file.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) action: &'static str,
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Failed {
    let path = path.to_owned();
    move |source| Failed { action, path, source }
}

/// Gives all `files` their names. Block devices have theirs.
pub(super) fn name_all(files: Vec<TargetFile>) -> Result<(), Failed> {
    let files: Vec<_> =
        files.into_iter().filter(|file| !matches!(file.place, TargetKind::Device(_))).collect();
    if files.is_empty() {
        return Ok(());
    }
    match <[TargetFile; 1]>::try_from(files) {
        Ok([file]) => name_one(file),
        Err(files) => name_together(files),
    }
}

/// Makes the names of `paths` durable.
pub(super) fn sync_directories(paths: &[PathBuf]) -> Result<(), Failed> {
    let mut directories: Vec<_> = paths.iter().map(|path| directory_of(path)).collect();
    directories.sort_unstable();
    directories.dedup();
    directories.into_iter().try_for_each(|directory| {
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(failed("make durable the names in", directory))
    })
}

fn name_one(file: TargetFile) -> Result<(), Failed> {
    let TargetFile { path, place, .. } = file;
    match place {
        TargetKind::Device(_) => Ok(()),
        TargetKind::Anonymous { file, replace: false } => {
            link(&file, &path).map_err(failed("name", &path))
        }
        TargetKind::Anonymous { file, replace: true } => {
            // A link cannot replace a name, a rename can.
            let temporary = temporary_link(&file, &path).map_err(failed("name", &path))?;
            temporary.persist(&path).map_err(|error| failed("replace", &path)(error.error))
        }
        TargetKind::Named { file, replace: true } => {
            file.persist(&path).map(drop).map_err(|error| failed("replace", &path)(error.error))
        }
        TargetKind::Named { file, replace: false } => file
            .persist_noclobber(&path)
            .map(drop)
            .map_err(|error| failed("name", &path)(error.error)),
    }
}

fn name_together(files: Vec<TargetFile>) -> Result<(), Failed> {
    let mut new: Vec<(TempPath, PathBuf)> = Vec::new();
    let mut replaced: Vec<PathBuf> = Vec::new();
    for TargetFile { path, place, .. } in files {
        let (temporary, replace) = match place {
            TargetKind::Device(_) => continue,
            TargetKind::Named { file, replace } => (Ok(file.into_temp_path()), replace),
            TargetKind::Anonymous { file, replace } => (temporary_link(&file, &path), replace),
        };
        let temporary = temporary.map_err(failed("name", &path))?;
        if replace {
            replaced.push(path.clone());
        }
        new.push((temporary, path));
    }
    let mut moves = Moves::default();
    for path in replaced {
        moves.aside(&path).map_err(failed("move aside", &path))?;
    }
    new.rotate_left(1);
    for (temporary, path) in &new {
        moves.make(temporary, path).map_err(failed("name", path))?;
    }
    moves.keep();
    Ok(())
}

/// Renames that are undone unless all of them are made.
#[derive(Default)]
struct Moves {
    made: Vec<(PathBuf, PathBuf)>,
    /// Where old files lie.
    old: Vec<PathBuf>,
}

impl Moves {
    /// Moves the file at `path` to a name of its own.
    fn aside(&mut self, path: &Path) -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".undercroft-").suffix(".old");
        let moved = builder.make_in(directory_of(path), |aside| rename_new(path, aside))?;
        // Not to be removed when something goes wrong.
        let aside = moved.into_temp_path().keep().map_err(|error| error.error)?;
        self.old.push(aside.clone());
        self.made.push((path.to_owned(), aside));
        Ok(())
    }

    fn make(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        rename_new(from, to)?;
        self.made.push((from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// Makes the moves final.
    fn keep(mut self) {
        self.made.clear();
        for path in &self.old {
            // The image is whole; old files that stay are not worth an error.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Moves {
    fn drop(&mut self) {
        for (from, to) in self.made.drain(..).rev() {
            // The error to report is the one that led here.
            let _ = rename_new(&to, &from);
        }
    }
}

/// Renames, but replaces nothing.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system does not know the flag; a second name replaces nothing either.
        Err(Errno::INVAL | Errno::NOSYS) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        result => Ok(result?),
    }
}

/// A temporary name beside `path` for a file without a name.
fn temporary_link(file: &File, path: &Path) -> io::Result<TempPath> {
    let named = temporary().make_in(directory_of(path), |name| link(file, name))?;
    Ok(named.into_temp_path())
}
