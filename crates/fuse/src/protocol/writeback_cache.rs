//! The writeback cache of the kernel: data that it holds back, asked for.
//!
//! The kernel looks for data and holes in what the server knows alone, and does not send what it holds
//! back before. So the server asks for that: where it knows of a hole, the kernel is told to drop its
//! pages, which sends the dirty ones first. The call returns when they were answered, and so it is made
//! by a thread that answers nothing else. Flags and hints of a file, which decide about its data, are set
//! by that thread, too, when it has all of the data that came before.

use super::attributes::errno;
use crate::failure::Failure;
use crate::server::{END, Seek, Server};
use fuser::ReplyLseek;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use undercroft_fs::InodeNumber;

/// How often the same place is looked at again while a program goes on writing there.
const ATTEMPTS: usize = 100;

/// What is done with what the kernel held back.
type Task = Box<dyn FnOnce(&Server) + Send>;

/// The thread that asks.
pub(super) struct WritebackCache {
    tasks: Sender<Task>,
}

impl WritebackCache {
    pub(super) fn start(server: &Arc<Server>) -> io::Result<Self> {
        let (sender, tasks) = channel::<Task>();
        // The end of the mount does not wait for this thread.
        let server = Arc::downgrade(server);
        thread::Builder::new().name("held back".into()).spawn(move || {
            while let Ok(task) = tasks.recv() {
                let Some(server) = server.upgrade() else { return };
                task(&server);
            }
        })?;
        Ok(Self { tasks: sender })
    }

    /// Answers where data or a hole is, the data among it that the kernel has.
    pub(super) fn seek(&self, number: InodeNumber, offset: u64, what: Seek, reply: ReplyLseek) {
        self.run(move |server| match find(server, number, offset, what) {
            // Files have less than 2^63 bytes.
            Ok(found) => reply.offset(found.cast_signed()),
            Err(failure) => reply.error(errno(server.failures.number(&failure))),
        });
    }

    /// Has the kernel drop what it has of a range, some time.
    pub(super) fn drop_data(&self, number: InodeNumber, range: Range<u64>) {
        self.run(move |server| {
            if let Some(kernel) = server.kernel.get() {
                kernel.collect_data(number, range);
            }
        });
    }

    /// Runs a task when all data of a file is here.
    pub(super) fn run_with_data(
        &self,
        number: InodeNumber,
        task: impl FnOnce(&Server) + Send + 'static,
    ) {
        self.run(move |server| {
            if let Some(kernel) = server.kernel.get() {
                kernel.collect_data(number, 0..END);
            }
            task(server);
        });
    }

    /// A task that is not run drops its reply, which is an error for the program.
    fn run(&self, task: impl FnOnce(&Server) + Send + 'static) {
        let _ = self.tasks.send(Box::new(task));
    }
}

/// Looks, asks for what the kernel has where the server knows of a hole, and looks again.
fn find(server: &Server, number: InodeNumber, offset: u64, what: Seek) -> Result<u64, Failure> {
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
        if let Some(kernel) = server.kernel.get() {
            kernel.collect_data(number, hole.clone());
        }
        asked = Some(hole);
    }
    server.seek(number, offset, what)
}
