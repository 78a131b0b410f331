//! The walk: which entries there are, in their order, without looking at files.
//!
//! Depth first, names in a directory sorted by bytes, a directory before its contents.

use super::listing::Listing;
use crate::FileError;
use crate::entry::MAX_PATH;
use crate::files::batch::{BATCH_DIRECTORIES, Batch, Batches, Work, batch_entries};
use crate::files::handle::{self, Handle};
use crate::files::links::Identity;
use crate::files::xattrs::{Target, XattrReader};
use crate::{Entry, EntryPath, Exclude, Kind, Links};
use rustix::fs::{AtFlags, FileType, statat};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Levels of the current path whose directories stay open. Those above are opened again through `..`
/// when the walk returns to them, so that depth does not use up file descriptors.
pub(super) const OPEN_LEVELS: usize = 64;
/// Bytes for one call that lists names.
const LISTING_BUFFER: usize = 64 * 1024;

/// A directory whose entries are being handed out.
struct Level {
    /// `None` while it is closed because the walk is deep below it.
    handle: Option<Arc<Handle>>,
    path: Arc<EntryPath>,
    identity: Identity,
    listing: Listing,
    next: usize,
}

/// The state of a walk.
pub(super) struct Walk {
    exclude: Exclude,
    /// From the root to the current directory.
    levels: Vec<Level>,
    /// The root before it is delivered.
    root: Option<Handle>,
    order: u64,
    failed: bool,
    xattrs: XattrReader,
    listing_buffer: Vec<MaybeUninit<u8>>,
}

impl Walk {
    pub(super) fn new(root: Handle, exclude: Exclude) -> Self {
        Self {
            exclude,
            levels: Vec::new(),
            root: Some(root),
            order: 0,
            failed: false,
            xattrs: XattrReader::new(),
            listing_buffer: vec![MaybeUninit::uninit(); LISTING_BUFFER],
        }
    }

    fn advance(&mut self) -> Result<Option<Work>, FileError> {
        if let Some(root) = self.root.take() {
            return self.enter(root).map(Some);
        }
        while let Some(level) = self.levels.last_mut() {
            let Some((name, kind)) = level.listing.get(level.next) else {
                self.leave()?;
                continue;
            };
            level.next += 1;
            if level.path.as_bytes().len() + 1 + name.len() > MAX_PATH {
                return Err(FileError::PathLength { path: (*level.path).clone() });
            }
            let path = level.path.join(name);
            let directory =
                level.handle.as_ref().expect("leave() opens the directory that becomes current");
            let kind = match kind {
                FileType::Unknown => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map(|stat| FileType::from_raw_mode(stat.st_mode))
                    .map_err(|error| FileError::read("examine", &path, error))?,
                known => known,
            };
            if self.exclude.prunes(path.as_bytes(), kind == FileType::Directory, true) {
                continue;
            }
            if kind != FileType::Directory {
                return Ok(Some(Work::Other { directory: Arc::clone(directory), path, kind }));
            }
            let child = directory.directory(name, &Arc::new(path))?;
            return self.enter(child).map(Some);
        }
        Ok(None)
    }

    /// Makes a directory the current one and describes it.
    fn enter(&mut self, handle: Handle) -> Result<Work, FileError> {
        let stat = handle.stat()?;
        let path = Arc::clone(&handle.path);
        let xattrs = self
            .xattrs
            .read(Target::File(rustix::fd::AsFd::as_fd(&handle)))
            .map_err(|error| FileError::read("read the attributes of", &path, error))?;
        let listing = Listing::read(&handle, &mut self.listing_buffer)
            .map_err(|error| FileError::read("list", &path, error))?;
        let identity = handle::identity(&stat);
        let entry = Entry {
            path: (*path).clone(),
            kind: Kind::Directory,
            metadata: handle::metadata(&stat),
            xattrs,
            links: Links::Single,
            replaces: false,
        };
        if let Some(above) = self.levels.len().checked_sub(OPEN_LEVELS) {
            self.levels[above].handle = None;
        }
        let handle = Some(Arc::new(handle));
        self.levels.push(Level { handle, path, identity, listing, next: 0 });
        Ok(Work::Entry(entry))
    }

    /// Returns from the current directory to its parent.
    fn leave(&mut self) -> Result<(), FileError> {
        let left = self.levels.pop().and_then(|level| level.handle);
        if let (Some(level), Some(left)) = (self.levels.last_mut(), left)
            && level.handle.is_none()
        {
            let handle = left.parent(&level.path)?;
            if handle::identity(&handle.stat()?) != level.identity {
                return Err(FileError::Replaced { path: (*level.path).clone() });
            }
            level.handle = Some(Arc::new(handle));
        }
        Ok(())
    }
}

impl Batches for Walk {
    fn next_batch(&mut self, with_data: bool) -> Option<Batch> {
        let mut batch = Batch { order: self.order, work: Vec::new(), error: None };
        let (mut directories, most) = (0, batch_entries(self.order, with_data));
        while !self.failed && batch.work.len() < most && directories < BATCH_DIRECTORIES {
            match self.advance() {
                Ok(Some(work)) => {
                    directories += usize::from(matches!(work, Work::Entry(_)));
                    batch.work.push(work);
                }
                Ok(None) => break,
                Err(error) => {
                    self.failed = true;
                    batch.error = Some(error.into());
                }
            }
        }
        self.order += batch.work.len() as u64;
        (!batch.work.is_empty() || batch.error.is_some()).then_some(batch)
    }
}
