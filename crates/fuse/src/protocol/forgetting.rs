//! Files that the kernel is to forget as soon as no program uses them.
//!
//! The times of a regular file are the kernel's own once it holds data back: it takes no others until it has
//! forgotten the file. So where the server has other times, it has the kernel drop the names that are not in
//! use (`FUSE_NOTIFY_PRUNE`, protocol 7.45, Linux 6.18); the next look finds the file anew. Mounts over a
//! file and its openings keep it. Nothing tells of their end, so the kernel is asked again after growing
//! pauses. A kernel that does not know the notification shows its own times until it forgets a file by itself.

use super::attributes::node;
use crate::server::Server;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};
use undercroft_fs::InodeNumber;

/// `FUSE_NOTIFY_PRUNE`, in the place of an answer's error.
const PRUNE: i32 = 9;

/// Bytes of a notification before its nodes: the header of an answer, and a count with room behind it.
const HEADER: usize = 16 + 16;

/// Nodes of one notification.
const MOST_NODES: usize = 512;

/// Until a program has its answer and has closed the file. Each pause is a quarter longer than the one before,
/// so a file is forgotten soon behind its closing.
const FIRST_PAUSE: Duration = Duration::from_micros(50);

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A file that is to be forgotten.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: InodeNumber,
    due: Instant,
    pause: Duration,
}

/// The thread that asks.
#[derive(Debug)]
pub(super) struct Forgetting {
    numbers: Sender<InodeNumber>,
}

impl Forgetting {
    /// Starts the thread with a descriptor of the connection of its own.
    pub(super) fn start(server: &Arc<Server>, connection: OwnedFd) -> io::Result<Self> {
        let (numbers, receiver) = channel();
        // The end of the mount does not wait for this thread.
        let server = Arc::downgrade(server);
        let asker = Asker { server, connection: connection.into(), waiting: Vec::new() };
        thread::Builder::new().name("forgetting".into()).spawn(move || asker.run(&receiver))?;
        Ok(Self { numbers })
    }

    /// Has the kernel forget a file, soon.
    pub(super) fn forget(&self, number: InodeNumber) {
        // Without a receiver the kernel cannot be asked.
        let _ = self.numbers.send(number);
    }
}

struct Asker {
    server: Weak<Server>,
    connection: File,
    waiting: Vec<Waiting>,
}

impl Asker {
    /// Asks until the server has gone, or the kernel says that it cannot be asked.
    fn run(mut self, numbers: &Receiver<InodeNumber>) {
        loop {
            let next = self.waiting.iter().map(|waiting| waiting.due).min();
            let received = match next {
                None => numbers.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => numbers.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match received {
                Ok(number) => {
                    self.add(number);
                    numbers.try_iter().for_each(|number| self.add(number));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.ask().is_err() {
                return;
            }
        }
    }

    fn add(&mut self, number: InodeNumber) {
        self.waiting.retain(|waiting| waiting.number != number);
        let due = Instant::now() + FIRST_PAUSE;
        self.waiting.push(Waiting { number, due, pause: FIRST_PAUSE });
    }

    /// Asks for the files whose time has come, and leaves those out that the kernel has forgotten.
    fn ask(&mut self) -> io::Result<()> {
        let Some(server) = self.server.upgrade() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let now = Instant::now();
        self.waiting
            .retain(|waiting| waiting.due > now || server.nodes.expect(waiting.number).is_ok());
        let root = server.fs.root();
        drop(server);
        let mut due = Vec::new();
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.due <= now) {
            due.push(node(waiting.number, root).0);
            waiting.pause = (waiting.pause * 5 / 4).min(LONGEST_PAUSE);
            waiting.due = now + waiting.pause;
        }
        for nodes in due.chunks(MOST_NODES) {
            match self.connection.write_all(&notification(nodes)) {
                // It has forgotten one in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                written => written?,
            }
        }
        Ok(())
    }
}

/// The bytes of a notification for up to [`MOST_NODES`] nodes.
fn notification(nodes: &[u64]) -> Vec<u8> {
    let len = HEADER + 8 * nodes.len();
    let mut bytes = Vec::with_capacity(len);
    // Both are small: see `MOST_NODES`.
    bytes.extend((len as u32).to_ne_bytes());
    bytes.extend(PRUNE.to_ne_bytes());
    bytes.extend(0u64.to_ne_bytes());
    bytes.extend((nodes.len() as u32).to_ne_bytes());
    bytes.extend([0; 12]);
    bytes.extend(nodes.iter().flat_map(|node| node.to_ne_bytes()));
    bytes
}
