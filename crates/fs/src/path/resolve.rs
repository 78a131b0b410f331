//! From paths to inodes.
//!
//! The way is kept as a list of directories, each held by its inode and not by its number: a name
//! is looked up in that directory, even if another has its number by then. `..` goes back on this
//! list, so a damaged directory leads no path astray.

use crate::names::NewFile;
use crate::{FileSystem, PathError};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::{Error, ops};

/// Symbolic links that one path may lead through, as in Linux.
const LINKS_MAX: usize = 40;

/// Permissions of directories that are made on the way.
const WAY_MODE: u16 = 0o755;

/// When the last part of a path is followed if it is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Always,
    /// If slashes follow it: then the directory is meant.
    BeforeSlash,
    Never,
}

/// How a path is followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Follow<'n> {
    /// Whether it is resolved if it is a symbolic link.
    last: Last,
    /// Directories that are missing are made, the last one like this.
    make: Option<&'n NewFile>,
}

impl<'n> Follow<'n> {
    pub(super) const ALL: Self = Self { last: Last::Always, make: None };
    pub(super) const BUT_LAST: Self = Self { last: Last::BeforeSlash, make: None };
    /// To the last name itself.
    pub(super) const NAME: Self = Self { last: Last::Never, make: None };

    /// Directories that are missing are made: the last one like `new`, and those on the way so that
    /// all users can pass through.
    pub(super) const fn making(new: &'n NewFile) -> Self {
        Self { last: Last::Always, make: Some(new) }
    }
}

/// The inode that a path leads to.
#[derive(Debug)]
pub(super) struct Located {
    /// The file; `None` if only the last part does not exist.
    pub(super) inode: Option<Arc<Inode>>,
    /// The directory that the last part is in, and that part. `None` for the root, and for
    /// directories reached by `..`.
    pub(super) place: Option<(Arc<Inode>, Vec<u8>)>,
    /// Slashes follow the last part: only a directory can be meant.
    pub(super) is_directory: bool,
    /// The names on the way, without links and dots.
    way: Vec<(Vec<u8>, Arc<Inode>)>,
    /// The last symbolic link that was followed.
    link: Option<Vec<u8>>,
}

impl Located {
    /// The path without links and dots.
    pub(super) fn canonical(&self) -> Vec<u8> {
        canonical(&self.way, self.place.as_ref().map(|(_, name)| &name[..]))
    }

    /// An error about what the path leads to.
    pub(super) fn failed(&self, path: &[u8], error: Error) -> PathError {
        PathError::on_way(path, &self.canonical(), self.link.as_deref(), error)
    }
}

/// The path of a name behind those of a way.
fn canonical(way: &[(Vec<u8>, Arc<Inode>)], name: Option<&[u8]>) -> Vec<u8> {
    let mut path = Vec::new();
    for name in way.iter().map(|(name, _)| &name[..]).chain(name) {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if path.is_empty() { b"/".to_vec() } else { path }
}

/// A path that is being followed.
struct Resolver<'a> {
    fs: &'a FileSystem,
    follow: Follow<'a>,
    root: Arc<Inode>,
    way: Vec<(Vec<u8>, Arc<Inode>)>,
    /// The rest of the path, and of links on it: the last one first.
    texts: Vec<(Vec<u8>, usize)>,
    links: usize,
    /// Path of the last of them.
    link: Option<Vec<u8>>,
}

/// The end of a way.
struct End {
    /// `None` if the last name does not exist.
    inode: Option<Arc<Inode>>,
    is_directory: bool,
}

impl FileSystem {
    /// Follows a path.
    pub(super) fn locate(&self, path: &[u8], follow: Follow<'_>) -> Result<Located, PathError> {
        let failed = |error| PathError::of(path, error);
        if path.is_empty() {
            let error = Error::NotFound("the empty path".into());
            return Err(PathError::from(error));
        }
        let resolver = Resolver {
            fs: self,
            follow,
            root: self.volume().inode(self.root()).map_err(failed)?,
            way: Vec::new(),
            texts: self.texts_of(path),
            links: 0,
            link: None,
        };
        resolver.run(path)
    }

    /// The texts of a path, the last one first: its own, and in front of that the current directory, unless
    /// it starts at the root.
    fn texts_of(&self, path: &[u8]) -> Vec<(Vec<u8>, usize)> {
        let mut texts = vec![(path.to_vec(), 0)];
        let current = self.current_directory().as_os_str().as_bytes();
        if !path.starts_with(b"/") && current != b"/" {
            texts.push((current.to_vec(), 0));
        }
        texts
    }

    /// The path of a directory that a path leads to, from the root, without links and dots.
    pub(crate) fn directory_path(&self, path: &Path) -> Result<Vec<u8>, PathError> {
        let path = path.as_os_str().as_bytes();
        let (inode, located) = self.locate_existing(path, Follow::ALL)?;
        // What is no directory has no names.
        self.child(&inode, b".").map_err(|error| located.failed(path, error))?;
        Ok(located.canonical())
    }

    /// The inode that a path leads to, links followed; it must exist.
    pub(super) fn find(&self, path: &[u8], follow: Follow<'_>) -> Result<Arc<Inode>, PathError> {
        Ok(self.locate_existing(path, follow)?.0)
    }

    /// Follows a path to an inode that must exist.
    pub(super) fn locate_existing(
        &self,
        path: &[u8],
        follow: Follow<'_>,
    ) -> Result<(Arc<Inode>, Located), PathError> {
        let mut located = self.locate(path, follow)?;
        let missing = || Error::NotFound(String::new());
        let found = located.inode.take().ok_or_else(missing);
        let found = found.and_then(|inode| {
            if located.is_directory {
                self.child(&inode, b".")?;
            }
            Ok(inode)
        });
        match found {
            Ok(inode) => Ok((inode, located)),
            Err(error) => Err(located.failed(path, error)),
        }
    }
}

impl Resolver<'_> {
    /// Follows the path that was given as `path`.
    fn run(mut self, path: &[u8]) -> Result<Located, PathError> {
        while let Some(name) = self.next_part() {
            match self.step(&name) {
                Ok(None) => {}
                Ok(Some(End { inode, is_directory })) => {
                    let place = Some((Arc::clone(self.here()), name));
                    let Self { way, link, .. } = self;
                    return Ok(Located { inode, place, is_directory, way, link });
                }
                Err(error) => {
                    // What is no directory has no names.
                    let is_here = matches!(error, Error::WrongKind { .. });
                    let culprit = canonical(&self.way, (!is_here).then_some(&name[..]));
                    return Err(PathError::on_way(path, &culprit, self.link.as_deref(), error));
                }
            }
        }
        let inode = Some(Arc::clone(self.here()));
        let Self { way, link, .. } = self;
        Ok(Located { inode, place: None, is_directory: true, way, link })
    }

    /// Goes on by one name; returns what the last one stands for.
    fn step(&mut self, name: &[u8]) -> Result<Option<End>, Error> {
        if matches!(name, b"." | b"..") {
            // Also behind something that is no directory, which is an error then.
            self.fs.child(self.here(), b".")?;
            if name == b".." {
                self.way.pop();
            }
            return Ok(None);
        }
        let (is_last, is_directory) = self.rest();
        let Some(inode) = self.child(name, is_last)? else {
            let end = is_last.then_some(End { inode: None, is_directory });
            return end.map(Some).ok_or_else(|| Error::NotFound(ops::path_text(name)));
        };
        let follows = match self.follow.last {
            Last::Always => true,
            Last::BeforeSlash => !is_last || is_directory,
            Last::Never => !is_last,
        };
        let kind = inode.read().file_type();
        if kind == FileType::Symlink && follows {
            self.enter_link(&inode, name)?;
            return Ok(None);
        }
        if is_last {
            return Ok(Some(End { inode: Some(inode), is_directory }));
        }
        self.way.push((name.to_vec(), inode));
        Ok(None)
    }

    /// The directory that the way has reached.
    fn here(&self) -> &Arc<Inode> {
        self.way.last().map_or(&self.root, |(_, inode)| inode)
    }

    /// The inode of a name in that directory.
    fn child(&self, name: &[u8], is_last: bool) -> Result<Option<Arc<Inode>>, Error> {
        let Some(new) = self.follow.make else { return self.fs.child(self.here(), name) };
        loop {
            if let Some(inode) = self.fs.child(self.here(), name)? {
                return Ok(Some(inode));
            }
            let directory = self.fs.open_inode(self.here())?;
            let new = NewFile { mode: if is_last { new.mode } else { WAY_MODE }, ..*new };
            match self.fs.make_directory(directory.number(), name, &new) {
                Ok(made) => return Ok(Some(Arc::clone(made.open_file().inode()))),
                // Another thread was faster.
                Err(Error::Exists(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn enter_link(&mut self, link: &Inode, name: &[u8]) -> Result<(), Error> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Error::Loop(ops::path_text(name)));
        }
        let target = ops::read_link(self.fs.volume(), &link.read())?;
        self.link = Some(canonical(&self.way, Some(name)));
        if target.starts_with(b"/") {
            self.way.clear();
        }
        self.texts.push((target, 0));
        Ok(())
    }

    fn next_part(&mut self) -> Option<Vec<u8>> {
        while let Some((text, at)) = self.texts.last_mut() {
            let rest = &text[*at..];
            let Some(start) = rest.iter().position(|byte| *byte != b'/') else {
                self.texts.pop();
                continue;
            };
            let rest = &rest[start..];
            let len = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            *at += start + len;
            return Some(rest[..len].to_vec());
        }
        None
    }

    /// Whether no part is left, and whether slashes are: then the last part is a directory.
    fn rest(&self) -> (bool, bool) {
        let mut rests = self.texts.iter().map(|(text, at)| &text[*at..]);
        let has_slash = rests.clone().any(|rest| rest.contains(&b'/'));
        (rests.all(|rest| rest.iter().all(|byte| *byte == b'/')), has_slash)
    }
}
