//! The answers to requests, without the protocol that carries them.
//!
//! Each verb checks that the kernel knows the numbers it uses ([`Nodes`]), and asks the file system.
//! The kernel has checked permissions, and holds the locks of directories: a name is not taken away
//! while it is looked up, and a directory changes by one request at a time.

mod attributes;
mod caller;
mod data;
mod flags;
mod listing;
mod names;
mod state;
mod xattrs;

use crate::counters::Counters;
use crate::ending::Ending;
use crate::failure::{Failures, Log};
use crate::mounts::Listed;
use crate::nodes::Nodes;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use undercroft_fs::{AccessTimes, Error, FileSystem, InodeNumber, Metadata};

pub(crate) use attributes::Attributes;
pub(crate) use caller::Caller;
pub(crate) use data::{END, Seek, Write};

/// What the kernel keeps of files: a second copy, out of date when more than was asked for changes.
pub(crate) trait KernelCache: fmt::Debug + Send + Sync {
    /// It asks for the metadata of a file again, and for its access lists.
    fn forget_attributes(&self, number: InodeNumber);

    /// It forgets a file as soon as no program uses it, and asks for all of it again. Does not wait for that.
    fn forget_file(&self, number: InodeNumber);

    /// It sends the data of a range that it holds back, and drops what it has there. Returns when those
    /// writes were answered, and so must not be called by a thread that answers requests.
    fn collect_data(&self, number: InodeNumber, range: Range<u64>);
}

/// Which reads set times of access, by the options of a mount as the kernel lists them.
fn access_times(options: &str) -> AccessTimes {
    let has = |name| options.split(',').any(|option| option == name);
    if has("noatime") {
        AccessTimes::Never
    } else if has("relatime") {
        AccessTimes::Relative
    } else {
        AccessTimes::Always
    }
}

/// A mounted file system, as requests see it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) fs: FileSystem,
    pub(crate) nodes: Nodes,
    pub(crate) failures: Failures,
    pub(crate) counters: Counters,
    /// The kernel's copy, once there is a way to it.
    pub(crate) kernel: OnceLock<Box<dyn KernelCache>>,
    /// How the kernel listed the mount at first.
    pub(crate) mounted: OnceLock<Listed>,
    /// The kernel lets nothing be changed, and the volume was left clean.
    is_at_rest: AtomicBool,
    /// The owner that all files are shown to have.
    shown_uid: Option<u32>,
    shown_gid: Option<u32>,
    /// Name of the image.
    pub(crate) name: String,
    /// Where it says how it ended; a name space may have no sockets.
    pub(crate) ending: Option<Ending>,
}

impl Server {
    pub(crate) fn new(
        fs: FileSystem,
        name: String,
        (shown_uid, shown_gid): (Option<u32>, Option<u32>),
        log: Log,
    ) -> Arc<Self> {
        let root = fs.root();
        Arc::new(Self {
            fs,
            nodes: Nodes::new(root),
            failures: Failures::new(name.clone(), log),
            counters: Counters::default(),
            kernel: OnceLock::new(),
            mounted: OnceLock::new(),
            is_at_rest: AtomicBool::new(false),
            shown_uid,
            shown_gid,
            name,
            ending: Ending::new().ok(),
        })
    }

    /// Whether the volume is clean as long as the kernel lets nothing be changed.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_at_rest.load(Ordering::Acquire)
    }

    /// Does as a mount does whose options were those `before`. If it has become read-only, the volume is left
    /// clean: what the kernel held back is here by then.
    pub(crate) fn follow(&self, now: &Listed, before: &str) {
        if now.read_only {
            self.fs.set_access_times(AccessTimes::Never);
            let settled = self.fs.volume().settle();
            self.is_at_rest.store(settled.is_ok(), Ordering::Release);
            if let Err(error) = settled {
                self.note_failed_write(&error);
            }
            return;
        }
        self.is_at_rest.store(false, Ordering::Release);
        if now.options != before {
            self.fs.set_access_times(access_times(&now.options));
        }
    }

    /// More of the metadata of a file changed than the kernel knows of: it is told before the answer.
    fn tell_of_change(&self, number: InodeNumber) {
        if let Some(kernel) = self.kernel.get() {
            kernel.forget_attributes(number);
        }
    }

    /// The times of a file are not those that the kernel shows.
    fn tell_of_times(&self, metadata: &Metadata) {
        // Those of other files it takes from each answer.
        if metadata.is_file()
            && let Some(kernel) = self.kernel.get()
        {
            kernel.forget_file(metadata.number);
        }
    }

    /// The metadata of a file as it is shown.
    fn shown(&self, mut metadata: Metadata) -> Metadata {
        metadata.uid = self.shown_uid.unwrap_or(metadata.uid);
        metadata.gid = self.shown_gid.unwrap_or(metadata.gid);
        metadata
    }

    /// The metadata of a file that the kernel is told of now.
    fn entry(&self, metadata: Metadata) -> Metadata {
        self.nodes.remember(metadata.number);
        self.shown(metadata)
    }

    /// The kernel forgets a file. The last one to forget a file without a name frees it.
    pub(crate) fn forget(&self, number: InodeNumber, lookups: u64) {
        if number != self.fs.root() {
            drop(self.nodes.forget(number, lookups));
        }
    }

    /// Lets go of files that were idle. What was written through them is made durable first. One that
    /// lost data stays open, until an fsync was told.
    pub(crate) fn let_go(self: &Arc<Self>) {
        for opening in self.nodes.let_go() {
            if opening.file.has_untold_loss() {
                continue;
            }
            opening.note_storing();
            let (server, number) = (Arc::clone(self), opening.file.number());
            opening.file.store_data().on_complete(move |answer| {
                server.nodes.note_stored(number, answer.is_ok());
                if let Err(error @ Error::NotWritten { .. }) = answer {
                    server.failures.note(&error);
                }
            });
        }
    }

    /// Starts to make everything durable.
    pub(crate) fn checkpoint(self: &Arc<Self>) {
        let server = Arc::clone(self);
        self.fs.sync().on_complete(move |answer| {
            if let Err(error) = answer {
                server.note_failed_write(&error);
            }
        });
    }

    /// Gives back what became free for good. What the device does not take is only not given back.
    pub(crate) fn discard_freed(&self) {
        if let Err(error) = self.fs.volume().discard_freed() {
            self.failures.note(&error);
        }
    }

    fn note_failed_write(&self, error: &Error) {
        match error {
            Error::Poisoned(why) => self.failures.end_of_changes(why),
            error => self.failures.note(error),
        }
    }
}
