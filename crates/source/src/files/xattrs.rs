//! Extended attributes of one file.

use super::handle::Handle;
use super::xattrat;
use crate::Xattr;
use crate::entry::{MAX_XATTR_VALUE, sort_by_name};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{
    fgetxattr, flistxattr, flistxattr_query, lgetxattr, llistxattr, llistxattr_query,
};
use rustix::io::{Errno, Result};

/// Linux never lists more bytes of names than this (`XATTR_LIST_MAX`).
const LIST_SIZE: usize = 64 * 1024;

/// How a file is named to the system: an open file, or, where opening has side effects or is not
/// possible (symbolic links, devices, pipes, sockets), a name in a directory, which is not followed.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    File(BorrowedFd<'a>),
    Name(&'a Handle, &'a [u8]),
}

impl Target<'_> {
    /// Bytes of the list of attributes.
    fn listed_bytes(self) -> Result<usize> {
        match self {
            Self::File(fd) => flistxattr_query(fd),
            Self::Name(directory, name) => xattrat::list(directory, name, &mut [])
                .unwrap_or_else(|| llistxattr_query(path_in(directory, name))),
        }
    }
}

/// A path for calls that have no form with a directory: through /proc, which works at any depth of
/// the directory. Linux 6.13 has better ones.
fn path_in(directory: &Handle, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", directory.as_fd().as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    path
}

/// Reads extended attributes with buffers that are allocated once.
pub(crate) struct XattrReader {
    list: Box<[u8]>,
    value: Box<[u8]>,
}

impl XattrReader {
    pub(crate) fn new() -> Self {
        Self {
            list: vec![0; LIST_SIZE].into_boxed_slice(),
            value: vec![0; MAX_XATTR_VALUE].into_boxed_slice(),
        }
    }

    /// All attributes that this process may see, sorted by name. A file system without attributes has
    /// none. One system call when there are none, without a buffer, which the kernel would have to
    /// match with one of its own.
    pub(crate) fn read(&mut self, target: Target<'_>) -> Result<Vec<Xattr>> {
        match target.listed_bytes() {
            Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
            other => other?,
        };
        let length = match target {
            Target::File(fd) => flistxattr(fd, &mut self.list[..]),
            Target::Name(directory, name) => xattrat::list(directory, name, &mut self.list[..])
                .unwrap_or_else(|| llistxattr(path_in(directory, name), &mut self.list[..])),
        }?;
        let mut xattrs = Vec::new();
        for name in self.list[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let read = match target {
                Target::File(fd) => fgetxattr(fd, name, &mut self.value[..]),
                Target::Name(directory, file) => {
                    xattrat::get(directory, file, name, &mut self.value[..]).unwrap_or_else(|| {
                        lgetxattr(path_in(directory, file), name, &mut self.value[..])
                    })
                }
            };
            match read {
                Ok(size) => {
                    let value = self.value[..size].to_vec();
                    xattrs.push(Xattr { name: name.to_vec(), value });
                }
                // Removed since it was listed: as if it had never been there.
                Err(Errno::NODATA) => {}
                Err(error) => return Err(error),
            }
        }
        sort_by_name(&mut xattrs);
        Ok(xattrs)
    }
}
