//! Ways of the payload of a write from the socket to the page cache of a file, with one copy less than by
//! memory.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use undercroft_block::{
    BlockDevice, BlockError, SECTOR_SIZE, Sector, Splice, SpliceTarget, splice_at,
};

use super::cover::Cover;
use super::pipe::{FilledPipe, Pipes};
use crate::busy_poll::look_for;

/// A copy of a part by another thread takes less.
const TURN: Duration = Duration::from_micros(200);

/// One of the ways.
pub(super) enum SpliceWay {
    /// By a pipe. It takes the lock of the file, and looks for its pages.
    Pipes(Arc<Pipes>),
    /// Into the mapped pages of a file in memory.
    Pages,
}

impl SpliceWay {
    /// The way of the payload of a write of `cover`, which goes to `target`: by `pipes` unless the pages are
    /// mapped.
    pub(super) fn of(cover: &Cover, target: SpliceTarget<'_>, pipes: &Arc<Pipes>) -> Self {
        // Inside the device.
        let offset = cover.sector().0 * SECTOR_SIZE;
        match target.pages {
            Some(pages) if pages.prepare(offset, cover.length()) => Self::Pages,
            _ => Self::Pipes(Arc::clone(pipes)),
        }
    }

    /// Moves `length` bytes, which have come to `socket`, to `device` from `sector` on.
    ///
    /// # Errors
    /// Nothing was moved. The bytes have to go by memory; the first of them are in the pipe that is returned.
    pub(super) fn splice(
        &self,
        device: &dyn BlockDevice,
        sector: Sector,
        socket: BorrowedFd<'_>,
        length: usize,
    ) -> Result<Result<(), BlockError>, Option<FilledPipe>> {
        match self {
            Self::Pipes(pipes) => {
                let Some(pipe) = pipes.receive(socket, length) else { return Err(None) };
                if pipe.len() < length {
                    return Err(Some(pipe));
                }
                let mut splice = |target: SpliceTarget<'_>, offset, most| {
                    pipe.write_to(target.file, offset, most)
                };
                let done = splice_in_turn(device, sector, length, &mut splice);
                done.ok_or(Some(pipe))
            }
            Self::Pages => {
                let mut left = length;
                let mut splice = |target: SpliceTarget<'_>, offset, most| {
                    let moved = receive(socket, target, (offset, most), &mut [], left < length)?;
                    left -= moved;
                    Ok(moved)
                };
                splice_in_turn(device, sector, length, &mut splice).ok_or(None)
            }
        }
    }
}

/// Moves `length` bytes to `device` after other connections that write there now, if they are quick; none
/// if nothing was moved.
fn splice_in_turn(
    device: &dyn BlockDevice,
    sector: Sector,
    length: usize,
    splice: &mut Splice<'_>,
) -> Option<Result<(), BlockError>> {
    let mut done = None;
    let is_tried = Cell::new(false);
    let mut splice = |target: SpliceTarget<'_>, offset, most| {
        is_tried.set(true);
        splice(target, offset, most)
    };
    let Ok(_) = look_for(TURN, || {
        done = splice_at(device, sector, length as u64, &mut splice);
        Ok::<_, Infallible>(done.is_some() || is_tried.get())
    });
    done
}

/// Receives up to `most` bytes, all of which have come to `socket`, in the pages of `target` at `offset`, and
/// what follows them `behind`; returns how many bytes there were. If this is not the first time, the error of
/// the file leaves none of the first in the socket.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    target: SpliceTarget<'_>,
    (offset, most): (u64, usize),
    behind: &mut [u8],
    is_begun: bool,
) -> io::Result<usize> {
    let pages = target.pages.ok_or(io::ErrorKind::Unsupported)?;
    match pages.receive_from(socket, offset, most, behind) {
        // Urgent bytes were among those that seemed to have come; what the client sends is of no use then.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        Err(error) if is_begun && error.kind() != io::ErrorKind::Interrupted => {
            // The file says why, if there is no page for them.
            let mut rest = vec![0; most];
            read_all(socket, &mut rest)?;
            target.file.write_all_at(&rest, offset)?;
            Ok(most)
        }
        result => result,
    }
}

/// Fills `memory` with bytes that have come to `socket`.
fn read_all(socket: BorrowedFd<'_>, mut memory: &mut [u8]) -> io::Result<()> {
    while !memory.is_empty() {
        match recv(socket, &mut *memory, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => memory = &mut memory[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
