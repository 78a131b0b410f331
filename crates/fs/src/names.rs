//! Names: made, moved and taken away.

use crate::{File, FileSystem, Metadata, Nodes};
use std::sync::Arc;
use undercroft_xfs::format::{DeviceNumber, FileType};
use undercroft_xfs::ops::{self, Name, NewInode, RenameMode, Times};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, OpenFile};

/// A user and a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// The attributes of a new file of any kind. It may also get a group, flags, a project, size hints
/// and access lists from its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Permission bits, with setuid, setgid and sticky. A umask is the caller's; where the directory
    /// has a default access list, none is to be applied.
    pub mode: u16,
    /// Whose it is.
    pub owner: Owner,
}

impl NewFile {
    /// A file of root.
    #[must_use]
    pub const fn new(mode: u16) -> Self {
        Self { mode, owner: Owner { uid: 0, gid: 0 } }
    }

    /// A file of this user and group.
    #[must_use]
    pub const fn owned_by(self, uid: u32, gid: u32) -> Self {
        Self { owner: Owner { uid, gid }, ..self }
    }
}

/// What creating a file does about one of the name that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Fails.
    Refuse,
    /// Opens it, of any kind.
    Open,
}

/// How a name is moved. By default a file at the new name is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenameFlags {
    /// The new name must be free.
    pub no_replace: bool,
    /// Both names must be there, and change places.
    pub exchange: bool,
    /// The old name then stands for a whiteout of this owner: a character device 0:0, by which
    /// overlays know that a name of a lower layer is gone. Not together with `exchange`.
    pub whiteout: Option<Owner>,
}

impl RenameFlags {
    /// Replace a file at the new name.
    pub const REPLACE: Self = Self { no_replace: false, exchange: false, whiteout: None };
    /// Only if the new name is free.
    pub const NO_REPLACE: Self = Self { no_replace: true, ..Self::REPLACE };
    /// Let the names change places.
    pub const EXCHANGE: Self = Self { exchange: true, ..Self::REPLACE };
}

impl Nodes<'_> {
    /// Creates a regular file `name` in the directory `parent`, and opens it.
    ///
    /// # Errors
    /// The name exists and `existing` refuses that, or it cannot be stored; `parent` is no
    /// directory, or gone; no space; a damaged structure; the device failed; the volume is
    /// read-only.
    pub fn create(
        &self,
        parent: InodeNumber,
        name: &[u8],
        new: &NewFile,
        existing: Existing,
    ) -> Result<(Metadata, File), Error> {
        let held = self.fs.hold(parent)?;
        let directory = held.inode();
        ops::check_name(name)?;
        loop {
            if existing == Existing::Open
                && let Some(inode) = self.fs.child(directory, name)?
            {
                match self.fs.open_inode(&inode) {
                    // Removed since.
                    Err(Error::Stale { .. }) => continue,
                    other => return other.map(|file| (file.metadata(), file)),
                }
            }
            match self.fs.make(parent, name, &self.fs.inode_for(FileType::Regular, new)) {
                // Another thread was faster.
                Err(Error::Exists(_)) if existing == Existing::Open => {}
                other => return other,
            }
        }
    }

    /// Creates a directory.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn mkdir(
        &self,
        parent: InodeNumber,
        name: &[u8],
        new: &NewFile,
    ) -> Result<Metadata, Error> {
        let _held = self.fs.hold(parent)?;
        Ok(self.fs.make_directory(parent, name, new)?.metadata())
    }

    /// Creates a device, a named pipe, a socket or an empty file. `device` is for devices, 0:0 for
    /// all others.
    ///
    /// # Errors
    /// As [`create`](Self::create); the volume cannot hold the number of the device; `kind` is made
    /// by [`mkdir`](Self::mkdir) or [`symlink`](Self::symlink).
    pub fn mknod(
        &self,
        parent: InodeNumber,
        name: &[u8],
        kind: FileType,
        device: DeviceNumber,
        new: &NewFile,
    ) -> Result<Metadata, Error> {
        if matches!(kind, FileType::Directory | FileType::Symlink) {
            return Err(Error::Invalid(format!("{}: not a kind of node", ops::path_text(name))));
        }
        let new = NewInode { device, ..self.fs.inode_for(kind, new) };
        Ok(self.fs.make_checked(parent, name, &new)?.0)
    }

    /// Creates a symbolic link to `target`.
    ///
    /// # Errors
    /// As [`create`](Self::create); the target is empty, or longer than 1023 bytes.
    pub fn symlink(
        &self,
        parent: InodeNumber,
        name: &[u8],
        target: &[u8],
        owner: Owner,
    ) -> Result<Metadata, Error> {
        let new = NewFile { mode: 0o777, owner };
        let new = NewInode { target, ..self.fs.inode_for(FileType::Symlink, &new) };
        Ok(self.fs.make_checked(parent, name, &new)?.0)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// It is none, or gone; it is damaged; the device failed.
    pub fn read_link(&self, number: InodeNumber) -> Result<Vec<u8>, Error> {
        let inode = self.fs.inode(number)?;
        let target = ops::read_link(self.fs.volume(), &inode.read())?;
        self.fs.note_read(&inode);
        Ok(target)
    }

    /// Gives a file, which is no directory, another name.
    ///
    /// # Errors
    /// As [`create`](Self::create); it is a directory, gone, or has too many names.
    pub fn link(
        &self,
        number: InodeNumber,
        parent: InodeNumber,
        name: &[u8],
    ) -> Result<Metadata, Error> {
        // Held over the operation, so that the number stays this file's.
        self.link_file(&self.open(number)?, parent, name)
    }

    /// Gives an open file another name; one of [`tmpfile`](Self::tmpfile) gets its first.
    ///
    /// # Errors
    /// As [`link`](Self::link); the file is of another file system.
    pub fn link_file(
        &self,
        file: &File,
        parent: InodeNumber,
        name: &[u8],
    ) -> Result<Metadata, Error> {
        self.fs.expect_own(file)?;
        let _held = self.fs.hold(parent)?;
        ops::link(self.fs.volume(), file.number(), parent, name, self.fs.now())?;
        Ok(file.metadata())
    }

    /// Takes away the name of a file that is no directory; returns its number. With its last name
    /// the file is freed, or when its last opening is dropped.
    ///
    /// # Errors
    /// There is no such name, or it is a directory; `parent` is gone; a damaged structure; the
    /// device failed; the volume is read-only.
    pub fn unlink(&self, parent: InodeNumber, name: &[u8]) -> Result<InodeNumber, Error> {
        let _held = self.fs.hold(parent)?;
        ops::unlink(self.fs.volume(), parent, name, self.fs.now())
    }

    /// Removes an empty directory; returns its number.
    ///
    /// # Errors
    /// As [`unlink`](Self::unlink); it is no directory, or not empty.
    pub fn rmdir(&self, parent: InodeNumber, name: &[u8]) -> Result<InodeNumber, Error> {
        let _held = self.fs.hold(parent)?;
        ops::rmdir(self.fs.volume(), parent, name, self.fs.now())
    }

    /// Moves the name `from`, of a directory and a name in it, to `to`, in one step. Two names of
    /// one file stay as they are.
    ///
    /// # Errors
    /// `from` does not exist; the file at the new name is in the way; a directory would come to lie
    /// below itself; flags that do not go together; no space; a damaged structure; the device
    /// failed; the volume is read-only.
    pub fn rename(
        &self,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        let mode = match (flags.no_replace, flags.exchange) {
            (false, false) => RenameMode::Replace,
            (true, false) => RenameMode::NoReplace,
            (false, true) => RenameMode::Exchange,
            (true, true) => {
                let what = "a name cannot both be free and change places with another";
                return Err(Error::Invalid(what.into()));
            }
        };
        let _held = (self.fs.hold(from.0)?, self.fs.hold(to.0)?);
        let [from, to] = [from, to].map(|(parent, name)| Name { parent, name });
        let (volume, now) = (self.fs.volume(), self.fs.now());
        match flags.whiteout {
            None => ops::rename(volume, from, to, mode, now),
            Some(Owner { uid, gid }) => {
                ops::rename_leaving_whiteout(volume, from, to, mode, (uid, gid), now)
            }
        }
    }

    /// Creates a regular file without a name, near the directory that it may get one in, and opens
    /// it. Without a name it is freed when it is let go, or after a crash.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn tmpfile(&self, near: InodeNumber, new: &NewFile) -> Result<File, Error> {
        let _held = self.fs.hold(near)?;
        let new = self.fs.inode_for(FileType::Regular, new);
        Ok(self.fs.file(ops::create_unlinked(self.fs.volume(), near, &new)?))
    }
}

impl FileSystem {
    /// Creates a directory in a parent that is known to exist. The new directory is
    /// returned open, so that it is not freed before the caller uses it.
    pub(crate) fn make_directory(
        &self,
        parent: InodeNumber,
        name: &[u8],
        new: &NewFile,
    ) -> Result<File, Error> {
        Ok(self.make(parent, name, &self.inode_for(FileType::Directory, new))?.1)
    }

    fn inode_for(&self, kind: FileType, new: &NewFile) -> NewInode<'static> {
        let now = self.now();
        let times = Times { access: now, modification: now, change: now, creation: now };
        let Owner { uid, gid } = new.owner;
        NewInode { uid, gid, times, ..NewInode::new(kind, new.mode & 0o7777) }
    }

    fn make_checked(
        &self,
        parent: InodeNumber,
        name: &[u8],
        new: &NewInode<'_>,
    ) -> Result<(Metadata, File), Error> {
        let _held = self.hold(parent)?;
        self.make(parent, name, new)
    }

    fn make(
        &self,
        parent: InodeNumber,
        name: &[u8],
        new: &NewInode<'_>,
    ) -> Result<(Metadata, File), Error> {
        // Opened, so that it is still there when it is looked at.
        let open: OpenFile = ops::make_open(self.volume(), parent, name, new)?;
        let file = self.file(open);
        Ok((file.metadata(), file))
    }

    /// Opens a directory over an operation that takes its number, so that the number stays its own.
    fn hold(&self, directory: InodeNumber) -> Result<OpenFile, Error> {
        OpenFile::open_inode(self.volume(), &self.volume().inode_in_use(directory)?)
    }

    pub(crate) fn expect_own(&self, file: &File) -> Result<(), Error> {
        if Arc::ptr_eq(self.volume(), file.file_system().volume()) {
            return Ok(());
        }
        Err(Error::CrossDevice(format!("inode {} is of another volume", file.number())))
    }
}
