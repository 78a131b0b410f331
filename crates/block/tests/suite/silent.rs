//! A file that never answers: on a file system of our own, served over `/dev/fuse`, which takes
//! transfers and does nothing about them.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

/// Numbers of the protocol.
mod operation {
    pub(super) const LOOKUP: u32 = 1;
    pub(super) const FORGET: u32 = 2;
    pub(super) const GETATTR: u32 = 3;
    pub(super) const OPEN: u32 = 14;
    pub(super) const READ: u32 = 15;
    pub(super) const WRITE: u32 = 16;
    pub(super) const STATFS: u32 = 17;
    pub(super) const RELEASE: u32 = 18;
    pub(super) const FSYNC: u32 = 20;
    pub(super) const FLUSH: u32 = 25;
    pub(super) const INIT: u32 = 26;
    pub(super) const INTERRUPT: u32 = 36;
    pub(super) const BATCH_FORGET: u32 = 42;
}

/// Bytes before what a request or an answer is about.
const REQUEST_HEADER: usize = 40;
const ANSWER_HEADER: usize = 16;
/// The kernel asks for room for its largest write.
const REQUEST_MAX: usize = 256 << 10;

const ROOT: u64 = 1;
const IMAGE: u64 = 2;

/// The server's reaction when the kernel says that an answer is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manners {
    /// It answers that the operation was interrupted.
    Yielding,
    /// Nothing.
    Deaf,
}

/// The file, as long as this lives.
pub(crate) struct SilentFile {
    directory: TempDir,
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
    /// Ends the wait for requests that were not answered in time: a thread that is stuck in a
    /// transfer could not be killed, either.
    finished: mpsc::Sender<()>,
}

/// Much longer than any of these tests.
const PATIENCE: Duration = Duration::from_secs(30);

struct Server {
    device: File,
    bytes: u64,
    manners: Manners,
    /// Transfers that were taken and not answered.
    held: Mutex<Vec<u64>>,
    taken: Condvar,
}

impl SilentFile {
    /// A file of `bytes` bytes.
    pub(crate) fn new(bytes: u64, manners: Manners) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&device);
        let options = format!("fd={number},rootmode=40000,user_id=0,group_id=0");
        let options = std::ffi::CString::new(options).unwrap();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("silent", directory.path(), "fuse", flags, &*options).unwrap();
        let (held, taken) = Default::default();
        let server = Arc::new(Server { device, bytes, manners, held, taken });
        let serving = Arc::clone(&server);
        let thread = Some(std::thread::spawn(move || serving.serve()));
        let (finished, waited) = mpsc::channel();
        let place = directory.path().to_owned();
        std::thread::spawn(move || {
            if waited.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                unmount_now(&place);
            }
        });
        Self { directory, server, thread, finished }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    /// Waits until the server has taken `count` transfers, or for ten seconds: on a busy machine a time
    /// limit may have ended some before they were sent.
    pub(crate) fn wait_for(&self, count: usize) {
        let mut held = self.server.held.lock();
        let limit = Duration::from_secs(10);
        self.server.taken.wait_while_for(&mut held, |held| held.len() < count, limit);
    }

    /// Takes the file system away, with all that is under way.
    pub(crate) fn remove(&self) {
        unmount_now(self.directory.path());
    }
}

/// Requests under way fail. It may be gone already.
fn unmount_now(place: &Path) {
    let _ = unmount(place, UnmountFlags::FORCE | UnmountFlags::DETACH);
}

impl Drop for SilentFile {
    fn drop(&mut self) {
        let _ = self.finished.send(());
        self.remove();
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Server {
    /// Works until the file system is unmounted.
    fn serve(&self) {
        let mut request = vec![0; REQUEST_MAX];
        loop {
            match (&self.device).read(&mut request) {
                Ok(length) => self.take(&request[..length]),
                Err(error) => match error.raw_os_error() {
                    // The request was taken back before it was read.
                    Some(libc::ENOENT | libc::EINTR) => {}
                    Some(libc::ENODEV | libc::ECONNABORTED) => return,
                    _ => panic!("{error}"),
                },
            }
        }
    }

    fn take(&self, request: &[u8]) {
        let number = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().unwrap());
        let kind = u32::from_ne_bytes(request[4..8].try_into().unwrap());
        let (unique, node) = (number(8), number(16));
        match kind {
            operation::READ | operation::WRITE | operation::FSYNC => {
                self.held.lock().push(unique);
                self.taken.notify_all();
            }
            operation::INTERRUPT if self.manners == Manners::Yielding => {
                let interrupted = number(REQUEST_HEADER);
                let mut held = self.held.lock();
                if let Some(index) = held.iter().position(|unique| *unique == interrupted) {
                    held.remove(index);
                    self.answer(interrupted, -libc::EINTR, &[]);
                }
            }
            operation::INTERRUPT | operation::FORGET | operation::BATCH_FORGET => {}
            operation::INIT => self.answer(unique, 0, &init()),
            operation::LOOKUP => {
                // Number and generation of the node, and for how long this is true.
                let entry = words64(&[IMAGE, 0, 0, 0, 0]);
                self.answer(unique, 0, &[entry, self.attributes(IMAGE)].concat());
            }
            operation::GETATTR => {
                self.answer(unique, 0, &[words64(&[0, 0]), self.attributes(node)].concat());
            }
            // Handle 0; past the page cache, where no transfer is waited for in vain for ever.
            operation::OPEN => self.answer(unique, 0, &words64(&[0, 1])),
            operation::STATFS => self.answer(unique, 0, &words64(&[0; 10])),
            operation::RELEASE | operation::FLUSH => self.answer(unique, 0, &[]),
            _ => self.answer(unique, -libc::ENOSYS, &[]),
        }
    }

    fn answer(&self, unique: u64, error: i32, body: &[u8]) {
        let length = (ANSWER_HEADER + body.len()) as u32;
        let header = [length.to_ne_bytes(), error.to_ne_bytes()].concat();
        let answer = [&header[..], &unique.to_ne_bytes(), body].concat();
        match (&self.device).write(&answer) {
            Ok(written) => assert_eq!(written, answer.len()),
            // No thread waits for it any more.
            Err(error) => assert!(
                matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)),
                "{error}"
            ),
        }
    }

    /// Number, size, blocks, three times, their nanoseconds, mode, links, owner, group, device,
    /// block size, flags.
    fn attributes(&self, node: u64) -> Vec<u8> {
        let mode = if node == ROOT { libc::S_IFDIR | 0o755 } else { libc::S_IFREG | 0o644 };
        let wide = words64(&[node, self.bytes, self.bytes / 512, 0, 0, 0]);
        [wide, words32(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0])].concat()
    }
}

/// Version 7.31, reading ahead nothing, no flags, requests in the background, largest write,
/// granularity of times, and what later versions added.
fn init() -> Vec<u8> {
    let start = words32(&[7, 31, 0, 0, 16 << 16 | 16, 128 << 10, 1, 0]);
    [start, words64(&[0; 4])].concat()
}

fn words64(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn words32(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
