//! A mount that answers at once: names and sizes in memory, data thrown away. It shows what the
//! protocol and its library cost, which no file system behind them can beat.
//!
//! `cargo run --release -p undercroft-judges --example null_mount -- DIR [--cached]` serves DIR until
//! it is unmounted. Without `--cached` the kernel asks again each time: attributes and names have no
//! lifetime. With it they live without end.

#![allow(clippy::unwrap_used, reason = "a peer for benchmarks: a failure ends it")]

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

/// The longest read.
const LONGEST: usize = 1 << 20;
/// A lifetime without end, as far as the protocol can say it.
const ENDLESS: Duration = Duration::from_secs(u32::MAX as u64);

/// Everything that is known: entries by directory and name, and attributes by number.
struct Tree {
    names: HashMap<u64, BTreeMap<OsString, u64>>,
    attributes: HashMap<u64, FileAttr>,
    targets: HashMap<u64, Vec<u8>>,
    last: u64,
}

struct Null {
    tree: Mutex<Tree>,
    lifetime: Duration,
    zeros: Vec<u8>,
}

fn attributes(inode: u64, kind: FileType, mode: u32) -> FileAttr {
    let now = SystemTime::now();
    FileAttr {
        ino: INodeNo(inode),
        size: 0,
        blocks: 0,
        atime: now,
        mtime: now,
        ctime: now,
        crtime: now,
        kind,
        perm: u16::try_from(mode & 0o7777).unwrap(),
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Tree {
    fn new() -> Self {
        let root = attributes(1, FileType::Directory, 0o755);
        Self {
            names: HashMap::from([(1, BTreeMap::new())]),
            attributes: HashMap::from([(1, root)]),
            targets: HashMap::new(),
            last: 1,
        }
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> Option<FileAttr> {
        let inode = self.names.get(&parent.0)?.get(name)?;
        self.attributes.get(inode).copied()
    }

    fn add(&mut self, parent: INodeNo, name: &OsStr, kind: FileType, mode: u32) -> FileAttr {
        self.last += 1;
        let made = attributes(self.last, kind, mode);
        self.names.entry(parent.0).or_default().insert(name.to_owned(), self.last);
        self.attributes.insert(self.last, made);
        made
    }

    fn remove(&mut self, parent: INodeNo, name: &OsStr) {
        let gone = self.names.get_mut(&parent.0).and_then(|names| names.remove(name));
        if let Some(inode) = gone {
            self.attributes.remove(&inode);
            self.names.remove(&inode);
            self.targets.remove(&inode);
        }
    }

    fn list(
        &self,
        directory: INodeNo,
        after: u64,
    ) -> impl Iterator<Item = (u64, &OsStr, FileAttr)> {
        let names = self.names.get(&directory.0).into_iter().flatten();
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        let entries = names.enumerate().skip(skipped);
        entries.filter_map(|(index, (name, inode))| {
            let found = self.attributes.get(inode)?;
            Some((index as u64 + 1, name.as_os_str(), *found))
        })
    }
}

impl Filesystem for Null {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        for wanted in [
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_WRITEBACK_CACHE,
            InitFlags::FUSE_NO_OPEN_SUPPORT,
            InitFlags::FUSE_NO_OPENDIR_SUPPORT,
        ] {
            // A kernel that does not have it goes without.
            let _ = config.add_capabilities(wanted);
        }
        config.set_max_write(u32::try_from(LONGEST).unwrap()).unwrap();
        config.set_max_background(64).unwrap();
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.tree.lock().unwrap().find(parent, name) {
            Some(found) => reply.entry(&self.lifetime, &found, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree.lock().unwrap().attributes.get(&inode.0) {
            Some(found) => reply.attr(&self.lifetime, found),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.tree.lock().unwrap().attributes.get_mut(&inode.0) {
            Some(found) => {
                found.size = size.unwrap_or(found.size);
                found.perm = mode.map_or(found.perm, |mode| (mode & 0o7777) as u16);
                reply.attr(&self.lifetime, found);
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.tree.lock().unwrap().targets.get(&inode.0) {
            Some(target) => reply.data(target),
            None => reply.error(Errno::EINVAL),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let made = self.tree.lock().unwrap().add(parent, name, FileType::Directory, mode);
        reply.entry(&self.lifetime, &made, Generation(0));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.tree.lock().unwrap().remove(parent, name);
        reply.ok();
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.tree.lock().unwrap().remove(parent, name);
        reply.ok();
    }

    fn symlink(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let mut tree = self.tree.lock().unwrap();
        let made = tree.add(parent, name, FileType::Symlink, 0o777);
        tree.targets.insert(made.ino.0, target.as_os_str().as_encoded_bytes().to_vec());
        reply.entry(&self.lifetime, &made, Generation(0));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mut tree = self.tree.lock().unwrap();
        let moved = tree.names.get_mut(&parent.0).and_then(|names| names.remove(name));
        let Some(inode) = moved else { return reply.error(Errno::ENOENT) };
        tree.names.entry(new_parent.0).or_default().insert(new_name.to_owned(), inode);
        reply.ok();
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // Said once: the kernel does not ask again.
        reply.error(Errno::ENOSYS);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let end = self.tree.lock().unwrap().attributes.get(&inode.0).map_or(0, |found| found.size);
        let length = end.saturating_sub(offset).min(u64::from(size));
        reply.data(&self.zeros[..usize::try_from(length).unwrap().min(LONGEST)]);
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if let Some(found) = self.tree.lock().unwrap().attributes.get_mut(&inode.0) {
            found.size = found.size.max(offset + data.len() as u64);
        }
        reply.written(u32::try_from(data.len()).unwrap());
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        // An answer each time: ENOSYS would spare the question.
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        directory: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        for (next, name, found) in self.tree.lock().unwrap().list(directory, offset) {
            if reply.add(found.ino, next, found.kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _: &Request,
        directory: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        for (next, name, found) in self.tree.lock().unwrap().list(directory, offset) {
            if reply.add(found.ino, next, name, &self.lifetime, &found, Generation(0)) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(1 << 30, 1 << 29, 1 << 29, 1 << 30, 1 << 29, 4096, 255, 4096);
    }

    fn getxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, reply: ReplyXattr) {
        reply.error(Errno::ENOSYS);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let made = self.tree.lock().unwrap().add(parent, name, FileType::RegularFile, mode);
        let flags = FopenFlags::FOPEN_KEEP_CACHE;
        reply.created(&self.lifetime, &made, Generation(0), FileHandle(0), flags);
    }
}

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments.next().expect("usage: null_mount DIR [--cached]");
    let cached = arguments.next().is_some_and(|argument| argument == "--cached");
    let null = Null {
        tree: Mutex::new(Tree::new()),
        lifetime: if cached { ENDLESS } else { Duration::ZERO },
        zeros: vec![0; LONGEST],
    };
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("null".to_owned())];
    // As many as `undercroft mount` has: each more costs some.
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    config.n_threads = Some((2 * processors).clamp(4, 16));
    config.clone_fd = true;
    fuser::mount(null, directory, &config).unwrap();
}
