//! Moving the bytes of one request between memory and a file.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};

use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv, pwrite, pwritev, pwritev2};
use smallvec::SmallVec;

use super::clone_range::clone_range;
use super::open::{MAX_SEGMENTS, OpenFile};
use crate::bio::{Bio, Operation};
use crate::memory::Segment;
use crate::request::{Failure, Request};
use crate::units::SECTOR_SIZE;

/// Bytes at a multiple of which a call of a write ends that takes memory for the page cache.
///
/// Measured in virtual machines: 1.4 GB in calls of 1 MiB take from 0.4 to 2.9 s, in calls of 128 KiB
/// never more than 0.7 s, and builds of such images 0.9 of the time with calls of 32 KiB. The likely
/// cause, which was not proven: the kernel takes memory for its page cache in blocks as large as the
/// call, and large blocks of free memory are what the machine has given back to its host (free page
/// reporting), where touching them again costs a fault for every page.
const WRITE_BYTES: usize = 128 << 10;

/// Does what `request` asks, which lies inside the device.
pub(super) fn execute(device: &OpenFile, request: &mut Request) -> Result<(), Failure> {
    let file = device.file();
    let offset = request.sector().0 * SECTOR_SIZE;
    let durable = request.is_force_unit_access();
    match request.operation() {
        Operation::Read => return read(device, offset, request),
        Operation::Write => return write(device, offset, request, durable),
        Operation::WriteZeroes => write_zeroes(device, offset, request.length())?,
        Operation::Discard => discard(device, offset, request.length())?,
        Operation::CloneRange => clone(file, request)?,
        Operation::Flush => return Ok(fdatasync(file)?),
    }
    if durable {
        fdatasync(file)?;
    }
    Ok(())
}

/// Fills the memory of `request`; beyond the end of the file with zeroes.
fn read(device: &OpenFile, offset: u64, request: &mut Request) -> Result<(), Failure> {
    let (file, block) = (device.file(), device.block());
    let mut slices: SmallVec<[IoSliceMut<'_>; 16]> =
        request.scatter().map(IoSliceMut::new).collect();
    let mut rest = &mut slices[..];
    let mut done = 0;
    while !rest.is_empty() {
        let count = rest.len().min(MAX_SEGMENTS);
        // The kernel has less to do for one piece than for a list of one.
        let read = |pieces: &mut [IoSliceMut<'_>]| match pieces {
            [piece] => pread(file, &mut **piece, offset + done),
            pieces => preadv(file, pieces, offset + done),
        };
        match retry(|| read(&mut rest[..count])) {
            Ok(bytes) => {
                done += bytes as u64;
                IoSliceMut::advance_slices(&mut rest, bytes);
                // Direct I/O goes on only at whole blocks; part of one is all that the file has.
                if bytes == 0 || !done.is_multiple_of(block) {
                    device
                        .expect_end(offset + done)
                        .map_err(|error| Failure { done, reason: error.into() })?;
                    rest.iter_mut().for_each(|slice| slice.fill(0));
                    return Ok(());
                }
            }
            Err(error) => return Err(Failure { done, reason: error.into() }),
        }
    }
    Ok(())
}

/// Writes what `request` stores from `offset` on, `durable` or not.
fn write(device: &OpenFile, offset: u64, request: &Request, durable: bool) -> Result<(), Failure> {
    let mut call = Call::new(device, offset, durable);
    for bio in request.bios() {
        if bio.is_untorn() {
            // At most what a request can have.
            call.keep_whole(bio.length() as usize)?;
        }
        call.append(bio.segments().iter().map(|segment| &**segment))?;
    }
    call.write()
}

/// Memory collected for one call.
struct Call<'a> {
    file: &'a File,
    /// Where the first byte of all goes.
    offset: u64,
    /// The unit of direct I/O, or 1.
    block: u64,
    flags: ReadWriteFlags,
    /// The call ends at multiples of this in the file.
    end_unit: usize,
    /// Bytes written by calls before.
    done: u64,
    slices: SmallVec<[IoSlice<'a>; 64]>,
    /// Sum of their lengths.
    bytes: usize,
    /// The call does not end before it has so many.
    whole: usize,
}

impl<'a> Call<'a> {
    fn new(device: &'a OpenFile, offset: u64, durable: bool) -> Self {
        let (file, block): (&File, _) = (device.file(), device.block());
        let flags = if durable { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
        // Neither direct I/O nor a call that waits for the disk gains anything by being short, and
        // files in memory have single pages.
        let any_length = block > 1 || durable || device.is_in_memory();
        let end_unit = if any_length { isize::MAX as usize } else { WRITE_BYTES };
        let slices = SmallVec::new();
        Self { file, offset, block, flags, end_unit, done: 0, slices, bytes: 0, whole: 0 }
    }

    /// Bytes up to the place in the file where the call must end.
    fn room(&self) -> usize {
        let start = (self.offset + self.done) % self.end_unit as u64;
        // Both are at most the unit.
        (self.end_unit - start as usize).max(self.whole).saturating_sub(self.bytes)
    }

    /// Sees to it that the next `length` bytes go in one call.
    fn keep_whole(&mut self, length: usize) -> Result<(), Failure> {
        if self.room() < length {
            self.write()?;
        }
        self.whole = self.bytes + length;
        Ok(())
    }

    /// Writes `pieces` behind the bytes collected so far, in this call and others, but for the end,
    /// which stays collected.
    fn append(&mut self, pieces: impl Iterator<Item = &'a [u8]>) -> Result<(), Failure> {
        for mut piece in pieces {
            while !piece.is_empty() {
                let (front, rest) = piece.split_at(piece.len().min(self.room()));
                self.slices.push(IoSlice::new(front));
                self.bytes += front.len();
                piece = rest;
                if self.room() == 0 || self.slices.len() == MAX_SEGMENTS {
                    self.write()?;
                }
            }
        }
        Ok(())
    }

    /// Writes everything collected.
    fn write(&mut self) -> Result<(), Failure> {
        let mut rest = &mut self.slices[..];
        while !rest.is_empty() {
            let offset = self.offset + self.done;
            let write = || match &*rest {
                // The kernel has less to do for one piece than for a list of one.
                [piece] if self.flags.is_empty() => pwrite(self.file, piece, offset),
                pieces if self.flags.is_empty() => pwritev(self.file, pieces, offset),
                pieces => write_durably(self.file, pieces, offset, self.flags),
            };
            match retry(write) {
                // No progress and no error: not possible for whole sectors; must not loop for ever.
                Ok(bytes) if (bytes as u64) < self.block => {
                    return Err(Failure { done: self.done, reason: Errno::IO.into() });
                }
                Ok(bytes) => {
                    // Direct I/O goes on at whole blocks: a block that was written in part is
                    // written again.
                    let whole = bytes - bytes % self.block as usize;
                    self.done += whole as u64;
                    IoSlice::advance_slices(&mut rest, whole);
                }
                Err(error) => return Err(Failure { done: self.done, reason: error.into() }),
            }
        }
        self.slices.clear();
        (self.bytes, self.whole) = (0, 0);
        Ok(())
    }
}

/// Writes with `flags`, which make the write durable; where the system has no call for that, such as
/// Linux before 4.7 and emulators of processors, by two.
fn write_durably(
    file: &File,
    pieces: &[IoSlice<'_>],
    offset: u64,
    flags: ReadWriteFlags,
) -> rustix::io::Result<usize> {
    match pwritev2(file, pieces, offset, flags) {
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => {
            let written = pwritev(file, pieces, offset)?;
            fdatasync(file)?;
            Ok(written)
        }
        result => result,
    }
}

/// Shares blocks with the file of the one bio: clones are not merged.
fn clone(file: &File, request: &Request) -> Result<(), Failure> {
    let offset = request.sector().0 * SECTOR_SIZE;
    // Made with one.
    let Some(source) = request.bios().find_map(Bio::source) else { return Ok(()) };
    Ok(retry(|| clone_range(file, offset, request.length(), source))?)
}

/// Makes a range read as zeroes: a hole if the file can have one, else unwritten extents, else
/// zeroes.
fn write_zeroes(device: &OpenFile, offset: u64, length: u64) -> Result<(), Failure> {
    for how in [FallocateFlags::PUNCH_HOLE, FallocateFlags::ZERO_RANGE] {
        match retry(|| fallocate(device.file(), how | FallocateFlags::KEEP_SIZE, offset, length)) {
            Err(error) if is_unsupported(error) => {}
            result => return Ok(result?),
        }
    }
    write_plain_zeroes(device, offset, length)
}

/// Writes `length` zero bytes from `offset` on, several pieces of static memory in a call.
fn write_plain_zeroes(device: &OpenFile, offset: u64, length: u64) -> Result<(), Failure> {
    let zeroes = Segment::zeroes();
    let piece = zeroes.len() as u64;
    let mut done = 0;
    while done < length {
        let wanted = (length - done).min(piece * 16);
        let pieces = (0..wanted.div_ceil(piece))
            .map(|index| &zeroes[..(wanted - index * piece).min(piece) as usize]);
        let mut call = Call::new(device, offset + done, false);
        call.append(pieces)
            .and_then(|()| call.write())
            .map_err(|failure| Failure { done: done + failure.done, ..failure })?;
        done += wanted;
    }
    Ok(())
}

/// Gives a range back to the file system below, if it can take it: a discard is advice.
fn discard(device: &OpenFile, offset: u64, length: u64) -> Result<(), Failure> {
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match retry(|| fallocate(device.file(), how, offset, length)) {
        Err(error) if is_unsupported(error) => Ok(()),
        result => Ok(result?),
    }
}

/// What file systems and devices answer that do not have an operation of `fallocate`.
pub(super) fn is_unsupported(error: Errno) -> bool {
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
#[cfg(not(loom))]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;
    use crate::{Bio, Buffer, Reason, Sector};

    fn device(file: &File) -> OpenFile {
        OpenFile::unclaimed(file.try_clone().unwrap(), "image", false, false).unwrap()
    }

    /// A call that ends as on a disk, wherever temporary files are.
    fn call(device: &OpenFile, offset: u64) -> Call<'_> {
        Call { end_unit: WRITE_BYTES, ..Call::new(device, offset, false) }
    }

    /// As a request without bios that must not be torn does it.
    fn write<'a>(
        mut call: Call<'a>,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), Failure> {
        call.append(pieces).and_then(|()| call.write())
    }

    #[test]
    fn what_must_not_be_torn_goes_in_one_call() {
        let device = device(&tempfile::tempfile().unwrap());
        let memory = vec![7; 4 * WRITE_BYTES];
        // In parts of a call.
        const PART: usize = WRITE_BYTES / 32;
        // Where each call ends: one that must stay whole is not cut, and starts one of its own where
        // it does not fit.
        for (offset, lengths, ends) in [
            (0, &[16, 16, 8][..], &[32, 40][..]),
            (0, &[8, 64, 4], &[8, 72, 76]),
            (20, &[16, 16], &[16, 32]),
            (28, &[64], &[64]),
        ] {
            let mut call = call(&device, offset * PART as u64);
            let mut found = Vec::new();
            for length in lengths.iter().map(|parts| parts * PART) {
                let before = call.done;
                call.keep_whole(length).unwrap();
                if call.done > before {
                    found.push(call.done);
                }
                let before = call.done;
                let pieces = [&memory[..1000], &memory[1000..length]];
                call.append(pieces.into_iter()).unwrap();
                if call.done > before {
                    assert!(call.bytes == 0, "{length} bytes at {offset} were torn");
                    found.push(call.done);
                }
            }
            if call.bytes > 0 {
                call.write().unwrap();
                found.push(call.done);
            }
            let ends: Vec<_> = ends.iter().map(|parts| (parts * PART) as u64).collect();
            assert_eq!(found, ends, "{lengths:?} from {offset} on");
        }
    }

    #[test]
    fn more_pieces_than_a_call_takes_are_all_written() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..3 * MAX_SEGMENTS).map(|index| index as u8).collect();
        write(Call::new(&device(&file), 100, true), bytes.chunks(1)).unwrap();
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
                write(call(&device(&file), offset as u64), bytes.chunks(piece)).unwrap();
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
        execute(&OpenFile::from_file(file, "image", true, false).unwrap(), &mut request).unwrap();
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
            zero(&device(&file), 10, length).unwrap();
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
        let pieces = [&page[..], &page[..]].into_iter();
        let failure = write(call(&device(&file), 4096), pieces).unwrap_err();
        assert_eq!(failure.done, 4096);
        assert!(matches!(failure.reason, Reason::Io(_)));
        let mut found = [0; 8192];
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found, *[[0; 4096], page].as_flattened());
    }
}
