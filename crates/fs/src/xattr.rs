//! Extended attributes, under the names that programs use. POSIX access lists are the attributes
//! `system.posix_acl_access` and `system.posix_acl_default`, in the form that Linux gives programs.

use crate::Nodes;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, ops};

pub use undercroft_xfs::ops::SetMode;

impl Nodes<'_> {
    /// The value of an attribute; `None` if the file has none of this name.
    ///
    /// # Errors
    /// No file has the number; no attribute can have this name; a damaged structure; the device
    /// failed.
    pub fn get_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        ops::get_xattr(self.fs.volume(), &self.fs.inode(number)?.read(), name)
    }

    /// Stores an attribute. An access list sets the permission bits too, and is not stored if it
    /// says no more than they do.
    ///
    /// # Errors
    /// As [`get_xattr`](Self::get_xattr); `mode` demands otherwise; a value that cannot be stored,
    /// or not on this kind of file; the flags of the file forbid it; no space; the volume is
    /// read-only.
    pub fn set_xattr(
        &self,
        number: InodeNumber,
        name: &[u8],
        value: &[u8],
        mode: SetMode,
    ) -> Result<(), Error> {
        let _inode = self.fs.inode(number)?;
        ops::set_xattr(self.fs.volume(), number, (name, value), mode, self.fs.now())
    }

    /// Removes an attribute; `false` if there was none of this name.
    ///
    /// # Errors
    /// As [`set_xattr`](Self::set_xattr).
    pub fn remove_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<bool, Error> {
        let _inode = self.fs.inode(number)?;
        ops::remove_xattr(self.fs.volume(), number, name, self.fs.now())
    }

    /// The names of all attributes, in the order of the volume.
    ///
    /// # Errors
    /// As [`get_xattr`](Self::get_xattr).
    pub fn list_xattrs(&self, number: InodeNumber) -> Result<Vec<Vec<u8>>, Error> {
        let found = ops::attributes(self.fs.volume(), &self.fs.inode(number)?.read())?;
        Ok(found.into_iter().map(|(name, _)| name).collect())
    }
}
