//! A pause while a client has many answers to read.
//!
//! A server that is quicker than its client takes each request alone, and has the client busy with
//! being woken and with the list of what it has asked for. What the client asks for while it reads
//! comes as one batch instead. How many answers it has not read shows in a socket of this machine.
#![allow(unsafe_code, reason = "a request of ioctl that no crate has in safe form")]

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io;
use rustix::ioctl::{Getter, ioctl};

use super::stream::is_local;

/// Answers that a client has not read from which on there is a pause.
const MANY: usize = 48;
/// At so many it ends: the client reads them while the next requests are carried out.
const FEW: usize = 32;
/// Counted by the kernel for a message beside its data: an `sk_buff` and the smallest memory for
/// bytes (Linux 6.18, 64 bits).
const OVERHEAD: usize = 768;
/// Between two looks: as short as a timer permits, which is some 50 us late.
const SHORT: Duration = Duration::from_micros(1);
/// A client may read nothing for long.
const LONGEST: Duration = Duration::from_millis(1);

/// The answers that the client of a connection may not have read.
#[derive(Debug)]
pub(super) struct Unread {
    /// Whether the socket tells. One of a network knows what has arrived there, not what was read.
    tells: bool,
    /// At most so many, unless answers were sent together.
    most: usize,
    /// Requests since the last look, and the data of their answers in bytes.
    requests: usize,
    data: usize,
}

impl Unread {
    /// None, of a connection with this socket.
    pub(super) fn new(socket: BorrowedFd<'_>) -> Self {
        Self { tells: is_local(socket), most: 0, requests: 0, data: 0 }
    }

    /// A request is taken whose answer has so many bytes of data.
    pub(super) fn add(&mut self, data: usize) {
        self.requests += 1;
        self.data = self.data.saturating_add(data);
    }

    /// Sleeps while the client has many answers to read, but not for long.
    pub(super) fn pause(&mut self, socket: BorrowedFd<'_>) {
        // Most clients never have so many: then the kernel is seldom asked.
        if !self.tells || self.most + self.requests < MANY {
            return;
        }
        // Those that were sent together are taken for fewer than they are, so pauses are rare then.
        let each = OVERHEAD + self.data / self.requests.max(1);
        let mut left = answers(socket, each);
        if left >= MANY {
            let start = Instant::now();
            while left > FEW && start.elapsed() < LONGEST {
                thread::sleep(SHORT);
                left = answers(socket, each);
            }
        }
        *self = Self { tells: self.tells, most: left, requests: 0, data: 0 };
    }
}

/// Answers in a socket of this machine that its other side has not read, if `each` takes so many bytes.
fn answers(socket: BorrowedFd<'_>, each: usize) -> usize {
    // A socket that does not tell has none: nothing waits for it then.
    unread_bytes(socket).map_or(0, |bytes| bytes / each)
}

/// Memory of what the other side of a socket of this machine has not read, in bytes.
fn unread_bytes(socket: BorrowedFd<'_>) -> io::Result<usize> {
    // SAFETY: the kernel writes a C int and reads no memory (`SIOCOUTQ` in `tcp(7)`, which sockets of one
    // machine have, too; it has the number of `TIOCOUTQ`).
    let bytes = unsafe { ioctl(socket, Getter::<{ libc::TIOCOUTQ as _ }, c_int>::new()) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Sends so many answers, each with a call of its own.
    fn answer(mut socket: &UnixStream, count: usize, unread: &mut Unread) {
        for _ in 0..count {
            socket.write_all(&[7; 16]).unwrap();
            unread.add(0);
        }
    }

    #[test]
    fn what_a_client_has_not_read_is_known() {
        let (server, mut client) = UnixStream::pair().unwrap();
        assert_eq!(unread_bytes(server.as_fd()), Ok(0));
        let mut unread = Unread::new(server.as_fd());
        answer(&server, 3, &mut unread);
        // Some kernels count more for each.
        assert!((3..6).contains(&answers(server.as_fd(), OVERHEAD)));
        client.read_exact(&mut [0; 3 * 16]).unwrap();
        assert_eq!(answers(server.as_fd(), OVERHEAD), 0);
    }

    #[test]
    fn a_client_that_reads_nothing_is_not_waited_for() {
        let (server, mut client) = UnixStream::pair().unwrap();
        let mut unread = Unread::new(server.as_fd());
        answer(&server, MANY - 1, &mut unread);
        unread.pause(server.as_fd());
        assert_eq!((unread.most, unread.requests), (0, MANY - 1), "too few to look");
        answer(&server, 1, &mut unread);
        unread.pause(server.as_fd());
        assert!(unread.most >= MANY && unread.requests == 0, "{unread:?}");
        client.read_exact(&mut [0; MANY * 16]).unwrap();
        unread.pause(server.as_fd());
        assert_eq!((unread.most, unread.requests), (0, 0));
    }

    #[test]
    fn a_network_does_not_tell() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut unread = Unread::new(socket.as_fd());
        assert!(!unread.tells);
        (0..2 * MANY).for_each(|_| unread.add(0));
        unread.pause(socket.as_fd());
        assert_eq!(unread.most, 0);
    }
}
