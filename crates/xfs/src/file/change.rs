//! Changes of the data of an open file that work on the device: written past memory, cut,
//! allocated. All are as durable as commits: a ticket drawn afterwards covers them. With no time for
//! `now`, the times of the file stay: a cache above sets those that it has shown.

use super::OpenFile;
use super::buffered_write::Place;
use super::edit::{FileEdit, Size};
use super::space::with_gathered;
use crate::error::Error;
use crate::format::Timestamp;
use std::ops::Range;
use std::sync::Arc;

impl OpenFile {
    /// Writes the bytes of `memory` in `range` at `offset` past memory, at the time `now`: returns
    /// when they are on their way to the device and mapped. The file grows if it ends before.
    ///
    /// # Errors
    /// The file would be larger than the format allows; it is no regular file; no space; the device
    /// failed.
    pub fn write_direct(
        &self,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.write_past_memory(Place::At(offset), memory, range, now).map(drop)
    }

    /// As [`write_direct`](Self::write_direct), at any place; returns where that was.
    pub(super) fn write_past_memory(
        &self,
        place: Place,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
        now: Timestamp,
    ) -> Result<u64, Error> {
        let offset = self.change(Some(now), |edit| {
            let offset = place.offset(|| edit.size());
            edit.write(offset, memory, range.clone()).map(|()| offset)
        })?;
        self.volume.files().note_growth(&self.inode);
        Ok(offset)
    }

    /// Gives the file the size `size`: data behind it is freed, new bytes read as zeros.
    ///
    /// The size is set first, then the blocks behind it are freed in steps: after a crash between
    /// them, the file has its new size and some blocks too many, which go with the file.
    ///
    /// # Errors
    /// The size is larger than the format allows; it is no regular file; no space to copy a shared
    /// last block; a damaged structure; the device failed.
    pub fn truncate(&self, size: u64, now: impl Into<Option<Timestamp>>) -> Result<(), Error> {
        self.change(now.into(), |edit| edit.truncate(size))
    }

    /// Gives every block of a range of bytes a place on the device. Bytes that were not stored read
    /// as zeros as before.
    ///
    /// # Errors
    /// The range is empty or ends behind what the format allows; no space, then the file is as it
    /// was; a damaged structure; the device failed.
    pub fn preallocate(
        &self,
        range: Range<u64>,
        size: Size,
        now: impl Into<Option<Timestamp>>,
    ) -> Result<(), Error> {
        self.change(now.into(), |edit| edit.preallocate(range.clone(), size))
    }

    /// Frees the blocks of a range of bytes, and zeroes the rest of it in blocks at its ends. The
    /// size stays.
    ///
    /// # Errors
    /// The range is empty; no space to split an extent or to copy a shared block; a damaged
    /// structure; the device failed.
    pub fn punch(&self, range: Range<u64>, now: impl Into<Option<Timestamp>>) -> Result<(), Error> {
        self.change(now.into(), |edit| edit.punch(range.clone()))
    }

    /// Makes a range of bytes read as zeros, with a place on the device for every block of it.
    ///
    /// # Errors
    /// As for [`preallocate`](Self::preallocate) and [`punch`](Self::punch).
    pub fn zero(
        &self,
        range: Range<u64>,
        size: Size,
        now: impl Into<Option<Timestamp>>,
    ) -> Result<(), Error> {
        self.change(now.into(), |edit| edit.zero(range.clone(), size))
    }

    /// Gives the file blocks of its own wherever others have those of a range of bytes, too.
    ///
    /// # Errors
    /// The range is empty; no space; a damaged structure; the device failed.
    pub fn unshare(
        &self,
        range: Range<u64>,
        now: impl Into<Option<Timestamp>>,
    ) -> Result<(), Error> {
        self.change(now.into(), |edit| edit.unshare(range.clone()))
    }

    /// Takes a range of whole blocks out of the file: the data behind it moves to its place.
    ///
    /// # Errors
    /// The range is empty, not of whole blocks, or reaches the end of the file; as for
    /// [`punch`](Self::punch).
    pub fn collapse(
        &self,
        range: Range<u64>,
        now: impl Into<Option<Timestamp>>,
    ) -> Result<(), Error> {
        self.change(now.into(), |edit| edit.collapse(range.clone()))
    }

    /// Puts a hole of whole blocks into the file: data there moves behind it.
    ///
    /// # Errors
    /// The range is empty, not of whole blocks, or starts behind the file; the file would be larger
    /// than the format allows; as for [`punch`](Self::punch).
    pub fn insert(
        &self,
        range: Range<u64>,
        now: impl Into<Option<Timestamp>>,
    ) -> Result<(), Error> {
        self.change(now.into(), |edit| edit.insert(range.clone()))
    }

    /// Frees blocks taken behind the end of the file for writes to come, unless they were
    /// [preallocated](Self::preallocate). The last opening does this when it is dropped.
    ///
    /// # Errors
    /// A damaged structure; the device failed.
    pub fn trim(&self) -> Result<(), Error> {
        super::close::trim(&self.volume, &self.inode)
    }

    /// Does a change, if need be [with gathered space](with_gathered).
    pub(super) fn change<T>(
        &self,
        now: Option<Timestamp>,
        work: impl Fn(&mut FileEdit<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        with_gathered(&self.volume, || work(&mut self.edit(now)?))
    }
}
