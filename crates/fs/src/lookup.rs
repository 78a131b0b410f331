//! Files found and opened by number.

use crate::{File, FileSystem, Metadata, Nodes};
use std::sync::Arc;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, OpenFile, ops};

impl Nodes<'_> {
    /// The metadata of the file of this number.
    ///
    /// # Errors
    /// No file has the number; it is damaged; the device failed.
    pub fn stat(&self, number: InodeNumber) -> Result<Metadata, Error> {
        Ok(self.fs.metadata_of(&*self.fs.inode(number)?))
    }

    /// What `name` stands for in the directory `parent`, `.` and `..` among them.
    ///
    /// # Errors
    /// There is no such name; `parent` is no directory, or gone; a damaged structure; the device
    /// failed.
    pub fn lookup(&self, parent: InodeNumber, name: &[u8]) -> Result<Metadata, Error> {
        let inode = self.fs.child(&*self.fs.inode(parent)?, name)?;
        let missing = || Error::NotFound(ops::path_text(name));
        Ok(self.fs.metadata_of(&*inode.ok_or_else(missing)?))
    }

    /// The file of a number and generation that a caller kept, perhaps for long.
    ///
    /// # Errors
    /// [`Error::Stale`] if it was removed, also if another has its number; a damaged structure; the
    /// device failed.
    pub fn lookup_handle(&self, number: InodeNumber, generation: u32) -> Result<Metadata, Error> {
        let found = self.stat(number)?;
        if found.generation == generation { Ok(found) } else { Err(Error::Stale { inode: number }) }
    }

    /// The directory that a directory is in; the root is in itself.
    ///
    /// # Errors
    /// It is no directory, or gone; a damaged structure; the device failed.
    pub fn parent(&self, directory: InodeNumber) -> Result<Metadata, Error> {
        self.lookup(directory, b"..")
    }

    /// Opens the file of this number, of any kind. While it is open it is not freed, and its number
    /// is not used again.
    ///
    /// # Errors
    /// As [`stat`](Self::stat).
    pub fn open(&self, number: InodeNumber) -> Result<File, Error> {
        self.fs.open_inode(&self.fs.volume().inode_in_use(number)?)
    }

    /// Opens the file of this number and generation.
    ///
    /// # Errors
    /// As [`lookup_handle`](Self::lookup_handle).
    pub fn open_handle(&self, number: InodeNumber, generation: u32) -> Result<File, Error> {
        Ok(self.fs.file(OpenFile::open_handle(self.fs.volume(), number, generation)?))
    }

    /// Whether the next read of a file sets its time of access.
    ///
    /// # Errors
    /// No file has the number; the device failed.
    pub fn is_access_due(&self, number: InodeNumber) -> Result<bool, Error> {
        let inode = self.fs.inode(number)?;
        let due = self.fs.access_due(&inode.read().core);
        Ok(self.fs.is_writable() && due.is_some())
    }
}

impl FileSystem {
    /// A future of the result of `operation`, which reads metadata: [`stat`](Nodes::stat),
    /// [`lookup`](Nodes::lookup), [`metadata`](Self::metadata) and the like. Where metadata is missing
    /// the task waits, not the thread, and the operation runs again from its start then: it should
    /// have no effects but its result. So one thread has as many of them in flight as it likes
    /// ([`Volume::awaited`](undercroft_xfs::Volume::awaited)).
    pub fn awaited<R, F>(&self, mut operation: F) -> impl Future<Output = R> + use<R, F>
    where
        F: FnMut(&Self) -> R + Unpin,
    {
        let fs = self.clone();
        self.volume().awaited(move |_| operation(&fs))
    }

    pub(crate) fn open_inode(&self, inode: &Arc<Inode>) -> Result<File, Error> {
        Ok(self.file(OpenFile::open_inode(self.volume(), inode)?))
    }

    pub(crate) fn file(&self, open: OpenFile) -> File {
        File::new(self.clone(), open)
    }

    pub(crate) fn metadata_of(&self, inode: &Inode) -> Metadata {
        Metadata::of(self.volume(), &inode.read())
    }
}
