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
        if had_better_be_mapped(cover, target) {
            Self::Pages
        } else {
            Self::Pipes(Arc::clone(pipes))
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
                let mut receiver = PageReceiver::new(socket, &mut []);
                let mut splice =
                    |target: SpliceTarget<'_>, offset, most| receiver.receive(target, offset, most);
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

/// Whether a write of `cover` had better go to the mapped pages of `target`.
pub(super) fn had_better_be_mapped(cover: &Cover, target: SpliceTarget<'_>) -> bool {
    // Inside the device.
    let offset = cover.sector().0 * SECTOR_SIZE;
    target.pages.is_some_and(|pages| pages.prepare(offset, cover.length()))
}

/// Receives a write, all of which has come to a socket, in the mapped pages of a file.
pub(super) struct PageReceiver<'r> {
    socket: BorrowedFd<'r>,
    /// Memory for what follows.
    behind: &'r mut [u8],
    /// Bytes of it that were filled.
    pub(super) followed: usize,
    /// Whether some of the write was moved.
    is_begun: bool,
}

impl<'r> PageReceiver<'r> {
    pub(super) fn new(socket: BorrowedFd<'r>, behind: &'r mut [u8]) -> Self {
        Self { socket, behind, followed: 0, is_begun: false }
    }

    /// Moves up to `most` bytes, which are the rest of the write, to `target` at `offset`; returns their
    /// number. If this is not the first time, the error of the file leaves none of them in the socket.
    pub(super) fn receive(
        &mut self,
        target: SpliceTarget<'_>,
        offset: u64,
        most: usize,
    ) -> io::Result<usize> {
        let pages = target.pages.ok_or(io::ErrorKind::Unsupported)?;
        match pages.receive_from(self.socket, offset, most, self.behind) {
            Ok(count) => {
                let moved = count.min(most);
                (self.followed, self.is_begun) = (count - moved, true);
                Ok(moved)
            }
            // Urgent bytes were among those that seemed to have come; what the client sends is of no use
            // then.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            Err(error) if self.is_begun && error.kind() != io::ErrorKind::Interrupted => {
                // The file says why, if there is no page for them.
                let mut rest = vec![0; most];
                read_all(self.socket, &mut rest)?;
                target.file.write_all_at(&rest, offset)?;
                Ok(most)
            }
            Err(error) => Err(error),
        }
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
