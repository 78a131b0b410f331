//! Entries of which a part is said: the rest comes from a file.

use super::super::handle::{self, Handle};
use super::super::partial_entry::{Check, PartialEntry, Place};
use super::super::xattrs::Target;
use super::{Pending, Reader, Sink, Stop, maybe_sparse, ranges, whole};
use crate::FileError;
use crate::pool::BUFFER_SIZE;
use crate::{DataRange, Kind};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use rustix::io::{Errno, pread, retry_on_intr};
use std::sync::Arc;

impl<S: Sink> Reader<'_, S> {
    pub(super) fn read_partial(&mut self, partial: PartialEntry) -> Result<(), Stop> {
        match (&partial.entry.kind, &partial.place) {
            (Kind::Regular { .. }, Place::File(file)) => {
                let directory = Arc::clone(&file.directory);
                let name = file.name.clone();
                self.read_contents(partial, &directory, &name)
            }
            (Kind::Regular { .. }, Place::Inline(bytes)) => {
                let bytes = Arc::clone(bytes);
                self.read_inline(partial, &bytes)
            }
            (Kind::Regular { .. }, Place::Nowhere) => self.read_inline(partial, &[]),
            _ => self.read_attributes(partial),
        }
    }

    /// Takes attributes of something that is no regular file from what has its name, if anything has.
    fn read_attributes(&mut self, mut partial: PartialEntry) -> Result<(), Stop> {
        let found = match &partial.place {
            Place::File(file) => {
                match statat(&*file.directory, &*file.name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => Some(handle::metadata(&stat)),
                    Err(Errno::NOENT) => None,
                    Err(error) => return Err(partial.no_contents(error).into()),
                }
            }
            _ => None,
        };
        partial.complete(found.as_ref())?;
        self.push_entry(partial.entry, None)
    }

    fn read_inline(&mut self, mut partial: PartialEntry, bytes: &[u8]) -> Result<(), Stop> {
        let size = bytes.len() as u64;
        partial.check_size(size)?;
        partial.complete(None)?;
        partial.entry.kind = Kind::Regular { size, data: whole(size) };
        self.push_entry(partial.entry.clone(), None)?;
        if !self.wants.data {
            return Ok(());
        }
        let mut check = partial.check();
        check.update(0, bytes);
        for (piece, offset) in bytes.chunks(BUFFER_SIZE).zip((0..).step_by(BUFFER_SIZE)) {
            self.copy_piece(offset, piece)?;
        }
        Ok(partial.finish(check, size)?)
    }

    /// Takes bytes that are in memory as data.
    fn copy_piece(&mut self, offset: u64, piece: &[u8]) -> Result<(), Stop> {
        if self.filled + piece.len() > BUFFER_SIZE {
            self.flush()?;
        }
        let range = self.filled..self.filled + piece.len();
        let buffer = Arc::get_mut(&mut self.buffer).expect("a buffer is shared only by flush()");
        buffer[range.clone()].copy_from_slice(piece);
        self.filled = range.end.next_multiple_of(super::ALIGNMENT);
        self.pending.push(Pending::Data { offset, range });
        Ok(())
    }

    /// Reads a regular file whose contents are those of another file.
    fn read_contents(
        &mut self,
        mut partial: PartialEntry,
        directory: &Handle,
        name: &[u8],
    ) -> Result<(), Stop> {
        let path = partial.entry.path.clone();
        let opened = || directory.file(name);
        let file = if self.wants.data { Some(opened()) } else { None };
        let file = file.transpose().map_err(|error| partial.no_contents(error))?;
        let stat = match &file {
            Some(fd) => fstat(fd),
            None => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW),
        }
        .map_err(|error| partial.no_contents(error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(partial.no_contents(Errno::LOOP).into());
        }
        let size = stat.st_size as u64;
        partial.check_size(size)?;
        partial.complete(Some(&handle::metadata(&stat)))?;
        let target = match &file {
            Some(fd) => Target::File(fd.as_fd()),
            None => Target::Name(directory, name),
        };
        let xattrs = self
            .xattrs
            .read(target)
            .map_err(FileError::reading("read the attributes of", &path))?;
        let data = match (maybe_sparse(&stat, &xattrs), &file) {
            (false, _) => whole(size),
            (true, Some(fd)) => ranges(fd, &path, size)?,
            (true, None) => {
                let fd = opened().map_err(|error| partial.no_contents(error))?;
                ranges(&fd, &path, size)?
            }
        };
        partial.take_xattrs(xattrs);
        partial.entry.kind = Kind::Regular { size, data: data.clone() };
        self.push_entry(partial.entry.clone(), None)?;
        match file {
            Some(fd) => self.read_checked(&partial, fd, &stat, &data),
            None => Ok(()),
        }
    }

    /// Delivers the data of a file, and compares its digests.
    fn read_checked(
        &mut self,
        partial: &PartialEntry,
        fd: OwnedFd,
        stat: &Stat,
        data: &[DataRange],
    ) -> Result<(), Stop> {
        let (path, size) = (&partial.entry.path, stat.st_size as u64);
        let mut check = partial.check();
        if let Some(lending) = self.lending(stat, data) {
            if !check.is_empty() {
                self.see(&fd, partial, data, &mut check)?;
                partial.finish(check, size)?;
            }
            return self.lend(fd, path.clone(), stat, lending);
        }
        if check.is_empty() {
            return self.read_data(&fd, path, size, data, &mut |_, _| ());
        }
        let mut see = |offset, bytes: &[u8]| check.update(offset, bytes);
        self.read_data(&fd, path, size, data, &mut see)?;
        Ok(partial.finish(check, size)?)
    }

    /// Shows the data of a file that is lent to `check`.
    fn see(
        &self,
        fd: &OwnedFd,
        partial: &PartialEntry,
        ranges: &[DataRange],
        check: &mut Check,
    ) -> Result<(), Stop> {
        let path = &partial.entry.path;
        let mut look = |buffer: &mut [u8]| {
            for range in ranges {
                let mut offset = range.offset;
                while offset < range.end() {
                    let length = (range.end() - offset).min(BUFFER_SIZE as u64) as usize;
                    let count = retry_on_intr(|| pread(fd, &mut buffer[..length], offset))
                        .map_err(FileError::reading("read", path))?;
                    if count == 0 {
                        let (path, expected) = (path.clone(), range.end());
                        return Err(FileError::Shrank { path, expected, found: offset });
                    }
                    check.update(offset, &buffer[..count]);
                    offset += count as u64;
                }
            }
            Ok(())
        };
        Ok(self.pool.filled(&mut look).map(drop)?)
    }
}
