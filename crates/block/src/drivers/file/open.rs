//! Opening a file as a device: the kinds that are accepted, its size, the alignment of direct I/O.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, fstatfs, ioctl_blksszget, major, minor,
    statx,
};
use rustix::ioctl;

use super::exclusive::Exclusive;
use crate::driver::{OpenError, Taken};
use crate::units::{Limits, SECTOR_SIZE, Sector};

/// `IOV_MAX` of Linux: most pieces of memory in one call.
pub(super) const MAX_SEGMENTS: usize = 1024;

/// `TMPFS_MAGIC` and `RAMFS_MAGIC` of statfs(2).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// `FUSE_SUPER_MAGIC` of statfs(2).
const FUSE: u64 = 0x6573_5546;

/// A file that is a device, as its drivers share it.
pub(super) struct OpenFile {
    /// Shared with those who were told where bytes of it are.
    file: Arc<File>,
    name: String,
    read_only: bool,
    /// No block device.
    is_regular: bool,
    /// In sectors.
    capacity: AtomicU64,
    /// Whether its file system keeps files in memory.
    in_memory: bool,
    /// Whether its file system is a program.
    in_user_space: bool,
    /// Whether its file system has reads that give up instead of waiting.
    gives_up: AtomicBool,
    /// What direct I/O asks for; `None` when transfers go through the page cache.
    direct: Option<Alignment>,
    /// `None` if it is only read, or its maker has the right to change it.
    exclusive: Option<Exclusive>,
}

/// What transfers without a page cache between have to be multiples of, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Alignment {
    /// Addresses of memory.
    memory: u32,
    /// Offsets in the file, and lengths.
    offset: u32,
}

impl OpenFile {
    /// Opens the existing file at `path`.
    pub(super) fn at(path: &Path, read_only: bool, direct: bool) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        // To open a pipe is to wait for its other end.
        if !is_file_or_disk(&path.metadata()) {
            return Err(OpenError::NotAFile { name });
        }
        match OpenOptions::new().read(true).write(!read_only).open(path) {
            Ok(file) => Self::from_file(file, &name, read_only, direct),
            Err(source) => Err(OpenError::Open { name, source }),
        }
    }

    /// Takes `file` for this process alone, unless it is only read.
    pub(super) fn from_file(
        file: File,
        name: &str,
        read_only: bool,
        direct: bool,
    ) -> Result<Self, OpenError> {
        if read_only {
            return Self::unclaimed(file, name, read_only, direct);
        }
        if !is_file_or_disk(&file.metadata()) {
            return Err(OpenError::NotAFile { name: name.to_owned() });
        }
        let (file, exclusive) = Exclusive::claim(file, name)?;
        // The kernel opens it for writing, and loses what is written to it.
        if is_write_protected(&file) {
            return Err(OpenError::WriteProtected { name: name.to_owned() });
        }
        Ok(Self { exclusive: Some(exclusive), ..Self::unclaimed(file, name, read_only, direct)? })
    }

    /// Looks at kind and size of `file`, and makes its I/O direct if asked to.
    pub(super) fn unclaimed(
        file: File,
        name: &str,
        read_only: bool,
        direct: bool,
    ) -> Result<Self, OpenError> {
        let name = name.to_owned();
        let bytes = match size(&file) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(OpenError::NotAFile { name }),
            Err(source) => return Err(OpenError::Size { name, source }),
        };
        let direct = match direct.then(|| make_direct(&file)).transpose() {
            Ok(direct) => direct,
            Err(source) => return Err(OpenError::Direct { name, source }),
        };
        // A partial last sector counts; its missing bytes read as zeroes.
        let capacity = AtomicU64::new(Sector::covering(bytes).0);
        let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let kind = fstatfs(&file).map_or(0, |status| status.f_type as u64);
        let in_memory = is_regular && IN_MEMORY.contains(&kind);
        let in_user_space = kind == FUSE;
        let gives_up = AtomicBool::new(true);
        let exclusive = None;
        Ok(Self {
            file: Arc::new(file),
            name,
            read_only,
            is_regular,
            capacity,
            in_memory,
            in_user_space,
            gives_up,
            direct,
            exclusive,
        })
    }

    /// The same regular file once more, for direct I/O beside this one; `None` where the file
    /// system does not say that it has direct I/O.
    pub(super) fn reopened_direct(&self) -> Option<Self> {
        let status = statx(&self.file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
        if !StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::DIOALIGN)
            || !self.file.metadata().ok()?.is_file()
        {
            return None;
        }
        // The file may have no name. Another description is needed: the flag belongs to that.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        Self::unclaimed(file, &self.name, self.read_only, true).ok()
    }

    /// Makes the file `bytes` bytes long, rounded up to whole sectors.
    pub(super) fn set_len(&self, bytes: u64) -> Result<(), OpenError> {
        let capacity = Sector::covering(bytes);
        let result = match capacity.to_bytes() {
            _ if self.read_only => Err(io::ErrorKind::PermissionDenied.into()),
            None => Err(io::ErrorKind::FileTooLarge.into()),
            Some(bytes) => self.file.set_len(bytes),
        };
        let bytes = capacity.0.saturating_mul(SECTOR_SIZE);
        let name = || self.name.clone();
        result.map_err(|source| OpenError::Resize { name: name(), bytes, source })?;
        self.capacity.store(capacity.0, Ordering::Release);
        Ok(())
    }

    /// Whether no other program can change it by now, if it was opened for change.
    pub(super) fn check_alone(&self) -> Result<(), Taken> {
        self.exclusive.as_ref().map_or(Ok(()), Exclusive::check)
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(super) fn capacity(&self) -> Sector {
        Sector(self.capacity.load(Ordering::Acquire))
    }

    /// What a read is to find at `end`, where the file ends: its last sector, which may be there in part,
    /// or nothing. If it ends before, it was cut while it was open, and zeroes would be wrong data.
    pub(super) fn expect_end(&self, end: u64) -> io::Result<()> {
        let sectors = self.capacity();
        if Sector::covering(end) >= sectors {
            return Ok(());
        }
        let what = format!(
            "the file ends at byte {end}, in front of sector {sectors} where it ended before: it was cut \
             while it was open"
        );
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, what))
    }

    /// Unit of offsets and lengths in bytes; 1 if any will do.
    pub(super) fn block(&self) -> u64 {
        self.direct.map_or(1, |direct| direct.offset.into())
    }

    /// Whether transfers go through the page cache.
    pub(super) fn uses_page_cache(&self) -> bool {
        self.direct.is_none()
    }

    /// Whether a transfer blocks the thread that starts it, even if it asks not to be blocked: seen
    /// on Linux 6.18 with files of file systems in user space.
    pub(super) fn blocks_submitters(&self) -> bool {
        self.in_user_space
    }

    /// Whether the disk has queues that a polled ring can use; false too when that is not known.
    pub(super) fn can_be_polled(&self) -> bool {
        let Ok(metadata) = self.file.metadata() else { return false };
        let is_device = metadata.file_type().is_block_device();
        let number = if is_device { metadata.rdev() } else { metadata.dev() };
        let disk = format!("/sys/dev/block/{}:{}", major(number), minor(number));
        // A partition has no queues of its own.
        ["queue/io_poll", "../queue/io_poll"]
            .iter()
            .filter_map(|attribute| std::fs::read_to_string(format!("{disk}/{attribute}")).ok())
            .any(|value| value.trim() == "1")
    }

    /// Whether a write takes no more than a copy into the page cache, mostly. File systems in user
    /// space see most writes at once.
    pub(super) fn takes_copies(&self) -> bool {
        self.uses_page_cache() && !self.in_user_space
    }

    /// Whether the bytes are in memory, and no transfer waits for a disk.
    pub(super) fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// Whether a read can be asked to give up instead of waiting for a disk; it is assumed until the
    /// file system says otherwise.
    pub(super) fn gives_up(&self) -> bool {
        self.uses_page_cache() && self.gives_up.load(Ordering::Relaxed)
    }

    /// The file system does not have reads that give up.
    pub(super) fn never_gives_up(&self) {
        self.gives_up.store(false, Ordering::Relaxed);
    }

    /// What requests must look like.
    pub(super) fn limits(&self) -> Limits {
        // Of disks the operating system says for each range that it cannot.
        let clones_ranges = self.is_regular;
        let limits = Limits { max_segments: MAX_SEGMENTS, clones_ranges, ..Limits::default() };
        let Some(direct) = self.direct else { return limits };
        Limits {
            block_bytes: SECTOR_SIZE.max(direct.offset.into()),
            memory_alignment: direct.memory as usize,
            ..limits
        }
    }
}

/// Makes the I/O of `file` direct; returns its alignment.
fn make_direct(file: &File) -> io::Result<Alignment> {
    fcntl_setfl(file, fcntl_getfl(file)? | OFlags::DIRECT)?;
    let status = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    let (memory, offset) = (status.stx_dio_mem_align, status.stx_dio_offset_align);
    if StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::DIOALIGN) {
        // Zeroes say that this file cannot have direct I/O, although the flag could be set.
        let possible = memory > 0 && offset > 0;
        return possible
            .then_some(Alignment { memory, offset })
            .ok_or_else(|| io::ErrorKind::Unsupported.into());
    }
    // Linux before 6.1 does not say. A page is enough for every file system; a block device takes
    // its own blocks.
    let is_device = file.metadata()?.file_type().is_block_device();
    let unit = if is_device { ioctl_blksszget(file)? } else { 4096 };
    Ok(Alignment { memory: unit, offset: unit })
}

/// Whether a file can be a device, as far as it can be seen.
fn is_file_or_disk(metadata: &io::Result<Metadata>) -> bool {
    let Ok(metadata) = metadata else { return true };
    metadata.is_file() || metadata.file_type().is_block_device()
}

/// `BLKROGET` of linux/fs.h.
const GET_READ_ONLY: ioctl::Opcode = 0x125e;

/// Whether `file` is a disk that is not to be written to.
fn is_write_protected(file: &File) -> bool {
    // SAFETY: `BLKROGET` fills an int. Other kinds of files refuse the number.
    #[allow(unsafe_code, reason = "a request of the kernel that no library wraps")]
    let answer = unsafe { ioctl::ioctl(file, ioctl::Getter::<GET_READ_ONLY, i32>::new()) };
    answer.is_ok_and(|is_protected| is_protected != 0)
}

/// Size in bytes; `None` if `file` is neither a regular file nor a block device.
fn size(mut file: &File) -> io::Result<Option<u64>> {
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok(Some(metadata.len()))
    } else if metadata.file_type().is_block_device() {
        // stat reports 0 for block devices; the end of the file is the end of the device.
        file.seek(SeekFrom::End(0)).map(Some)
    } else {
        Ok(None)
    }
}
