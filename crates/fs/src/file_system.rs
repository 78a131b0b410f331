//! An open file system.

use crate::access::AccessRule;
use crate::clock::Clock;
use crate::error::PathError;
use crate::options::{AccessTimes, OpenOptions};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, Reserved};
use undercroft_xfs::format::{InodeCore, Timestamp, TimestampEncoding};
use undercroft_xfs::inode::Inode;
use undercroft_xfs::ops;
use undercroft_xfs::recovery::LogState;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::Usage;
use undercroft_xfs::{Error, SyncTicket, Volume};

/// An open file system, used by any number of threads. A clone is another handle of the same.
///
/// Its verbs take paths, in the manner of `std::fs`, and resolve symbolic links inside the volume.
/// Those by number are [`nodes`](Self::nodes).
///
/// When the last handle of one that was [opened](Self::open) here is dropped, files and clones
/// included, it is [closed](Self::close), as far as that works: only `close` tells of an error, and
/// only tickets, that something is durable before. A process that ends without either leaves a
/// volume as a crash does: all that a ticket or [`sync_and_wait`](Self::sync_and_wait) covered is
/// there when it is opened next.
#[derive(Clone)]
pub struct FileSystem {
    opened: Arc<Opened>,
    clock: Clock,
    /// A cache above sets the times of changes of data.
    keeps_times: bool,
    access_times: Arc<AccessRule>,
    /// Where paths without a slash in front start, from the root, without links and dots.
    current_directory: Arc<[u8]>,
}

/// What all handles share.
struct Opened {
    volume: Arc<Volume>,
    /// No other code closes it.
    is_own: bool,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.is_own {
            // There is no caller to be told, and those who asked for durability were told.
            let _ = self.volume.close();
        }
    }
}

impl FileSystem {
    /// Opens the file system that fills `device`. If it may be changed, the device is
    /// [reserved](Reserved) for it: nothing else in this program that changes a volume can be
    /// opened or begun there until it is [closed](Self::close), or the last handle, file, ticket and
    /// callback that has it is dropped. From other programs a
    /// [`FileDevice`](undercroft_block::FileDevice) keeps its file or disk, until it is dropped.
    ///
    /// # Errors
    /// The device is open for change; it holds no XFS, or one that this version does not know, or cannot change; its
    /// journal cannot be replayed, or must not be and has something; the device failed.
    pub fn open(device: Arc<dyn BlockDevice>, options: &OpenOptions) -> Result<Self, Error> {
        let volume = match (options.writable, options.replay) {
            (true, replay) => {
                let device = Reserved::new(device)?;
                if !replay {
                    check_clean(&device)?;
                }
                Volume::open_reserved(device, &options.live)?
            }
            (false, true) => Volume::open(device)?,
            (false, false) => Volume::open_unreplayed(device)?,
        };
        Ok(Self {
            opened: Arc::new(Opened { volume: Arc::new(volume), is_own: true }),
            clock: options.clock,
            keeps_times: false,
            access_times: Arc::new(AccessRule::new(options.access_times)),
            current_directory: Arc::from(*b"/"),
        })
    }

    /// The file system of an open volume, which the caller closes.
    #[must_use]
    pub fn from_volume(volume: Arc<Volume>) -> Self {
        let opened = Arc::new(Opened { volume, is_own: false });
        let access_times = Arc::new(AccessRule::new(AccessTimes::default()));
        Self {
            opened,
            clock: Clock::default(),
            keeps_times: false,
            access_times,
            current_directory: Arc::from(*b"/"),
        }
    }

    /// This handle with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Where times of changes come from.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// This handle for a cache above that counts the times of changes of data itself: files that it
    /// opens keep theirs when their data changes, until the cache
    /// [sets](crate::Change::changed) those that it has shown.
    #[must_use]
    pub fn with_kept_times(self) -> Self {
        Self { keeps_times: true, ..self }
    }

    /// Whether files keep their times when their data changes.
    #[must_use]
    pub fn keeps_times(&self) -> bool {
        self.keeps_times
    }

    /// This handle with another rule for times of access.
    #[must_use]
    pub fn with_access_times(self, access_times: AccessTimes) -> Self {
        Self { access_times: Arc::new(AccessRule::new(access_times)), ..self }
    }

    /// Gives this handle, its clones and its open files another rule for times of access.
    pub fn set_access_times(&self, access_times: AccessTimes) {
        self.access_times.set(access_times);
    }

    /// This handle with another directory for paths without a slash in front, which start at the root
    /// otherwise. It is kept by its path.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata); it is no directory.
    pub fn with_current_directory(self, path: impl AsRef<Path>) -> Result<Self, PathError> {
        let current_directory = self.directory_path(path.as_ref())?.into();
        Ok(Self { current_directory, ..self })
    }

    /// The directory that paths without a slash in front start at.
    #[must_use]
    pub fn current_directory(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.current_directory))
    }

    /// The volume below.
    #[must_use]
    pub fn volume(&self) -> &Arc<Volume> {
        &self.opened.volume
    }

    /// Number of the root directory.
    #[must_use]
    pub fn root(&self) -> InodeNumber {
        self.volume().geometry().root_inode
    }

    /// Whether it was opened for change.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.volume().is_live()
    }

    /// Leaves the volume as an unmount does: everything in its place, nothing to replay. Changes
    /// that other threads make meanwhile are refused, or part of what it leaves. All handles can
    /// read afterwards, and change nothing; the device can be opened for changes anew. Files without
    /// a name are freed, open or not. Closing it again does nothing.
    ///
    /// # Errors
    /// Data of a file could not be written, then the file system is still open, and takes changes
    /// again; the device failed.
    pub fn close(&self) -> Result<(), Error> {
        self.volume().close()
    }

    /// Starts to make everything durable that was changed so far, in all files; the ticket tells
    /// when it is.
    pub fn sync(&self) -> SyncTicket {
        self.volume().sync_all()
    }

    /// As [`sync`](Self::sync), and waits.
    ///
    /// # Errors
    /// As the ticket would say. There is nothing to be done where nothing can be changed.
    pub fn sync_and_wait(&self) -> Result<(), Error> {
        self.volume().sync_all_and_wait()
    }

    /// How full the volume is now.
    ///
    /// # Errors
    /// A group's headers are damaged; the device failed.
    pub fn statfs(&self) -> Result<Usage, Error> {
        self.volume().usage()
    }

    /// The time of changes that are made now, or the nearest that the volume can hold.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let has_bigtime = self.volume().geometry().features.bigtime();
        let encoding =
            if has_bigtime { TimestampEncoding::Bigtime } else { TimestampEncoding::Legacy };
        self.clock.now().clamped(encoding)
    }

    /// The time that a file gets whose data changes now, if it gets one.
    pub(crate) fn data_time(&self) -> Option<Timestamp> {
        (!self.keeps_times).then(|| self.now())
    }

    /// Sets the time of access of an inode that was read now, if it is due.
    pub(crate) fn note_read(&self, inode: &Arc<Inode>) {
        if !self.is_writable() {
            return;
        }
        let due = self.access_due(&inode.read().core);
        if let Some(now) = due {
            self.volume().note_access(inode, now);
        }
    }

    pub(crate) fn access_due(&self, core: &InodeCore) -> Option<Timestamp> {
        self.access_times.get().due(core, || self.now())
    }

    /// The inode of a number from a caller.
    pub(crate) fn inode(&self, number: InodeNumber) -> Result<Arc<Inode>, Error> {
        let inode = self.volume().inode_in_use(number)?;
        let is_gone = inode.read().is_gone();
        if is_gone { Err(Error::Stale { inode: number }) } else { Ok(inode) }
    }

    /// The inode that `name` stands for in a directory. While the directory is locked for the look
    /// no thread takes the name away, so it is the file that had the name, even if another has its
    /// number later.
    pub(crate) fn child(
        &self,
        directory: &Inode,
        name: &[u8],
    ) -> Result<Option<Arc<Inode>>, Error> {
        if !matches!(name, b"." | b"..") {
            ops::check_name(name)?;
        }
        let mut last: Option<Arc<Inode>> = None;
        loop {
            let found = {
                let directory = directory.read();
                match ops::lookup(self.volume(), &directory, name)? {
                    None => return Ok(None),
                    Some(number) => self.volume().inode(number).map_err(Error::into_damage)?,
                }
            };
            if !found.read().is_gone() {
                return Ok(Some(found));
            }
            // Removed since, and then the name is gone too; if not, it leads to nothing.
            if last.is_some_and(|last| Arc::ptr_eq(&last, &found)) {
                let number = found.read().number;
                let what = format!("{} leads to it, but it has no name", ops::path_text(name));
                return Err(Error::Inode { inode: number, what });
            }
            last = Some(found);
        }
    }
}

/// Refuses a volume whose journal has something to replay.
fn check_clean(device: &Arc<dyn BlockDevice>) -> Result<(), Error> {
    if Volume::open_unreplayed(Arc::clone(device))?.log_state()? == LogState::Clean {
        return Ok(());
    }
    let what = "it was not unmounted, and cannot be changed without its journal";
    Err(Error::NotUsable(what.into()))
}

impl fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSystem")
            .field("root", &self.root())
            .field("is_writable", &self.is_writable())
            .field("clock", &self.clock)
            .field("access_times", &self.access_times.get())
            .finish_non_exhaustive()
    }
}
