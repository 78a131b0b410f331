//! The types that can be a path.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path inside a volume: text, a path of the system, or bytes.
pub trait AsPath {
    /// Its bytes.
    fn path_bytes(&self) -> &[u8];
}

impl<T: AsPath + ?Sized> AsPath for &T {
    fn path_bytes(&self) -> &[u8] {
        (**self).path_bytes()
    }
}

impl<const N: usize> AsPath for [u8; N] {
    fn path_bytes(&self) -> &[u8] {
        self
    }
}

macro_rules! paths {
    ($($type:ty: $self:ident => $bytes:expr,)+) => {
        $(impl AsPath for $type {
            fn path_bytes(&$self) -> &[u8] {
                $bytes
            }
        })+
    };
}

paths! {
    [u8]: self => self,
    Vec<u8>: self => self,
    str: self => str::as_bytes(self),
    String: self => str::as_bytes(self),
    OsStr: self => OsStrExt::as_bytes(self),
    OsString: self => OsStrExt::as_bytes(&**self),
    Path: self => OsStrExt::as_bytes(self.as_os_str()),
    PathBuf: self => OsStrExt::as_bytes(self.as_os_str()),
}
