//! Moving the bytes of one request between memory and a file.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};

use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use rustix::io::{Errno, preadv, pwritev};
use smallvec::SmallVec;

use crate::bio::Operation;
use crate::error::Reason;
use crate::request::Request;
use crate::sector::SECTOR_SIZE;
use crate::segment::Segment;

/// `IOV_MAX` of Linux: most pieces of memory in one call.
pub(super) const MAX_SEGMENTS: usize = 1024;

/// Bytes at a multiple of which a call of a write ends.
///
/// The kernel takes memory for its page cache in blocks as large as the call. Large blocks of free
/// memory are what a virtual machine has given back to its host (free page reporting); touching
/// them again costs a fault in the host for every page. Small blocks are what was used lately. On
/// such a machine 1.5 GB in calls of 32 KiB took 0.5 s, in calls of 1 MiB 2.9 s. Elsewhere a call
/// more for every 32 KiB is lost among the copies.
const WRITE_BYTES: usize = 32 << 10;

/// How far a request came, and what stopped it.
#[derive(Debug)]
pub(super) struct Failure {
    /// Bytes transferred before.
    pub(super) done: u64,
    pub(super) reason: Reason,
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self { done: 0, reason: error.into() }
    }
}

/// Does what `request` asks, which lies inside the device.
pub(super) fn execute(file: &File, request: &mut Request) -> Result<(), Failure> {
    let offset = request.sector().0 * SECTOR_SIZE;
    match request.operation() {
        Operation::Read => read(file, offset, request)?,
        Operation::Write => write(file, offset, request.gather())?,
        Operation::WriteZeroes => write_zeroes(file, offset, request.length())?,
        Operation::Discard => discard(file, offset, request.length())?,
        Operation::Flush => fdatasync(file)?,
    }
    if request.is_force_unit_access() && request.operation().modifies() {
        fdatasync(file)?;
    }
    Ok(())
}

/// Fills the memory of `request`; beyond the end of the file with zeroes.
fn read(file: &File, offset: u64, request: &mut Request) -> Result<(), Failure> {
    let mut slices: SmallVec<[IoSliceMut<'_>; 16]> =
        request.scatter().map(IoSliceMut::new).collect();
    let mut rest = &mut slices[..];
    let mut done = 0;
    while !rest.is_empty() {
        let count = rest.len().min(MAX_SEGMENTS);
        match retry(|| preadv(file, &mut rest[..count], offset + done)) {
            Ok(0) => {
                rest.iter_mut().for_each(|slice| slice.fill(0));
                return Ok(());
            }
            Ok(bytes) => {
                done += bytes as u64;
                IoSliceMut::advance_slices(&mut rest, bytes);
            }
            Err(error) => return Err(Failure { done, reason: error.into() }),
        }
    }
    Ok(())
}

/// Writes `pieces` one after the other from `offset` on.
fn write<'a>(
    file: &File,
    offset: u64,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Result<(), Failure> {
    let mut call = Call { file, offset, done: 0, slices: SmallVec::new(), bytes: 0 };
    for mut piece in pieces {
        while !piece.is_empty() {
            let (front, rest) = piece.split_at(piece.len().min(call.room()));
            call.slices.push(IoSlice::new(front));
            call.bytes += front.len();
            piece = rest;
            if call.room() == 0 || call.slices.len() == MAX_SEGMENTS {
                call.write()?;
            }
        }
    }
    call.write()
}

/// Memory collected for one call.
struct Call<'a> {
    file: &'a File,
    /// Where the first byte of all goes.
    offset: u64,
    /// Bytes written by calls before.
    done: u64,
    slices: SmallVec<[IoSlice<'a>; 64]>,
    /// Sum of their lengths.
    bytes: usize,
}

impl Call<'_> {
    /// Bytes up to the place in the file where the call must end.
    fn room(&self) -> usize {
        let start = (self.offset + self.done) % WRITE_BYTES as u64;
        // Both are at most WRITE_BYTES.
        (WRITE_BYTES - start as usize).saturating_sub(self.bytes)
    }

    /// Writes everything collected.
    fn write(&mut self) -> Result<(), Failure> {
        let mut rest = &mut self.slices[..];
        while !rest.is_empty() {
            match retry(|| pwritev(self.file, rest, self.offset + self.done)) {
                // No progress and no error: not possible for whole sectors; must not loop for ever.
                Ok(0) => return Err(Failure { done: self.done, reason: Errno::IO.into() }),
                Ok(bytes) => {
                    self.done += bytes as u64;
                    IoSlice::advance_slices(&mut rest, bytes);
                }
                Err(error) => return Err(Failure { done: self.done, reason: error.into() }),
            }
        }
        self.slices.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// Makes a range read as zeroes: a hole if the file can have one, else unwritten extents, else
/// zeroes.
fn write_zeroes(file: &File, offset: u64, length: u64) -> Result<(), Failure> {
    for how in [FallocateFlags::PUNCH_HOLE, FallocateFlags::ZERO_RANGE] {
        match retry(|| fallocate(file, how | FallocateFlags::KEEP_SIZE, offset, length)) {
            Err(error) if is_unsupported(error) => {}
            result => return Ok(result?),
        }
    }
    write_plain_zeroes(file, offset, length)
}

/// Writes `length` zero bytes from `offset` on, several pieces of static memory in a call.
fn write_plain_zeroes(file: &File, offset: u64, length: u64) -> Result<(), Failure> {
    let zeroes = Segment::zeroes();
    let piece = zeroes.len() as u64;
    let mut done = 0;
    while done < length {
        let wanted = (length - done).min(piece * 16);
        let pieces = (0..wanted.div_ceil(piece))
            .map(|index| &zeroes[..(wanted - index * piece).min(piece) as usize]);
        write(file, offset + done, pieces)
            .map_err(|failure| Failure { done: done + failure.done, ..failure })?;
        done += wanted;
    }
    Ok(())
}

/// Gives a range back to the file system below, if it can take it: a discard is advice.
fn discard(file: &File, offset: u64, length: u64) -> Result<(), Failure> {
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match retry(|| fallocate(file, how, offset, length)) {
        Err(error) if is_unsupported(error) => Ok(()),
        result => Ok(result?),
    }
}

/// What file systems and devices answer that do not have an operation of `fallocate`.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV | Errno::INVAL)
}

/// Repeats a call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;
    use crate::{Bio, Buffer, Sector};

    #[test]
    fn more_pieces_than_a_call_takes_are_all_written() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..3 * MAX_SEGMENTS).map(|index| index as u8).collect();
        write(&file, 100, bytes.chunks(1)).unwrap();
        let mut found = vec![0; bytes.len()];
        file.read_exact_at(&mut found, 100).unwrap();
        assert_eq!(found, bytes);
    }

    #[test]
    fn pieces_of_any_length_are_written_across_the_ends_of_calls() {
        let bytes: Vec<u8> = (0..5 * WRITE_BYTES + 77).map(|index| (index % 251) as u8).collect();
        for offset in [0, 512, WRITE_BYTES - 512, WRITE_BYTES, 3 * WRITE_BYTES + 1] {
            for piece in [500, 4096, WRITE_BYTES, 3 * WRITE_BYTES - 1] {
                let file = tempfile::tempfile().unwrap();
                write(&file, offset as u64, bytes.chunks(piece)).unwrap();
                let mut found = vec![0; bytes.len()];
                file.read_exact_at(&mut found, offset as u64).unwrap();
                assert!(found == bytes, "pieces of {piece} bytes at {offset}");
                assert_eq!(file.metadata().unwrap().len(), (offset + bytes.len()) as u64);
            }
        }
    }

    #[test]
    fn what_the_file_lacks_reads_as_zeroes() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 700], 0).unwrap();
        let mut buffer = Buffer::zeroed(1024);
        buffer.fill(0xee);
        let (bio, waiter) = Bio::read(Sector(0), buffer).waited();
        let mut request = Request::new(bio);
        execute(&file, &mut request).unwrap();
        request.complete();
        let found = waiter.wait().into_buffer().unwrap();
        assert_eq!(found[..], [&[7; 700][..], &[0; 324]].concat());
    }

    #[test]
    fn zeroes_are_the_same_with_and_without_holes() {
        let length = 40 * Segment::ZEROES_MAX as u64 + 100;
        for zero in [write_zeroes, write_plain_zeroes] {
            let file = tempfile::tempfile().unwrap();
            let before = vec![1; length as usize + 20];
            file.write_all_at(&before, 0).unwrap();
            zero(&file, 10, length).unwrap();
            let mut found = vec![2; before.len()];
            file.read_exact_at(&mut found, 0).unwrap();
            let (start, rest) = found.split_at(10);
            let (middle, end) = rest.split_at(length as usize);
            assert_eq!((start, end), (&[1; 10][..], &[1; 10][..]));
            assert!(middle.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn a_short_write_goes_on_until_the_error_and_says_how_far_it_came() {
        // A file that must not grow takes the pages inside it, then refuses: first a short write.
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("image", flags).unwrap());
        file.set_len(8192).unwrap();
        fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        let page = [1; 4096];
        let failure = write(&file, 4096, [&page[..], &page[..]].into_iter()).unwrap_err();
        assert_eq!(failure.done, 4096);
        assert!(matches!(failure.reason, Reason::Io(_)));
        let mut found = [0; 8192];
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found, *[[0; 4096], page].as_flattened());
    }
}
