//! The content of files, and their space.

use super::{Caller, Server};
use crate::failure::Failure;
use rustix::io::Errno;
use undercroft_block::Buffer;
use undercroft_fs::{Allocation, Error, File, InodeNumber, Writer};

const KEEP_SIZE: u32 = 0x01;
const PUNCH_HOLE: u32 = 0x02;
const COLLAPSE_RANGE: u32 = 0x08;
const ZERO_RANGE: u32 = 0x10;
const INSERT_RANGE: u32 = 0x20;
const UNSHARE_RANGE: u32 = 0x40;

/// Files end before.
pub(crate) const END: u64 = i64::MAX as u64;

/// The two kinds of places of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seek {
    Data,
    Hole,
}

/// A write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'d> {
    pub(crate) offset: u64,
    pub(crate) data: &'d [u8],
    /// It is sent while the program waits, and not by write-back.
    pub(crate) is_direct: bool,
    /// The kernel says that setuid and setgid bits stay.
    pub(crate) keeps_set_id: bool,
}

/// Writes the new part of pages of a file that may only grow. The kernel sends whole pages, which begin
/// with what the file has already; if that is something else, a program has written over it.
fn append_late(file: &File, write: &Write<'_>) -> Result<(), Failure> {
    let forbidden = || Failure::from(Errno::PERM);
    let known = file.size().checked_sub(write.offset).ok_or_else(forbidden)?;
    let known = usize::try_from(known).unwrap_or(usize::MAX).min(write.data.len());
    let (old, new) = write.data.split_at(known);
    let (found, len) = file.read_buffer(write.offset, Buffer::zeroed(known))?;
    if found[..len] != *old {
        return Err(forbidden());
    }
    Ok(file.write_at(write.offset + known as u64, new)?)
}

impl Server {
    /// Fills `memory`; returns it, and how many bytes there are.
    pub(crate) fn read(
        &self,
        number: InodeNumber,
        offset: u64,
        memory: Buffer,
        is_timed: bool,
    ) -> Result<(Buffer, usize), Failure> {
        let opening = self.nodes.open(&self.fs, number)?;
        let read = opening.file.read_buffer(offset, memory)?;
        if is_timed {
            opening.file.note_access();
        }
        Ok(read)
    }

    /// Before its content changes, the file loses what it gives to those who run it.
    pub(super) fn drop_privileges(
        &self,
        file: &File,
        writer: impl FnOnce(u32) -> Writer,
    ) -> Result<(), Failure> {
        if file.drop_privileges(|| writer(file.metadata().gid))? {
            self.tell_of_change(file.number());
        }
        Ok(())
    }

    pub(crate) fn write(
        &self,
        number: InodeNumber,
        write: &Write<'_>,
        caller: Caller,
    ) -> Result<(), Failure> {
        let opening = self.nodes.open(&self.fs, number)?;
        if write.is_direct {
            let keeps_set_id = write.keeps_set_id;
            self.drop_privileges(&opening.file, |group| match keeps_set_id {
                true => Writer { keeps_set_id, is_in_group: true },
                false => Writer { keeps_set_id, ..caller.writer(group) },
            })?;
        }
        opening.note_write();
        match opening.file.write_at(write.offset, write.data) {
            // The kernel held it back.
            Err(Error::NotPermitted(_)) if self.fs.keeps_times() => {
                append_late(&opening.file, write)
            }
            other => Ok(other?),
        }
    }

    /// Makes a file durable, or a directory; `done` is called when it is, by the thread that finds
    /// out. No thread waits.
    pub(crate) fn sync(
        &self,
        number: InodeNumber,
        data_only: bool,
        done: impl FnOnce(Result<(), Failure>) + Send + 'static,
    ) {
        if !self.fs.is_writable() {
            return done(Ok(()));
        }
        let opening = match self.nodes.open(&self.fs, number) {
            Ok(opening) => opening,
            Err(error) => return done(Err(error.into())),
        };
        let file = &opening.file;
        let ticket = if data_only { file.fdatasync() } else { file.fsync() };
        ticket.on_complete(|answer| {
            done(answer.map_err(|error| match error {
                // No file was asked to change.
                Error::Poisoned(_) => Errno::IO.into(),
                error => error.into(),
            }));
        });
    }

    pub(crate) fn allocate(
        &self,
        number: InodeNumber,
        mode: u32,
        (offset, len): (u64, u64),
        caller: Caller,
    ) -> Result<(), Failure> {
        let keep_size = mode & KEEP_SIZE != 0;
        let allocation = match mode & !KEEP_SIZE {
            0 => Allocation::Reserve { keep_size },
            PUNCH_HOLE if keep_size => Allocation::PunchHole,
            ZERO_RANGE => Allocation::Zero { keep_size },
            COLLAPSE_RANGE if !keep_size => Allocation::Collapse,
            INSERT_RANGE if !keep_size => Allocation::Insert,
            UNSHARE_RANGE => Allocation::Unshare,
            _ => return Err(Errno::OPNOTSUPP.into()),
        };
        let end = offset.checked_add(len).ok_or(Errno::FBIG)?;
        let opening = self.nodes.open(&self.fs, number)?;
        self.drop_privileges(&opening.file, |group| caller.writer(group))?;
        opening.note_write();
        Ok(opening.file.allocate(allocation, offset..end)?)
    }

    pub(crate) fn seek(
        &self,
        number: InodeNumber,
        offset: u64,
        what: Seek,
    ) -> Result<u64, Failure> {
        let opening = self.nodes.open(&self.fs, number)?;
        let found = match what {
            Seek::Data => opening.file.seek_data(offset)?,
            Seek::Hole => opening.file.seek_hole(offset)?,
        };
        Ok(found.ok_or(Errno::NXIO)?)
    }

    /// Where the data at or behind `offset` begins that is known here; the end of all files if there
    /// is none.
    pub(crate) fn data_from(&self, number: InodeNumber, offset: u64) -> Result<u64, Failure> {
        let opening = self.nodes.open(&self.fs, number)?;
        Ok(opening.file.seek_data(offset)?.unwrap_or(END))
    }

    /// Where the hole at or behind `offset` begins, as far as data is known here. All behind the end
    /// of the file is one.
    pub(crate) fn hole_from(&self, number: InodeNumber, offset: u64) -> Result<u64, Failure> {
        let opening = self.nodes.open(&self.fs, number)?;
        Ok(opening.file.seek_hole(offset)?.unwrap_or(offset))
    }

    /// Copies bytes of one file to another, or to another place; returns how many.
    pub(crate) fn copy(
        &self,
        from: (InodeNumber, u64),
        to: (InodeNumber, u64),
        len: u64,
        caller: Caller,
    ) -> Result<u64, Failure> {
        let source = self.nodes.open(&self.fs, from.0)?;
        let target = self.nodes.open(&self.fs, to.0)?;
        self.drop_privileges(&target.file, |group| caller.writer(group))?;
        target.note_write();
        Ok(target.file.copy_range(to.1, &source.file, from.1, len)?)
    }
}
