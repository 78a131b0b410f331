//! A volume that commands work on: one command on the line, or many in a shell.

mod paths;
mod pattern;

use crate::failure::Usage;
use anyhow::{Context, Result};
use futures_executor::block_on;
use futures_util::future::join_all;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_fs::{AccessTimes, Clock, Error, ErrorKind, File, FileSystem, Metadata, PathError};
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::ops::path_text;
use undercroft_xfs::{OpenFile, Volume};

/// Bytes of files that are on their way before they are asked for, at most.
const AHEAD_BYTES: u64 = 16 << 20;

/// An open volume, and the clock for changes of it.
pub(crate) struct Session<'v> {
    /// The volume.
    pub(crate) volume: &'v Arc<Volume>,
    /// The same, as programs see it. Looking at something for a command is no access.
    pub(crate) fs: FileSystem,
}

/// What a symbolic link at the end of a path stands for. Links before it are always followed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct LastLink {
    /// A symbolic link at the end of a path is meant itself, not what it leads to.
    #[arg(long, visible_alias = "no-dereference")]
    pub(crate) no_follow: bool,
}

impl<'v> Session<'v> {
    /// A session whose present is that of the machine, or `SOURCE_DATE_EPOCH` in the environment.
    pub(crate) fn new(volume: &'v Arc<Volume>) -> Result<Self> {
        let clock = match std::env::var_os("SOURCE_DATE_EPOCH") {
            None => Clock::System,
            Some(text) => {
                let seconds = text.to_str().and_then(|text| text.parse().ok());
                let wrong = || Usage("SOURCE_DATE_EPOCH is not a number of seconds".to_owned());
                let seconds = seconds.ok_or_else(wrong)?;
                Clock::Fixed(Timestamp { seconds, nanoseconds: 0 })
            }
        };
        let fs = FileSystem::from_volume(Arc::clone(volume))
            .with_clock(clock)
            .with_access_times(AccessTimes::Never);
        Ok(Self { volume, fs })
    }

    /// The present.
    pub(crate) fn now(&self) -> Timestamp {
        self.fs.now()
    }

    /// The file at a path, open.
    pub(crate) fn open(&self, path: &OsStr, last: LastLink) -> Result<File, PathError> {
        open(&self.fs, path, last)
    }

    /// The files at these paths, open. They are looked for all together, and the first bytes of them
    /// are on their way then.
    pub(crate) fn open_all(
        &self,
        paths: &[OsString],
        last: LastLink,
    ) -> Vec<Result<File, PathError>> {
        if let [path] = paths {
            return vec![self.open(path, last)];
        }
        let found = paths.iter().map(|path| self.fs.awaited(move |fs| open(fs, path, last)));
        let found: Vec<_> = block_on(join_all(found));
        let mut left = AHEAD_BYTES;
        let reads = found.iter().flatten().map_while(|file| {
            let bytes = file.size().min(left).min(AHEAD_BYTES / 4);
            left -= bytes;
            (left > 0).then_some((file.open_file(), 0..bytes))
        });
        OpenFile::will_need_all(reads);
        found
    }

    /// `path`, or the name of `source` below it if `path` leads to a directory, as `cp` and `mv`
    /// take it.
    pub(crate) fn destination(&self, path: &OsStr, source: &OsStr) -> Result<OsString> {
        match self.fs.metadata(path) {
            Ok(found) if found.is_dir() => {}
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => return Ok(path.to_owned()),
        }
        let name = Path::new(source)
            .file_name()
            .with_context(|| format!("{}: say under which name", path_text(source.as_bytes())))?;
        Ok(Path::new(path).join(name).into_os_string())
    }

    /// Calls `visit` for the file at a path, and with `recursive` for everything below a directory,
    /// directories before their contents. Links below are not followed.
    pub(crate) fn walk(
        &self,
        path: &OsStr,
        last: LastLink,
        recursive: bool,
        visit: &mut dyn FnMut(&Metadata) -> Result<(), Error>,
    ) -> Result<(), PathError> {
        let top = self.open(path, last)?.metadata();
        if !recursive || !top.is_dir() {
            return visit(&top).map_err(|error| PathError::new(path, error));
        }
        for entry in self.fs.walk(path)? {
            let entry = entry?;
            visit(entry.metadata()).map_err(|error| PathError::new(entry.path(), error))?;
        }
        Ok(())
    }
}

fn open(fs: &FileSystem, path: &OsStr, last: LastLink) -> Result<File, PathError> {
    if last.no_follow { fs.open_no_follow(path) } else { fs.open_file(path) }
}
