//! A volume that commands work on: one command on the line, or many in a shell.

use crate::failure::{AtPath, Usage};
use anyhow::{Context, Result, anyhow, bail};
use futures_executor::block_on;
use futures_util::future::join_all;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use undercroft_fs::{AccessTimes, Clock, FileSystem};
use undercroft_xfs::format::{DeviceNumber, FileType, Timestamp};
use undercroft_xfs::inode::Inode;
use undercroft_xfs::ops::{self, NewInode, Times, path_text};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, ErrorKind, OpenFile, Volume};

/// Bytes of files that are on their way before they are asked for, at most.
const AHEAD_BYTES: u64 = 16 << 20;

/// An open volume, and the clock for changes of it.
pub(crate) struct Session<'v> {
    /// The volume.
    pub(crate) volume: &'v Arc<Volume>,
    /// The same, as programs see it. Looking at something for a command is no access.
    pub(crate) fs: FileSystem,
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

    /// The inode at a path.
    pub(crate) fn find(&self, path: &OsStr) -> Result<InodeNumber> {
        ops::resolve(self.volume, path.as_bytes()).map_err(|error| at_path(error, path))
    }

    /// The inode at a path.
    pub(crate) fn inode(&self, path: &OsStr) -> Result<Arc<Inode>> {
        self.volume.inode(self.find(path)?).map_err(|error| at_path(error, path))
    }

    /// The file at a path, open.
    pub(crate) fn open(&self, path: &OsStr) -> Result<OpenFile> {
        open(self.volume, path).map_err(|error| at_path(error, path))
    }

    /// The files at these paths, open. They are looked for all together, and the first bytes of them
    /// are on their way then.
    pub(crate) fn open_all(&self, paths: &[OsString]) -> Vec<Result<OpenFile>> {
        if let [path] = paths {
            return vec![self.open(path)];
        }
        let found = paths.iter().map(|path| self.volume.awaited(move |volume| open(volume, path)));
        let found: Vec<_> = block_on(join_all(found));
        let mut left = AHEAD_BYTES;
        let reads = found.iter().flatten().map_while(|file| {
            let bytes = file.size().min(left).min(AHEAD_BYTES / 4);
            left -= bytes;
            (left > 0).then_some((file, 0..bytes))
        });
        OpenFile::will_need_all(reads);
        let found = paths.iter().zip(found);
        found.map(|(path, file)| file.map_err(|error| at_path(error, path))).collect()
    }

    /// The inode at a path, `None` if its last name does not exist.
    pub(crate) fn find_if_there(&self, path: &OsStr) -> Result<Option<InodeNumber>> {
        if path.as_bytes().iter().all(|byte| *byte == b'/') {
            return Ok(Some(self.volume.geometry().root_inode));
        }
        let place = self.place(path)?;
        let parent = self.volume.inode(place.parent)?;
        let found = ops::lookup_in_use(self.volume, &parent.read(), place.name);
        Ok(found.map_err(|error| renamed(error, path))?)
    }

    /// The type of file of an inode.
    pub(crate) fn kind(&self, number: InodeNumber) -> Result<FileType> {
        // Its number was read from the volume.
        Ok(self.volume.inode(number).map_err(Error::into_damage)?.read().file_type())
    }

    /// The directory that the last name of a path is in, and that name.
    pub(crate) fn place<'p>(&self, path: &'p OsStr) -> Result<ops::Name<'p>> {
        let bytes = path.as_bytes();
        let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
        let start = bytes[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let name = &bytes[start..end];
        match name {
            b"" => bail!("{}: the root directory has no other name", path_text(bytes)),
            b"." | b".." => bail!("{}: name the directory itself", path_text(bytes)),
            _ => {}
        }
        let parent = ops::resolve(self.volume, &bytes[..start])?;
        Ok(ops::Name { parent, name })
    }

    /// `path`, or the name of `source` below it if `path` is a directory, as `cp` and `mv` take it.
    pub(crate) fn destination(&self, path: &OsStr, source: &OsStr) -> Result<OsString> {
        let directory = match self.find_if_there(path)? {
            Some(number) => self.kind(number)? == FileType::Directory,
            None => false,
        };
        if !directory {
            return Ok(path.to_owned());
        }
        let name = std::path::Path::new(source)
            .file_name()
            .with_context(|| format!("{}: say under which name", path_text(source.as_bytes())))?;
        Ok(std::path::Path::new(path).join(name).into_os_string())
    }

    /// A new inode of the present.
    pub(crate) fn new_inode(
        &self,
        kind: FileType,
        mode: u16,
        (uid, gid): (u32, u32),
    ) -> NewInode<'static> {
        let now = self.now();
        NewInode {
            mode: kind.mode_bits() | mode,
            uid,
            gid,
            times: Times { access: now, modification: now, change: now, creation: now },
            device: DeviceNumber::default(),
            target: &[],
        }
    }

    /// As [`place`](Self::place), for something of the kind `kind`: only directories can have a name
    /// with slashes behind it.
    pub(crate) fn place_for<'p>(&self, path: &'p OsStr, kind: FileType) -> Result<ops::Name<'p>> {
        if kind != FileType::Directory && path.as_bytes().ends_with(b"/") {
            let (path, kind) = (path_text(path.as_bytes()), ErrorKind::NotDirectory);
            return Err(Error::WrongKind { path, what: "not a directory", kind }.into());
        }
        self.place(path)
    }

    /// Creates an inode at a path.
    pub(crate) fn make(&self, path: &OsStr, new: &NewInode<'_>) -> Result<InodeNumber> {
        let place =
            self.place_for(path, FileType::from_mode(new.mode).unwrap_or(FileType::Regular))?;
        let made = ops::make(self.volume, place.parent, place.name, new);
        Ok(made.map_err(|error| renamed(error, path))?)
    }

    /// Calls `visit` with an inode, and with `recursive` for everything below a directory,
    /// directories before their contents.
    pub(crate) fn walk(
        &self,
        path: &OsStr,
        recursive: bool,
        visit: &mut dyn FnMut(&[u8], InodeNumber) -> Result<()>,
    ) -> Result<()> {
        let mut waiting = vec![(path.as_bytes().to_vec(), self.find(path)?)];
        while let Some((path, number)) = waiting.pop() {
            let is_directory = self.kind(number)? == FileType::Directory;
            visit(&path, number)?;
            if recursive && is_directory {
                let names = self.names(number)?;
                waiting.extend(
                    names
                        .into_iter()
                        .rev()
                        .map(|(name, child)| ([&path, &b"/"[..], &name].concat(), child)),
                );
            }
        }
        Ok(())
    }

    /// The names in a directory, sorted.
    pub(crate) fn names(&self, number: InodeNumber) -> Result<Vec<(Vec<u8>, InodeNumber)>> {
        let mut names = Vec::new();
        let inode = self.volume.inode(number)?;
        ops::entries(self.volume, &inode.read(), ops::Position::START, |entry| {
            names.push((entry.name.to_vec(), entry.inode));
            true
        })?;
        names.sort_unstable();
        Ok(names)
    }
}

fn open(volume: &Arc<Volume>, path: &OsStr) -> Result<OpenFile, Error> {
    let number = ops::resolve(volume, path.as_bytes())?;
    OpenFile::open(volume, number).map_err(|error| renamed(error, path))
}

/// An error with the path that was given, if it is of damage, which has a place but no path.
fn at_path(error: Error, path: &OsStr) -> anyhow::Error {
    let is_damage = error.is_damage();
    let error = anyhow!(error);
    if is_damage { error.context(AtPath(path_text(path.as_bytes()))) } else { error }
}

/// An error about a name or an inode, as one about the path that was given.
pub(crate) fn renamed(error: Error, path: &OsStr) -> Error {
    let path = path_text(path.as_bytes());
    match error {
        Error::NotFound(_) => Error::NotFound(path),
        Error::Exists(_) => Error::Exists(path),
        Error::NotEmpty(_) => Error::NotEmpty(path),
        Error::WrongKind { what, kind, .. } => Error::WrongKind { path, what, kind },
        Error::Invalid(what) => Error::Invalid(format!("{path}: {what}")),
        Error::NotPermitted(what) => Error::NotPermitted(format!("{path}: {what}")),
        Error::NotSupported(what) => Error::NotSupported(format!("{path}: {what}")),
        Error::CrossDevice(what) => Error::CrossDevice(format!("{path}: {what}")),
        Error::TooManyLinks(what) => Error::TooManyLinks(format!("{path}: {what}")),
        Error::TooLarge(what) => Error::TooLarge(format!("{path}: {what}")),
        Error::NameTooLong(what) => Error::NameTooLong(format!("{path}: {what}")),
        Error::AttributeNameTooLong(what) => Error::AttributeNameTooLong(format!("{path}: {what}")),
        Error::AttributeTooLarge(what) => Error::AttributeTooLarge(format!("{path}: {what}")),
        Error::Full(what) => Error::Full(format!("{path}: {what}")),
        other => other,
    }
}
