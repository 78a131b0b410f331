//! From paths to inodes.
//!
//! The way is kept as a list of directories, each held by its inode and not by its number: a name
//! is looked up in that directory, even if another has its number by then. `..` goes back on this
//! list, so a damaged directory leads no path astray.

use crate::FileSystem;
use crate::names::NewFile;
use std::sync::Arc;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::{Error, ops};

/// Symbolic links that one path may lead through, as in Linux.
const LINKS_MAX: usize = 40;

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
    /// Directories that are missing are made like this.
    make: Option<&'n NewFile>,
}

impl<'n> Follow<'n> {
    pub(super) const ALL: Self = Self { last: Last::Always, make: None };
    pub(super) const BUT_LAST: Self = Self { last: Last::BeforeSlash, make: None };
    /// To the last name itself.
    pub(super) const NAME: Self = Self { last: Last::Never, make: None };

    /// Directories that are missing are made like `new`.
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
}

impl Located {
    /// The path without links and dots.
    pub(super) fn canonical(&self) -> Vec<u8> {
        let mut path = Vec::new();
        let names = self.way.iter().map(|(name, _)| name);
        for name in names.chain(self.place.as_ref().map(|(_, name)| name)) {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() { b"/".to_vec() } else { path }
    }
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
}

impl FileSystem {
    /// Follows a path.
    pub(super) fn locate(&self, path: &[u8], follow: Follow<'_>) -> Result<Located, Error> {
        if path.is_empty() {
            return Err(Error::NotFound("the empty path".into()));
        }
        let resolver = Resolver {
            fs: self,
            follow,
            root: self.volume().inode(self.root())?,
            way: Vec::new(),
            texts: vec![(path.to_vec(), 0)],
            links: 0,
        };
        resolver.run()
    }

    /// The inode that a path leads to, links followed; it must exist.
    pub(super) fn find(&self, path: &[u8], follow: Follow<'_>) -> Result<Arc<Inode>, Error> {
        Ok(self.locate_existing(path, follow)?.0)
    }

    /// Follows a path to an inode that must exist.
    pub(super) fn locate_existing(
        &self,
        path: &[u8],
        follow: Follow<'_>,
    ) -> Result<(Arc<Inode>, Located), Error> {
        let mut located = self.locate(path, follow)?;
        let inode = located.inode.take().ok_or_else(|| Error::NotFound(ops::path_text(path)))?;
        if located.is_directory {
            self.child(&inode, b".")?;
        }
        Ok((inode, located))
    }
}

impl Resolver<'_> {
    fn run(mut self) -> Result<Located, Error> {
        while let Some(name) = self.next_part() {
            if matches!(&name[..], b"." | b"..") {
                // Also behind something that is no directory, which is an error then.
                self.fs.child(self.here(), b".")?;
                if name == b".." {
                    self.way.pop();
                }
                continue;
            }
            let (is_last, is_directory) = self.rest();
            let Some(inode) = self.child(&name)? else {
                if !is_last {
                    return Err(Error::NotFound(ops::path_text(&name)));
                }
                return Ok(self.end(name, None, is_directory));
            };
            let kind = inode.read().file_type();
            let follows = match self.follow.last {
                Last::Always => true,
                Last::BeforeSlash => !is_last || is_directory,
                Last::Never => !is_last,
            };
            if kind == FileType::Symlink && follows {
                self.enter_link(&inode, &name)?;
                continue;
            }
            if is_last {
                return Ok(self.end(name, Some(inode), is_directory));
            }
            self.way.push((name, inode));
        }
        let inode = Some(Arc::clone(self.here()));
        Ok(Located { inode, place: None, is_directory: true, way: self.way })
    }

    fn end(self, name: Vec<u8>, inode: Option<Arc<Inode>>, is_directory: bool) -> Located {
        let place = Some((Arc::clone(self.here()), name));
        Located { inode, place, is_directory, way: self.way }
    }

    /// The directory that the way has reached.
    fn here(&self) -> &Arc<Inode> {
        self.way.last().map_or(&self.root, |(_, inode)| inode)
    }

    /// The inode of a name in that directory.
    fn child(&self, name: &[u8]) -> Result<Option<Arc<Inode>>, Error> {
        let Some(new) = self.follow.make else { return self.fs.child(self.here(), name) };
        loop {
            if let Some(inode) = self.fs.child(self.here(), name)? {
                return Ok(Some(inode));
            }
            let directory = self.fs.open_inode(self.here())?;
            match self.fs.make_directory(directory.number(), name, new) {
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
