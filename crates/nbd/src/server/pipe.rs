//! Pipes that take bytes from the page cache to a socket without a copy, and from a socket to the page
//! cache with one.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::{ioctl_fionbio, read};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use undercroft_block::FileRange;

/// Pipes of a connection: enough for the longest reads that clients are known to ask for (QEMU: 2 MiB).
const MOST: usize = 8;

/// The room of a pipe for reads in bytes. A range that does not begin with a page of the page cache takes
/// one page more than it has.
pub(crate) const READ_ROOM: usize = 256 << 10;

/// The room of a pipe for writes: what a client sends may be in pieces, which take a page each.
pub(crate) const WRITE_ROOM: usize = 512 << 10;

/// The number of `SIGPIPE` in Linux.
const SIGPIPE: u32 = 13;

/// The pipes of a connection.
pub(crate) struct Pipes {
    room: usize,
    state: Mutex<State>,
}

struct State {
    /// Empty ones.
    free: Vec<Pipe>,
    /// Those that may be made still.
    left: usize,
}

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// A pipe with bytes on their way.
pub(crate) struct FilledPipe {
    /// None only while it is dropped.
    pipe: Option<Pipe>,
    owner: Arc<Pipes>,
    length: usize,
    /// Bytes that are in it still.
    left: Cell<usize>,
}

/// Whether a socket whose other end is gone costs this process only an error. There is no way to say that
/// with each `splice`. Programs in Rust ignore the signal from the start on.
pub(crate) fn survives_sigpipe() -> bool {
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return false };
    let mask = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let has =
        |mask: &str| u64::from_str_radix(mask, 16).is_ok_and(|mask| mask >> (SIGPIPE - 1) & 1 == 1);
    ["SigIgn:", "SigCgt:"].into_iter().filter_map(mask).any(has)
}

impl Pipes {
    /// None yet; they are made when they are needed, with so much room in bytes.
    pub(crate) fn of(room: usize) -> Arc<Self> {
        Arc::new(Self { room, state: Mutex::new(State { free: Vec::new(), left: MOST }) })
    }

    /// Pipes that could be filled now.
    pub(crate) fn available(&self) -> usize {
        let state = self.state.lock();
        state.free.len() + state.left
    }

    /// A pipe with `length` bytes of `range`, if there is one and the file has so many.
    pub(crate) fn fill(self: &Arc<Self>, range: &FileRange, length: usize) -> Option<FilledPipe> {
        let (file, mut offset) = (&range.file, range.offset);
        let filled = self.filled(length, |pipe, rest| {
            splice(file, Some(&mut offset), pipe, None, rest, SpliceFlags::NONBLOCK)
        });
        // The file ended, the pipe is full, or the disk failed: the usual way says which.
        filled.filter(|filled| filled.len() == length)
    }

    /// A pipe with `length` bytes that have come to `socket`, if there is one; with fewer if it has no
    /// room for all. An error of the socket comes once more when it is read.
    pub(crate) fn receive(
        self: &Arc<Self>,
        socket: BorrowedFd<'_>,
        length: usize,
    ) -> Option<FilledPipe> {
        self.filled(length, |pipe, rest| {
            splice(socket, None, pipe, None, rest, SpliceFlags::NONBLOCK)
        })
    }

    /// A pipe with what `splice` moves to it, until that are `length` bytes or it moves none.
    fn filled(
        self: &Arc<Self>,
        length: usize,
        mut splice: impl FnMut(&OwnedFd, usize) -> rustix::io::Result<usize>,
    ) -> Option<FilledPipe> {
        let pipe = self.take()?;
        let mut filled = 0;
        while filled < length
            && let Ok(moved) = splice(&pipe.write, length - filled)
            && moved > 0
        {
            filled += moved;
        }
        let (owner, left) = (Arc::clone(self), Cell::new(filled));
        Some(FilledPipe { pipe: Some(pipe), owner, length: filled, left })
    }

    fn take(&self) -> Option<Pipe> {
        let mut state = self.state.lock();
        if let Some(pipe) = state.free.pop() {
            return Some(pipe);
        }
        state.left = state.left.checked_sub(1)?;
        drop(state);
        // The system has limits for descriptors and for pages in the pipes of a user: this connection does
        // without then.
        let pipe = Pipe::new(self.room).ok()?;
        Some(pipe)
    }

    fn give_back(&self, pipe: Pipe, is_empty: bool) {
        let mut state = self.state.lock();
        if is_empty {
            state.free.push(pipe);
        } else {
            state.left += 1;
        }
    }
}

impl Pipe {
    fn new(room: usize) -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setpipe_size(&write, room)?;
        Ok(Self { read, write })
    }
}

impl FilledPipe {
    /// Bytes that it was filled with.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Moves some of its bytes to `socket`, without waiting; returns their number.
    ///
    /// For this the socket has to be one that does not wait: the flag of `splice` counts for the pipe alone
    /// (Linux 6.18). A thread that begins to read from it in this moment does not wait either.
    pub(crate) fn send(&self, socket: &OwnedFd) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        ioctl_fionbio(socket, true)?;
        let left = self.left.get();
        let moved = splice(&pipe.read, None, socket, None, left, SpliceFlags::NONBLOCK);
        ioctl_fionbio(socket, false)?;
        let moved = moved?;
        self.left.set(left - moved);
        Ok(moved)
    }

    /// Moves up to `most` of its bytes to `file`, from `offset` on; returns their number.
    pub(crate) fn write_to(&self, file: &File, offset: u64, most: usize) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        let (left, mut offset) = (self.left.get(), offset);
        let wanted = most.min(left);
        let moved =
            splice(&pipe.read, None, file, Some(&mut offset), wanted, SpliceFlags::empty())?;
        self.left.set(left - moved);
        Ok(moved)
    }

    /// Moves its bytes to the front of `memory`, which has room for them.
    pub(crate) fn read_to(&self, memory: &mut [u8]) -> io::Result<()> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        let mut filled = 0;
        while self.left.get() > 0 {
            let left = self.left.get();
            let end = memory.len().min(filled + left);
            match read(&pipe.read, &mut memory[filled..end])? {
                // It has them, and nobody else takes any.
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    filled += count;
                    self.left.set(left - count);
                }
            }
        }
        Ok(())
    }
}

impl Drop for FilledPipe {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            self.owner.give_back(pipe, self.left.get() == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Less than a pipe has room for, since the sample does not begin with a page.
    const LENGTH: usize = READ_ROOM - 4096;

    /// A file with bytes that tell where they are, and more of them than a pipe is asked for.
    fn sample() -> (FileRange, Vec<u8>) {
        let bytes: Vec<u8> = (0..2 * LENGTH as u32).map(|at| (at ^ at >> 8) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        (FileRange { file: Arc::new(file), offset: 512 }, bytes)
    }

    #[test]
    fn bytes_come_through_a_socket_that_is_full_at_times() {
        let (range, bytes) = sample();
        let (socket, mut client) = UnixStream::pair().unwrap();
        let socket = OwnedFd::from(socket);
        let pipes = Pipes::of(READ_ROOM);
        for _ in 0..2 * MOST {
            let pipe = pipes.fill(&range, LENGTH).unwrap();
            assert_eq!(pipe.len(), LENGTH);
            let mut found = vec![0; LENGTH];
            let (mut sent, mut filled) = (0, 0);
            while filled < LENGTH {
                while sent < LENGTH
                    && let Ok(count) = pipe.send(&socket)
                {
                    sent += count;
                }
                let most = LENGTH.min(filled + 10_000);
                filled += client.read(&mut found[filled..most]).unwrap();
            }
            assert!(found == bytes[512..512 + LENGTH]);
        }
        // All of them went through the same.
        assert_eq!(pipes.state.lock().left, MOST - 1);
    }

    #[test]
    fn there_are_so_many_pipes_and_those_with_bytes_are_not_used_again() {
        let (range, _) = sample();
        let pipes = Pipes::of(READ_ROOM);
        let all: Vec<_> = (0..MOST).map(|_| pipes.fill(&range, LENGTH).unwrap()).collect();
        assert!(pipes.fill(&range, LENGTH).is_none());
        drop(all);
        assert_eq!(pipes.state.lock().free.len(), 0);
        assert!(pipes.fill(&range, LENGTH).is_some());
    }

    #[test]
    fn a_file_that_ends_does_not_fill_a_pipe() {
        let (range, bytes) = sample();
        let pipes = Pipes::of(READ_ROOM);
        let behind = FileRange { offset: bytes.len() as u64 - 4096, ..range.clone() };
        for _ in 0..2 * MOST {
            assert!(pipes.fill(&behind, LENGTH).is_none());
        }
        let directory = Arc::new(File::open(".").unwrap());
        assert!(pipes.fill(&FileRange { file: directory, offset: 0 }, LENGTH).is_none());
        assert!(pipes.fill(&range, LENGTH).is_some());
    }

    #[test]
    fn bytes_come_from_a_socket_to_a_file_or_to_memory() {
        let (_, bytes) = sample();
        let (socket, mut client) = UnixStream::pair().unwrap();
        let pipes = Pipes::of(WRITE_ROOM);
        let file = tempfile::tempfile().unwrap();
        for (round, part) in bytes.chunks_exact(50_000).enumerate() {
            client.write_all(part).unwrap();
            let pipe = pipes.receive(socket.as_fd(), part.len()).unwrap();
            assert_eq!(pipe.len(), part.len());
            let mut found = vec![0; part.len()];
            if round % 2 == 0 {
                pipe.read_to(&mut found).unwrap();
            } else {
                assert_eq!(pipe.write_to(&file, 100, 20_000).unwrap(), 20_000);
                assert_eq!(pipe.write_to(&file, 20_100, usize::MAX).unwrap(), 30_000);
                file.read_exact_at(&mut found, 100).unwrap();
            }
            assert!(found == part, "round {round}");
            assert_eq!(pipe.left.get(), 0);
        }
        // All of them went through the same, and no one waits for what has not come.
        assert_eq!(pipes.state.lock().left, MOST - 1);
        client.write_all(&[7; 100]).unwrap();
        let few = pipes.receive(socket.as_fd(), 200).unwrap();
        assert_eq!(few.len(), 100);
    }

    #[test]
    fn a_pipe_without_room_takes_what_it_can() {
        let (socket, mut client) = UnixStream::pair().unwrap();
        // Each takes a slot of the pipe, however short it is.
        for byte in 0..200 {
            client.write_all(&[byte; 10]).unwrap();
        }
        let pipe = Pipes::of(WRITE_ROOM).receive(socket.as_fd(), 2000).unwrap();
        assert!(0 < pipe.len() && pipe.len() < 2000);
        let mut found = [0; 2000];
        pipe.read_to(&mut found).unwrap();
        (&socket).read_exact(&mut found[pipe.len()..]).unwrap();
        assert!(found.chunks(10).zip(0_u8..).all(|(piece, byte)| piece == [byte; 10]));
    }

    #[test]
    fn programs_in_rust_survive_a_client_that_is_gone() {
        assert!(survives_sigpipe());
        let (range, _) = sample();
        let (socket, client) = UnixStream::pair().unwrap();
        drop(client);
        let pipe = Pipes::of(READ_ROOM).fill(&range, LENGTH).unwrap();
        let error = pipe.send(&OwnedFd::from(socket)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
