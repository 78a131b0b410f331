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
    let mut slices: SmallVec<[IoSlice<'_>; 64]> = pieces.map(IoSlice::new).collect();
    let mut rest = &mut slices[..];
    let mut done = 0;
    while !rest.is_empty() {
        let count = rest.len().min(MAX_SEGMENTS);
        match retry(|| pwritev(file, &rest[..count], offset + done)) {
            // No progress and no error: not possible for whole sectors; must not loop for ever.
            Ok(0) => return Err(Failure { done, reason: Errno::IO.into() }),
            Ok(bytes) => {
                done += bytes as u64;
                IoSlice::advance_slices(&mut rest, bytes);
            }
            Err(error) => return Err(Failure { done, reason: error.into() }),
        }
    }
    Ok(())
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
