//! How a volume is mounted, where, and why it is not.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;
use undercroft_fs::AccessTimes;

/// How a volume is mounted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// What the list of mounts names as the source.
    pub name: String,
    /// Nothing is changed.
    pub read_only: bool,
    /// Users other than that of the mount have access, as permissions say.
    pub allow_other: bool,
    /// Special files are devices.
    pub devices: bool,
    /// Setuid and setgid bits count.
    pub set_id: bool,
    /// Programs can be run.
    pub execute: bool,
    /// Which reads set times of access: the rule that the file system was opened with, as the list of
    /// mounts is to show it.
    pub access_times: AccessTimes,
    /// They are set by reads that the kernel's cache would answer, too. The server is told of each opening for
    /// that, which makes a cached one seven times as slow.
    pub exact_access_times: bool,
    /// Each write is durable when it returns.
    pub synchronous: bool,
    /// Each change of names is durable when it returns; it always is where writes are.
    pub synchronous_names: bool,
    /// The kernel may hold written data back: faster, and a lack of space shows when a file is
    /// closed or synced. Otherwise it shows at the write.
    pub write_back: bool,
    /// All files are shown to belong to this user.
    pub shown_uid: Option<u32>,
    /// All files are shown to belong to this group.
    pub shown_gid: Option<u32>,
    /// Whoever asks is root in the volume: nothing is refused, and what is made belongs to root.
    pub fake_root: bool,
    /// What became free for good is given back to the device: a file gets holes there.
    pub discard: bool,
    /// Threads that answer.
    pub threads: NonZeroUsize,
    /// Written data is durable after this time, without an fsync.
    pub checkpoint_interval: Duration,
}

impl Settings {
    /// Whether the kernel may hold data back.
    pub(crate) fn holds_data_back(&self) -> bool {
        self.write_back && !self.read_only
    }

    /// A mount to change a volume, of what the list of mounts calls `name`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            read_only: false,
            allow_other: false,
            devices: false,
            set_id: false,
            execute: true,
            access_times: AccessTimes::Relative,
            exact_access_times: false,
            synchronous: false,
            synchronous_names: false,
            write_back: true,
            shown_uid: None,
            shown_gid: None,
            fake_root: false,
            discard: false,
            threads: default_threads(),
            checkpoint_interval: Duration::from_secs(5),
        }
    }
}

/// Two for each processor: some wait for the device. Of more than sixteen most would sleep.
fn default_threads() -> NonZeroUsize {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::MIN.saturating_add((2 * processors).clamp(4, 16) - 1)
}

/// Where a volume is mounted.
#[derive(Debug)]
pub enum Target {
    /// At a directory.
    Directory(PathBuf),
    /// Another program has mounted it, and gave this descriptor of `/dev/fuse`.
    Connection(OwnedFd),
}

/// Why nothing was mounted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MountFailure {
    /// The system does not mount it there.
    #[error("cannot mount at {}: {}", at.display(), explain(error))]
    Refused {
        /// Where.
        at: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The descriptor is none of a mount, or the mount is gone.
    #[error("the descriptor is not that of a FUSE mount that waits for its server: {0}")]
    Connection(#[source] io::Error),
    /// There is no thread left.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

fn explain(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound if !std::path::Path::new("/dev/fuse").exists() => {
            "; there is no /dev/fuse: load the kernel module `fuse`, or give the container the device \
             (`--device /dev/fuse`)"
        }
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_some() => {
            "; /dev/fuse may not be opened: some systems let only root (`chmod 666 /dev/fuse`)"
        }
        _ if error.to_string().contains("No such file") => {
            "; without the rights of root the program `fusermount3` is needed (package fuse3), or a \
             user namespace (`unshare -Urm`)"
        }
        _ => "",
    };
    format!("{}{remedy}", error.to_string().trim_end())
}
