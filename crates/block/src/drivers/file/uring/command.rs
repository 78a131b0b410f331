//! From a request to ring entries, one at a time, until it has ended.

use std::sync::Arc;

use io_uring::{opcode, squeue, types};
use rustix::io::Errno;

use crate::bio::Operation;
use crate::drivers::file::open::{MAX_SEGMENTS, OpenFile};
use crate::drivers::file::transfer::is_unsupported;
use crate::memory::{Arena, Segment};
use crate::request::{Failure, Request};
use crate::units::SECTOR_SIZE;

/// The registered file.
const FILE: types::Fixed = types::Fixed(0);

/// Most bytes of one entry: a multiple of every block size below what the kernel moves at once.
const MAX_BYTES: u64 = 1 << 30;

/// Pieces of static zeroes in one write of zeroes.
const ZERO_PIECES: u64 = 16;

/// The target of the entries of a queue.
pub(super) struct Target {
    /// Registered with the ring.
    pub(super) arena: Option<Arc<Arena>>,
    /// Unit of offsets and lengths in bytes; 1 if any will do.
    pub(super) block: u64,
    /// The file.
    pub(super) file: Arc<OpenFile>,
}

/// The work of the next entry of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Moves bytes from or to the memory of the request.
    Transfer,
    /// Makes a hole, to give the space back.
    Discard,
    /// Makes a hole, to have zeroes.
    PunchHole,
    /// Makes unwritten extents.
    ZeroRange,
    /// Writes zeroes.
    PlainZeroes,
    /// Makes everything durable.
    Sync,
}

/// The place of one request in flight.
#[derive(Default)]
pub(super) struct Slot {
    work: Option<Work>,
    /// Memory of the entry under way, in order. The kernel copies the list when it takes the entry.
    pieces: Vec<libc::iovec>,
}

struct Work {
    request: Request,
    step: Step,
    /// Bytes transferred.
    done: u64,
    cancelled: bool,
}

/// How a request ended.
pub(super) type Ended = (Request, Result<(), Failure>);

impl Slot {
    /// Puts `request` in this slot, which is free.
    pub(super) fn begin(&mut self, request: Request) {
        debug_assert!(self.work.is_none(), "a tag belongs to one request at a time");
        debug_assert!(request.operation() != Operation::CloneRange, "rings have no clones");
        let step = match request.operation() {
            Operation::Read | Operation::Write => Step::Transfer,
            Operation::Discard => Step::Discard,
            Operation::WriteZeroes => Step::PunchHole,
            Operation::Flush => Step::Sync,
            // Not taken by the ring.
            Operation::CloneRange => Step::Sync,
        };
        self.work = Some(Work { request, step, done: 0, cancelled: false });
    }

    /// Whether a request is in flight here.
    pub(super) fn is_busy(&self) -> bool {
        self.work.is_some()
    }

    /// Takes the request out although the kernel may still use its memory, which is never freed.
    pub(super) fn abandon(&mut self) -> Option<Request> {
        std::mem::take(&mut self.pieces).leak();
        let mut request = self.work.take()?.request;
        request.leak_memory();
        Some(request)
    }

    /// Records that an early end is wanted, so that an interruption is not made good.
    pub(super) fn cancel(&mut self) {
        if let Some(work) = &mut self.work {
            work.cancelled = true;
        }
    }

    /// The next entry of the request; nothing if there is none.
    pub(super) fn entry(&mut self, target: &Target) -> Option<squeue::Entry> {
        let work = self.work.as_mut()?;
        let offset = work.request.sector().0 * SECTOR_SIZE + work.done;
        let length = work.request.length();
        let fallocate =
            |mode| opcode::Fallocate::new(FILE, length).offset(offset).mode(mode).build();
        self.pieces.clear();
        Some(match work.step {
            Step::Transfer => work.transfer(offset, &mut self.pieces, target),
            Step::Discard | Step::PunchHole => {
                fallocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
            }
            Step::ZeroRange => fallocate(libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE),
            Step::PlainZeroes => work.plain_zeroes(offset, &mut self.pieces),
            Step::Sync => opcode::Fsync::new(FILE).flags(types::FsyncFlags::DATASYNC).build(),
        })
    }

    /// Takes in the result of the last entry. Returns the request if it has ended; if not, there is
    /// another [`entry`](Self::entry).
    pub(super) fn advance(&mut self, result: i32, target: &Target) -> Option<Ended> {
        let work = self.work.as_mut()?;
        let ended = match u64::try_from(result) {
            Ok(bytes) => work.succeeded(bytes, target),
            Err(_) => work.failed(Errno::from_raw_os_error(-result)),
        }?;
        let work = self.work.take()?;
        Some((work.request, ended.map_err(|reason| Failure { done: work.done, ..reason })))
    }
}

impl Work {
    fn transfer(
        &mut self,
        offset: u64,
        pieces: &mut Vec<libc::iovec>,
        target: &Target,
    ) -> squeue::Entry {
        let reads = self.request.operation() == Operation::Read;
        let sync = !reads && self.request.is_force_unit_access();
        let flags = if sync { libc::RWF_DSYNC } else { 0 };
        if reads {
            let memory = self.request.scatter();
            collect(memory.map(|piece| (piece.as_mut_ptr(), piece.len())), self.done, pieces);
        } else {
            let memory = self.request.gather();
            collect(
                memory.map(|piece| (piece.as_ptr().cast_mut(), piece.len())),
                self.done,
                pieces,
            );
        }
        let (list, count) = (pieces.as_ptr(), pieces.len() as u32);
        let [piece] = pieces[..] else {
            return if reads {
                opcode::Readv::new(FILE, list, count).offset(offset).build()
            } else {
                opcode::Writev::new(FILE, list, count).offset(offset).rw_flags(flags).build()
            };
        };
        let (start, length) = (piece.iov_base.cast::<u8>(), piece.iov_len as u32);
        let registered =
            target.arena.as_ref().and_then(|arena| arena.piece_of(start.addr(), piece.iov_len));
        match (reads, registered) {
            (true, Some(index)) => {
                opcode::ReadFixed::new(FILE, start, length, index).offset(offset).build()
            }
            (true, None) => opcode::Read::new(FILE, start, length).offset(offset).build(),
            (false, Some(index)) => opcode::WriteFixed::new(FILE, start, length, index)
                .offset(offset)
                .rw_flags(flags)
                .build(),
            (false, None) => {
                opcode::Write::new(FILE, start, length).offset(offset).rw_flags(flags).build()
            }
        }
    }

    fn plain_zeroes(&self, offset: u64, pieces: &mut Vec<libc::iovec>) -> squeue::Entry {
        let zeroes = Segment::zeroes();
        let piece = zeroes.len() as u64;
        let mut left = (self.request.length() - self.done).min(piece * ZERO_PIECES);
        while left > 0 {
            let length = left.min(piece);
            // At most the length of a slice.
            pieces.push(iovec(zeroes.as_ptr().cast_mut(), length as usize));
            left -= length;
        }
        opcode::Writev::new(FILE, pieces.as_ptr(), pieces.len() as u32).offset(offset).build()
    }

    /// `None` if the request goes on.
    fn succeeded(&mut self, bytes: u64, target: &Target) -> Option<Result<(), Failure>> {
        match self.step {
            Step::Transfer | Step::PlainZeroes => {
                if self.request.operation() == Operation::Read {
                    if let Err(failure) = self.read(bytes, target) {
                        return Some(Err(failure));
                    }
                } else if !self.wrote(bytes, target.block) {
                    return Some(Err(Errno::IO.into()));
                }
                if self.done < self.request.length() {
                    return None;
                }
                if self.step == Step::Transfer {
                    return Some(Ok(()));
                }
            }
            Step::Sync => return Some(Ok(())),
            Step::Discard | Step::PunchHole | Step::ZeroRange => {}
        }
        self.changed()
    }

    /// What follows when a range was discarded or zeroed: an entry for durability, or nothing.
    fn changed(&mut self) -> Option<Result<(), Failure>> {
        if !self.request.is_force_unit_access() {
            return Some(Ok(()));
        }
        self.step = Step::Sync;
        None
    }

    /// Counts bytes read; at the end of the file the rest becomes zeroes.
    fn read(&mut self, bytes: u64, target: &Target) -> Result<(), Failure> {
        self.done += bytes;
        // Direct I/O goes on only at whole blocks; part of one is all that the file has.
        if bytes == 0 || !self.done.is_multiple_of(target.block) {
            let (done, start) = (self.done, self.request.sector().0 * SECTOR_SIZE);
            target
                .file
                .expect_end(start + done)
                .map_err(|error| Failure { done, reason: error.into() })?;
            let mut skip = self.done;
            for piece in self.request.scatter() {
                let here = skip.min(piece.len() as u64);
                // At most the length of a slice.
                piece[here as usize..].fill(0);
                skip -= here;
            }
            self.done = self.request.length();
        }
        Ok(())
    }

    /// Counts bytes written, of which direct I/O must repeat those of a block that is not full.
    /// Returns whether there was progress.
    fn wrote(&mut self, bytes: u64, block: u64) -> bool {
        self.done += bytes - bytes % block;
        bytes >= block
    }

    /// `None` if the request goes on in spite of `error`.
    fn failed(&mut self, error: Errno) -> Option<Result<(), Failure>> {
        match (self.step, error) {
            (_, Errno::INTR | Errno::AGAIN) if !self.cancelled => return None,
            (_, Errno::INTR) => return Some(Err(Errno::CANCELED.into())),
            (Step::Discard, error) if is_unsupported(error) => return self.changed(),
            (Step::PunchHole, error) if is_unsupported(error) => self.step = Step::ZeroRange,
            (Step::ZeroRange, error) if is_unsupported(error) => self.step = Step::PlainZeroes,
            (_, error) => return Some(Err(error.into())),
        }
        None
    }
}

/// Lists the memory of a transfer from byte `skip` on, joining adjacent pieces, as far as one entry
/// can hold.
fn collect(
    memory: impl Iterator<Item = (*mut u8, usize)>,
    mut skip: u64,
    pieces: &mut Vec<libc::iovec>,
) {
    let mut left = MAX_BYTES;
    for (start, length) in memory {
        // Both at most the length of a slice.
        let here = skip.min(length as u64) as usize;
        skip -= here as u64;
        let taken = ((length - here) as u64).min(left) as usize;
        if taken == 0 {
            continue;
        }
        let start = start.wrapping_add(here);
        let full = pieces.len() == MAX_SEGMENTS;
        match pieces.last_mut() {
            Some(last) if last.iov_base.wrapping_byte_add(last.iov_len) == start.cast() => {
                last.iov_len += taken;
            }
            Some(_) if full => return,
            _ => pieces.push(iovec(start, taken)),
        }
        left -= taken as u64;
        if left == 0 {
            return;
        }
    }
}

fn iovec(start: *mut u8, length: usize) -> libc::iovec {
    libc::iovec { iov_base: start.cast(), iov_len: length }
}
