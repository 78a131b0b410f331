//! Pipes that take bytes from the page cache to a socket without a copy.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::ioctl_fionbio;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use undercroft_block::FileRange;

/// Pipes of a connection: enough for the longest reads that clients are known to ask for (QEMU: 2 MiB).
const MOST: usize = 8;

/// The room of a pipe in bytes. A range that does not begin with a page of the page cache takes one page
/// more than it has.
const ROOM: usize = 256 << 10;

/// The number of `SIGPIPE` in Linux.
const SIGPIPE: u32 = 13;

/// The pipes of a connection.
pub(super) struct Pipes {
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

/// A pipe with bytes to be sent.
pub(super) struct FilledPipe {
    /// None only while it is dropped.
    pipe: Option<Pipe>,
    owner: Arc<Pipes>,
    length: usize,
    /// Bytes that are in it still.
    left: Cell<usize>,
}

/// Whether a socket whose other end is gone costs this process only an error. There is no way to say that
/// with each `splice`. Programs in Rust ignore the signal from the start on.
pub(super) fn survives_sigpipe() -> bool {
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return false };
    let mask = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let has =
        |mask: &str| u64::from_str_radix(mask, 16).is_ok_and(|mask| mask >> (SIGPIPE - 1) & 1 == 1);
    ["SigIgn:", "SigCgt:"].into_iter().filter_map(mask).any(has)
}

impl Pipes {
    /// None yet; they are made when they are needed.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { free: Vec::new(), left: MOST }) })
    }

    /// Pipes that could be filled now.
    pub(super) fn available(&self) -> usize {
        let state = self.state.lock();
        state.free.len() + state.left
    }

    /// A pipe with `length` bytes of `range`, if there is one and the file has so many.
    pub(super) fn fill(self: &Arc<Self>, range: &FileRange, length: usize) -> Option<FilledPipe> {
        let pipe = self.take()?;
        let filled =
            FilledPipe { pipe: Some(pipe), owner: Arc::clone(self), length, left: Cell::new(0) };
        let mut offset = range.offset;
        while filled.left.get() < length {
            let Some(pipe) = &filled.pipe else { return None };
            let rest = length - filled.left.get();
            let moved = splice(
                &range.file,
                Some(&mut offset),
                &pipe.write,
                None,
                rest,
                SpliceFlags::NONBLOCK,
            );
            match moved {
                // The file ended, the pipe is full, or the disk failed: the usual way says which.
                Ok(0) | Err(_) => return None,
                Ok(moved) => filled.left.set(filled.left.get() + moved),
            }
        }
        Some(filled)
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
        let pipe = Pipe::new().ok()?;
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
    fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setpipe_size(&write, ROOM)?;
        Ok(Self { read, write })
    }
}

impl FilledPipe {
    /// Bytes that it was filled with.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Moves some of its bytes to `socket`, without waiting; returns their number.
    ///
    /// For this the socket has to be one that does not wait: the flag of `splice` counts for the pipe alone
    /// (Linux 6.18). A thread that begins to read from it in this moment does not wait either.
    pub(super) fn send(&self, socket: &OwnedFd) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        ioctl_fionbio(socket, true)?;
        let left = self.left.get();
        let moved = splice(&pipe.read, None, socket, None, left, SpliceFlags::NONBLOCK);
        ioctl_fionbio(socket, false)?;
        let moved = moved?;
        self.left.set(left - moved);
        Ok(moved)
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
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Less than a pipe has room for, since the sample does not begin with a page.
    const LENGTH: usize = ROOM - 4096;

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
        let pipes = Pipes::new();
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
        let pipes = Pipes::new();
        let all: Vec<_> = (0..MOST).map(|_| pipes.fill(&range, LENGTH).unwrap()).collect();
        assert!(pipes.fill(&range, LENGTH).is_none());
        drop(all);
        assert_eq!(pipes.state.lock().free.len(), 0);
        assert!(pipes.fill(&range, LENGTH).is_some());
    }

    #[test]
    fn a_file_that_ends_does_not_fill_a_pipe() {
        let (range, bytes) = sample();
        let pipes = Pipes::new();
        let behind = FileRange { offset: bytes.len() as u64 - 4096, ..range.clone() };
        for _ in 0..2 * MOST {
            assert!(pipes.fill(&behind, LENGTH).is_none());
        }
        let directory = Arc::new(File::open(".").unwrap());
        assert!(pipes.fill(&FileRange { file: directory, offset: 0 }, LENGTH).is_none());
        assert!(pipes.fill(&range, LENGTH).is_some());
    }

    #[test]
    fn programs_in_rust_survive_a_client_that_is_gone() {
        assert!(survives_sigpipe());
        let (range, _) = sample();
        let (socket, client) = UnixStream::pair().unwrap();
        drop(client);
        let pipe = Pipes::new().fill(&range, LENGTH).unwrap();
        let error = pipe.send(&OwnedFd::from(socket)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
