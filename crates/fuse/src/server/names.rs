//! Names: looked up, made, moved and taken away.

use super::{Caller, Server};
use crate::failure::Failure;
use crate::nodes::Opening;
use rustix::io::Errno;
use std::sync::Arc;
use undercroft_fs::{
    DeviceNumber, Error, Existing, FileType, InodeNumber, Metadata, NewFile, Owner, RenameFlags,
};

const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

impl Server {
    /// What a name stands for; `None` if there is no such name. By the name `.` a server of network
    /// file systems asks for a file whose number it kept.
    pub(crate) fn lookup(
        &self,
        parent: InodeNumber,
        name: &[u8],
    ) -> Result<Option<Metadata>, Failure> {
        if name == b"." {
            let file = self.fs.nodes().open(parent)?;
            let metadata = file.metadata();
            // Open, so that it is not another file's number by the time when it is remembered.
            self.nodes.remember_open(file);
            return Ok(Some(self.shown(metadata)));
        }
        self.nodes.expect(parent)?;
        match self.fs.nodes().lookup(parent, name) {
            Ok(metadata) => Ok(Some(self.entry(metadata))),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a regular file, or opens the one of the name.
    pub(crate) fn create(
        &self,
        (parent, name): (InodeNumber, &[u8]),
        (mode, umask): (u32, u32),
        existing: Existing,
        caller: Caller,
    ) -> Result<Metadata, Failure> {
        self.nodes.expect(parent)?;
        let new = self.new_file(parent, mode, umask, caller)?;
        let (metadata, file) = self.fs.nodes().create(parent, name, &new, existing)?;
        self.nodes.remember_open(file);
        Ok(self.shown(metadata))
    }

    pub(crate) fn mkdir(
        &self,
        (parent, name): (InodeNumber, &[u8]),
        (mode, umask): (u32, u32),
        caller: Caller,
    ) -> Result<Metadata, Failure> {
        self.nodes.expect(parent)?;
        let new = self.new_file(parent, mode, umask, caller)?;
        Ok(self.entry(self.fs.nodes().mkdir(parent, name, &new)?))
    }

    pub(crate) fn mknod(
        &self,
        (parent, name): (InodeNumber, &[u8]),
        (mode, umask): (u32, u32),
        device: DeviceNumber,
        caller: Caller,
    ) -> Result<Metadata, Failure> {
        self.nodes.expect(parent)?;
        let kind = FileType::from_mode(mode as u16).ok_or(Errno::INVAL)?;
        let new = self.new_file(parent, mode, umask, caller)?;
        let is_device = matches!(kind, FileType::Character | FileType::Block);
        let device = if is_device { device } else { DeviceNumber { major: 0, minor: 0 } };
        Ok(self.entry(self.fs.nodes().mknod(parent, name, kind, device, &new)?))
    }

    pub(crate) fn symlink(
        &self,
        (parent, name): (InodeNumber, &[u8]),
        target: &[u8],
        caller: Caller,
    ) -> Result<Metadata, Failure> {
        self.nodes.expect(parent)?;
        let owner = Owner { uid: caller.uid, gid: caller.gid };
        Ok(self.entry(self.fs.nodes().symlink(parent, name, target, owner)?))
    }

    pub(crate) fn read_link(&self, number: InodeNumber) -> Result<Vec<u8>, Failure> {
        self.nodes.expect(number)?;
        Ok(self.fs.nodes().read_link(number)?)
    }

    pub(crate) fn link(
        &self,
        number: InodeNumber,
        parent: InodeNumber,
        name: &[u8],
    ) -> Result<Metadata, Failure> {
        self.nodes.expect(number)?;
        self.nodes.expect(parent)?;
        Ok(self.entry(self.fs.nodes().link(number, parent, name)?))
    }

    pub(crate) fn unlink(&self, parent: InodeNumber, name: &[u8]) -> Result<(), Failure> {
        self.nodes.expect(parent)?;
        let victim = self.victim(parent, name)?;
        self.fs.nodes().unlink(parent, name)?;
        self.note_removal(victim);
        Ok(())
    }

    pub(crate) fn rmdir(&self, parent: InodeNumber, name: &[u8]) -> Result<(), Failure> {
        self.nodes.expect(parent)?;
        let victim = self.victim(parent, name)?;
        self.fs.nodes().rmdir(parent, name)?;
        self.note_removal(victim);
        Ok(())
    }

    pub(crate) fn rename(
        &self,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Failure> {
        self.nodes.expect(from.0)?;
        self.nodes.expect(to.0)?;
        let victim =
            if flags.exchange || flags.no_replace { None } else { self.victim(to.0, to.1)? };
        self.fs.nodes().rename(from, to, flags)?;
        self.note_removal(victim);
        Ok(())
    }

    /// The file of a name that may be its last, opened if the kernel knows it: it may be in use.
    fn victim(&self, parent: InodeNumber, name: &[u8]) -> Result<Option<Arc<Opening>>, Failure> {
        let number = match self.fs.nodes().lookup(parent, name) {
            Ok(metadata) => metadata.number,
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match self.nodes.open(&self.fs, number) {
            Ok(opening) => Ok(Some(opening)),
            Err(Error::Stale { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn note_removal(&self, victim: Option<Arc<Opening>>) {
        if let Some(opening) = victim
            && opening.file.metadata().nlink == 0
        {
            self.nodes.hold_nameless(&opening);
        }
    }

    /// A new file of the caller. The umask counts where the directory has no default access list.
    fn new_file(
        &self,
        parent: InodeNumber,
        mode: u32,
        umask: u32,
        caller: Caller,
    ) -> Result<NewFile, Failure> {
        let mut mode = mode & 0o7777;
        if mode & umask != 0 && self.fs.nodes().get_xattr(parent, DEFAULT_ACL)?.is_none() {
            mode &= !umask;
        }
        // Twelve bits.
        Ok(NewFile::new(mode as u16).owned_by(caller.uid, caller.gid))
    }
}
