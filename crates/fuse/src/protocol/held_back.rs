//! Data that the kernel holds back, asked for.
//!
//! The kernel looks for data and holes in what the server knows alone, and does not send what it holds
//! back before. So the server asks for that: where it knows of a hole, the kernel is told to drop its
//! pages, which sends the dirty ones first. The call returns when they were answered, and so it is made
//! by a thread that answers nothing itself.

use super::attributes::{errno, node};
use crate::failure::Failure;
use crate::server::{Seek, Server};
use fuser::{Notifier, ReplyLseek};
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use undercroft_fs::InodeNumber;

/// How often the same place is looked at again while a program goes on writing there.
const ATTEMPTS: usize = 100;

/// A place that is looked for.
struct Sought {
    number: InodeNumber,
    offset: u64,
    what: Seek,
    reply: ReplyLseek,
}

/// The thread that asks.
pub(super) struct HeldBack {
    sought: Sender<Sought>,
    notifier: Arc<OnceLock<Notifier>>,
}

impl HeldBack {
    pub(super) fn start(server: &Arc<Server>) -> io::Result<Self> {
        let (sender, sought) = channel();
        let notifier = Arc::new(OnceLock::new());
        let known = Arc::clone(&notifier);
        // The end of the mount does not wait for this thread.
        let server = Arc::downgrade(server);
        thread::Builder::new().name("held back".into()).spawn(move || {
            answer_all(&server, &known, &sought);
        })?;
        Ok(Self { sought: sender, notifier })
    }

    /// Where to set the way to the kernel, once there is one.
    pub(super) fn notifier(&self) -> Arc<OnceLock<Notifier>> {
        Arc::clone(&self.notifier)
    }

    /// Answers where data or a hole is, the data among it that the kernel has.
    pub(super) fn seek(&self, number: InodeNumber, offset: u64, what: Seek, reply: ReplyLseek) {
        if let Err(unsent) = self.sought.send(Sought { number, offset, what, reply }) {
            unsent.0.reply.error(fuser::Errno::EIO);
        }
    }
}

fn answer_all(server: &Weak<Server>, notifier: &OnceLock<Notifier>, sought: &Receiver<Sought>) {
    while let Ok(Sought { number, offset, what, reply }) = sought.recv() {
        let Some(server) = server.upgrade() else { return };
        match find(&server, notifier.get(), number, offset, what) {
            // Files have less than 2^63 bytes.
            Ok(found) => reply.offset(found.cast_signed()),
            Err(failure) => reply.error(errno(server.failures.number(&failure))),
        }
    }
}

/// Looks, asks for what the kernel has where the server knows of a hole, and looks again.
fn find(
    server: &Server,
    notifier: Option<&Notifier>,
    number: InodeNumber,
    offset: u64,
    what: Seek,
) -> Result<u64, Failure> {
    let mut asked: Option<Range<u64>> = None;
    for _ in 0..ATTEMPTS {
        let hole = match what {
            Seek::Data => offset..server.data_from(number, offset)?,
            Seek::Hole => {
                let start = server.hole_from(number, offset)?;
                start..server.data_from(number, start)?
            }
        };
        if hole.is_empty() || asked.as_ref() == Some(&hole) {
            break;
        }
        if let Some(notifier) = notifier {
            let len = i64::try_from(hole.end - hole.start).unwrap_or(0);
            let start = hole.start.min(i64::MAX as u64).cast_signed();
            // It has nothing if it does not know the file.
            let _ = notifier.inval_inode(node(number, server.fs.root()), start, len);
        }
        asked = Some(hole);
    }
    server.seek(number, offset, what)
}
