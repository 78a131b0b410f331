//! The FUSE protocol: requests become verbs of the [`Server`], and their results become replies.
//!
//! Only this module has types of the library `fuser`, whose interface changes with each release.

mod attributes;
mod capabilities;
mod forgetting;
mod kernel;
mod replies;
mod session;
mod writeback_cache;

pub(crate) use session::{Ends, start};

use crate::failure::Failure;
use crate::ioctl;
use crate::server::{Attributes, Caller, Seek, Server, Write};
use crate::settings::Settings;
use attributes::{
    FOR_EVER, attributes, decode_device, errno, generation, kind, no_file, node, number, set_time,
    timestamp,
};
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, INodeNo,
    IoctlFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use replies::{answer, send_sized};
use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use undercroft_block::Buffer;
use undercroft_fs::{AccessTimes, Existing, InodeNumber, Owner};
use writeback_cache::WritebackCache;

const EXCLUSIVE: i32 = rustix::fs::OFlags::EXCL.bits() as i32;
/// `O_SYNC` contains it.
const DATA_SYNC: i32 = rustix::fs::OFlags::DSYNC.bits() as i32;
const ACCESS_MODE: i32 = rustix::fs::OFlags::ACCMODE.bits() as i32;
const WRITES_ONLY: i32 = rustix::fs::OFlags::WRONLY.bits() as i32;
const APPENDS: i32 = rustix::fs::OFlags::APPEND.bits() as i32;
const NO_ACCESS_TIME: i32 = rustix::fs::OFlags::NOATIME.bits() as i32;
const WHITEOUT: u32 = rustix::fs::RenameFlags::WHITEOUT.bits();
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// Handle of an opening whose reads set the time of access, and of files that the kernel opens by itself.
const TIMED: FileHandle = FileHandle(0);
/// Handle of one whose reads do not, since the program has not asked for them: it writes parts of pages, or
/// wants no time to be set.
const UNTIMED: FileHandle = FileHandle(1);

/// Bytes that one request copies at most: the answer is a word.
const MOST_COPIED: u64 = 1 << 30;

/// Longest name.
const NAME_BYTES: u32 = 255;

thread_local! {
    /// Memory for data on its way to the kernel, as long as the longest request so far.
    static READ: Cell<Option<Buffer>> = const { Cell::new(None) };
}

/// The file system that the library calls.
pub(crate) struct Translator {
    server: Arc<Server>,
    root: InodeNumber,
    /// Asks for what the kernel holds back, if it may.
    writeback_cache: Option<WritebackCache>,
    /// Changes of names are durable before they are answered.
    syncs_names: bool,
    /// Which reads that the kernel's cache would answer set times of access. If some do, it is told of each
    /// opening.
    access_times: AccessTimes,
    /// Whoever asks is root.
    fake_root: bool,
}

impl Translator {
    pub(crate) fn new(server: Arc<Server>, settings: &Settings) -> io::Result<Self> {
        let root = server.fs.root();
        let writeback_cache =
            if settings.holds_data_back() { Some(WritebackCache::start(&server)?) } else { None };
        let syncs_names = settings.synchronous || settings.synchronous_names;
        let is_exact = settings.exact_access_times && !settings.read_only;
        let access_times = if is_exact { settings.access_times } else { AccessTimes::Never };
        let fake_root = settings.fake_root;
        Ok(Self { server, root, writeback_cache, syncs_names, access_times, fake_root })
    }

    fn caller(&self, request: &Request) -> Caller {
        if self.fake_root {
            return Caller::FAKE_ROOT;
        }
        Caller {
            uid: request.uid(),
            gid: request.gid(),
            thread: request.pid(),
            is_fake_root: false,
        }
    }

    fn hears_openings(&self) -> bool {
        self.access_times != AccessTimes::Never
    }

    /// The handle of an opening, and what the kernel keeps of the file meanwhile. A read that is to set the
    /// time of access must come here, so the kernel has nothing to answer it with.
    fn opened(&self, number: InodeNumber, flags: i32) -> Result<(FileHandle, FopenFlags), Failure> {
        let is_timed = flags & ACCESS_MODE != WRITES_ONLY && flags & NO_ACCESS_TIME == 0;
        let handle = if is_timed { TIMED } else { UNTIMED };
        let is_due =
            is_timed && self.hears_openings() && self.server.fs.nodes().is_access_due(number)?;
        let keeps = if is_due { FopenFlags::empty() } else { FopenFlags::FOPEN_KEEP_CACHE };
        Ok((handle, keeps))
    }

    fn errno(&self, failure: &Failure) -> Errno {
        errno(self.server.failures.number(failure))
    }

    fn number(&self, node: INodeNo) -> InodeNumber {
        number(node, self.root)
    }
}

impl Filesystem for Translator {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let write_back = self.writeback_cache.is_some();
        capabilities::negotiate(config, write_back, self.access_times, self.fake_root);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _under_way = self.server.counters.begin();
        match self.server.lookup(self.number(parent), name.as_bytes()) {
            Ok(Some(metadata)) => self.send_entry(reply, Ok(metadata)),
            Ok(None) => reply.entry(&FOR_EVER, &no_file(), fuser::Generation(0)),
            Err(failure) => reply.error(self.errno(&failure)),
        }
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        self.server.forget(self.number(ino), lookups);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let _under_way = self.server.counters.begin();
        self.send_attributes(reply, self.server.get_attributes(self.number(ino)));
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        changed: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let _under_way = self.server.counters.begin();
        let set = Attributes {
            // Twelve bits.
            mode: mode.map(|mode| (mode & 0o7777) as u16),
            uid,
            gid,
            size,
            accessed: accessed.map(set_time),
            modified: modified.map(set_time),
            changed: changed.map(timestamp),
        };
        let set = self.server.set_attributes(self.number(ino), &set, self.caller(request));
        self.send_attributes(reply, set);
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        let _under_way = self.server.counters.begin();
        answer!(self, reply, self.server.read_link(self.number(ino)), target => reply.data(&target));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let _under_way = self.server.counters.begin();
        let (at, mode) = ((self.number(parent), name.as_bytes()), (mode, umask));
        let made = self.server.mknod(at, mode, decode_device(device), self.caller(request));
        self.send_made(parent, reply, made);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let _under_way = self.server.counters.begin();
        let at = (self.number(parent), name.as_bytes());
        self.send_made(parent, reply, self.server.mkdir(at, (mode, umask), self.caller(request)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _under_way = self.server.counters.begin();
        self.send_renamed(parent, reply, self.server.unlink(self.number(parent), name.as_bytes()));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _under_way = self.server.counters.begin();
        self.send_renamed(parent, reply, self.server.rmdir(self.number(parent), name.as_bytes()));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let _under_way = self.server.counters.begin();
        let at = (self.number(parent), name.as_bytes());
        let target = target.as_os_str().as_bytes();
        self.send_made(parent, reply, self.server.symlink(at, target, self.caller(request)));
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let _under_way = self.server.counters.begin();
        let owner = Owner { uid: request.uid(), gid: request.gid() };
        let flags = undercroft_fs::RenameFlags {
            no_replace: flags.contains(RenameFlags::RENAME_NOREPLACE),
            exchange: flags.contains(RenameFlags::RENAME_EXCHANGE),
            whiteout: (flags.bits() & WHITEOUT != 0).then_some(owner),
        };
        let from = (self.number(parent), name.as_bytes());
        let to = (self.number(new_parent), new_name.as_bytes());
        self.send_renamed(new_parent, reply, self.server.rename(from, to, flags));
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _under_way = self.server.counters.begin();
        let linked = self.server.link(self.number(ino), self.number(parent), name.as_bytes());
        self.send_made(parent, reply, linked);
    }

    /// Where no cached read sets a time the kernel asks once, and then opens files by itself.
    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if !self.hears_openings() {
            return reply.error(Errno::ENOSYS);
        }
        let _under_way = self.server.counters.begin();
        let number = self.number(ino);
        let writes = flags.0 & ACCESS_MODE != 0;
        let allowed = self.server.expect_openable(number, writes, flags.0 & APPENDS != 0);
        let opened = allowed.and_then(|()| self.opened(number, flags.0));
        answer!(self, reply, opened, (handle, flags) => reply.opened(handle, flags));
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let _under_way = self.server.counters.begin();
        let size = size as usize;
        let spare = READ.take().filter(|spare| spare.len() >= size);
        let mut memory = spare.unwrap_or_else(|| Buffer::zeroed(size));
        let unused = memory.split_off(size);
        let is_timed = handle != UNTIMED;
        let read = self.server.read(self.number(ino), offset, memory, is_timed);
        answer!(self, reply, read, (mut memory, len) => {
            reply.data(&memory[..len]);
            if memory.rejoin(unused).is_ok() {
                READ.set(Some(memory));
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let _under_way = self.server.counters.begin();
        let is_cached = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let keeps_set_id = !write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let write = Write { offset, data, is_direct: !is_cached, keeps_set_id };
        // The kernel sends no longer ones than it was told to.
        let len = data.len() as u32;
        let number = self.number(ino);
        if let Err(failure) = self.server.write(number, &write, self.caller(request)) {
            reply.error(self.errno(&failure));
            if let (Some(writeback_cache), false) = (&self.writeback_cache, write.is_direct) {
                // What the kernel still has of it is not in the file.
                writeback_cache.drop_data(number, offset..offset.saturating_add(len.into()));
            }
            return;
        }
        if is_cached || flags.0 & DATA_SYNC == 0 {
            return reply.written(len);
        }
        let server = Arc::clone(&self.server);
        self.server.sync(number, true, move |done| match done {
            Ok(()) => reply.written(len),
            Err(failure) => reply.error(errno(server.failures.number(&failure))),
        });
    }

    /// The kernel asks once, and then closes files by itself.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let _under_way = self.server.counters.begin();
        self.sync(ino, data_only, reply);
    }

    /// As [`open`](Self::open).
    fn opendir(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if !self.hears_openings() {
            return reply.error(Errno::ENOSYS);
        }
        let _under_way = self.server.counters.begin();
        let opened = self.opened(self.number(ino), flags.0);
        answer!(self, reply, opened, (handle, flags) => {
            reply.opened(handle, flags | FopenFlags::FOPEN_CACHE_DIR);
        });
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let _under_way = self.server.counters.begin();
        let listed = self.server.list(self.number(ino), offset, |entry, file_type| {
            let name = OsStr::from_bytes(entry.name);
            !reply.add(INodeNo(entry.number.0), entry.next, kind(file_type), name)
        });
        answer!(self, reply, listed, () => reply.ok());
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let _under_way = self.server.counters.begin();
        let listed = self.server.list_files(self.number(ino), offset, |entry, metadata| {
            let number = INodeNo(metadata.number.0);
            let (attributes, generation) = (attributes(metadata, number), generation(metadata));
            let name = OsStr::from_bytes(entry.name);
            !reply.add(number, entry.next, name, &FOR_EVER, &attributes, generation)
        });
        answer!(self, reply, listed, () => reply.ok());
    }

    fn fsyncdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let _under_way = self.server.counters.begin();
        self.sync(ino, data_only, reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let _under_way = self.server.counters.begin();
        answer!(self, reply, self.server.fs.statfs().map_err(Failure::from), usage => {
            reply.statfs(
                usage.blocks,
                usage.free_blocks,
                usage.free_blocks,
                usage.inodes.saturating_add(usage.free_inodes),
                usage.free_inodes,
                usage.block_size,
                NAME_BYTES,
                usage.block_size,
            );
        });
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let _under_way = self.server.counters.begin();
        let (number, attribute) = (self.number(ino), (name.as_bytes(), value));
        let set = self.server.set_xattr(number, attribute, flags, self.caller(request));
        self.send_done(reply, set);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let _under_way = self.server.counters.begin();
        let found = self.server.get_xattr(self.number(ino), name.as_bytes());
        answer!(self, reply, found, value => send_sized(reply, &value, size));
    }

    fn listxattr(&self, request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let _under_way = self.server.counters.begin();
        let found = self.server.list_xattrs(self.number(ino), self.caller(request));
        answer!(self, reply, found, list => send_sized(reply, &list, size));
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _under_way = self.server.counters.begin();
        self.send_done(reply, self.server.remove_xattr(self.number(ino), name.as_bytes()));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let _under_way = self.server.counters.begin();
        let at = (self.number(parent), name.as_bytes());
        let existing = if flags & EXCLUSIVE != 0 { Existing::Refuse } else { Existing::Open };
        let made = self.server.create(at, (mode, umask), existing, self.caller(request));
        answer!(self, reply, made, metadata => {
            let attributes = attributes(&metadata, node(metadata.number, self.root));
            let (handle, flags) = match self.opened(metadata.number, flags) {
                Ok(opened) => opened,
                Err(failure) => return reply.error(self.errno(&failure)),
            };
            self.name_changed(parent, move |failed| match failed {
                None => {
                    let generation = generation(&metadata);
                    reply.created(&FOR_EVER, &attributes, generation, handle, flags);
                }
                Some(errno) => reply.error(errno),
            });
        });
    }

    fn ioctl(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        command: u32,
        bytes: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        let _under_way = self.server.counters.begin();
        if command == ioctl::TRIM {
            let trimmed = self.server.trim(bytes, self.caller(request));
            answer!(self, reply, trimmed, bytes => reply.ioctl(0, &bytes));
            return;
        }
        let number = self.number(ino);
        if let Some(writeback_cache) = &self.writeback_cache
            && Server::is_control_of_data(command)
        {
            let bytes = bytes.to_vec();
            return writeback_cache.run_with_data(number, move |server| {
                match server.control(number, command, &bytes) {
                    Ok(bytes) => reply.ioctl(0, &bytes),
                    Err(failure) => reply.error(errno(server.failures.number(&failure))),
                }
            });
        }
        let done = self.server.control(number, command, bytes);
        answer!(self, reply, done, bytes => reply.ioctl(0, &bytes));
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let _under_way = self.server.counters.begin();
        let mode = mode.cast_unsigned();
        let number = self.number(ino);
        let range = (offset, len);
        let done = self.server.allocate(number, mode, range, self.caller(request));
        self.send_done(reply, done);
    }

    fn lseek(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let _under_way = self.server.counters.begin();
        let what = match whence {
            SEEK_DATA => Seek::Data,
            SEEK_HOLE => Seek::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        if let Some(writeback_cache) = &self.writeback_cache {
            return writeback_cache.seek(self.number(ino), offset, what, reply);
        }
        answer!(self, reply, self.server.seek(self.number(ino), offset, what), found => {
            // Files have less than 2^63 bytes.
            reply.offset(found.cast_signed());
        });
    }

    fn copy_file_range(
        &self,
        request: &Request,
        source: INodeNo,
        _: FileHandle,
        from: u64,
        target: INodeNo,
        _: FileHandle,
        to: u64,
        len: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let _under_way = self.server.counters.begin();
        let (source, target) = ((self.number(source), from), (self.number(target), to));
        let len = len.min(MOST_COPIED);
        let copied = self.server.copy(source, target, len, self.caller(request));
        answer!(self, reply, copied, len => reply.written(len as u32));
    }
}
