//! What programs tell errors apart by: one kind for each number of the operating system.

use std::io;

macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident = $errno:literal,)+) => {
        /// The kind of an error. Each kind is one `errno` of Linux, and no two are the same: a
        /// front end that passes errors on to a kernel or to programs needs nothing else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$about])* $kind,)+
        }

        impl ErrorKind {
            /// All kinds, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// The number that Linux has for it on most machines: all but Alpha, MIPS, PA-RISC and
            /// SPARC.
            #[must_use]
            pub const fn errno(self) -> i32 {
                match self {
                    $(Self::$kind => $errno,)+
                }
            }
        }
    };
}

kinds! {
    /// EPERM: flags of the inode or its kind forbid it to all users.
    NotPermitted = 1,
    /// ENOENT: there is no such name.
    NotFound = 2,
    /// EIO: the device failed, now or before.
    Io = 5,
    /// ENXIO: there is neither data nor hole at this place of the file, which ends before.
    NoDeviceOrAddress = 6,
    /// E2BIG: the value of the attribute is longer than any can be.
    AttributeTooLarge = 7,
    /// EAGAIN: it may work when it is tried again.
    Busy = 11,
    /// EACCES: a default access list of something that is no directory.
    AccessDenied = 13,
    /// EBUSY: the file or disk with the volume is mounted, or in use by another program.
    InUse = 16,
    /// EEXIST: the name, or the attribute, exists already.
    Exists = 17,
    /// EXDEV: a name may not lead there, though it is one volume; a copy would do.
    CrossDevice = 18,
    /// ENOTDIR: it is no directory.
    NotDirectory = 20,
    /// EISDIR: it is a directory.
    IsDirectory = 21,
    /// EINVAL: the request makes no sense for this file or volume.
    Invalid = 22,
    /// EFBIG: the file would be larger than any can be.
    TooLarge = 27,
    /// ENOSPC: no space is left on the volume.
    NoSpace = 28,
    /// EROFS: the volume was opened for reading, or can only be read.
    ReadOnly = 30,
    /// EMLINK: the inode has as many names as it can count.
    TooManyLinks = 31,
    /// ERANGE: the name of the attribute is longer than any can be.
    AttributeNameTooLong = 34,
    /// ENAMETOOLONG: the name, or the target of a link, is longer than any can be.
    NameTooLong = 36,
    /// ENOTEMPTY: the directory still has names.
    NotEmpty = 39,
    /// ELOOP: too many symbolic links on the way.
    Loop = 40,
    /// ENODATA: the inode has no attribute of this name.
    NoAttribute = 61,
    /// EOPNOTSUPP: the volume, or this version, cannot do this.
    NotSupported = 95,
    /// ESTALE: the inode was removed since the caller learned its number.
    Stale = 116,
    /// EUCLEAN: metadata on the disk is damaged.
    Damaged = 117,
    /// EDQUOT: the quota of the owner is used up.
    QuotaExceeded = 122,
}

/// The nearest kind of the standard library, which has fewer.
impl From<ErrorKind> for io::ErrorKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotPermitted | ErrorKind::AccessDenied => Self::PermissionDenied,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Busy => Self::WouldBlock,
            ErrorKind::InUse => Self::ResourceBusy,
            ErrorKind::Exists => Self::AlreadyExists,
            ErrorKind::CrossDevice => Self::CrossesDevices,
            ErrorKind::NotDirectory => Self::NotADirectory,
            ErrorKind::IsDirectory => Self::IsADirectory,
            ErrorKind::Invalid | ErrorKind::AttributeNameTooLong => Self::InvalidInput,
            ErrorKind::TooLarge => Self::FileTooLarge,
            ErrorKind::NoSpace => Self::StorageFull,
            ErrorKind::ReadOnly => Self::ReadOnlyFilesystem,
            ErrorKind::TooManyLinks => Self::TooManyLinks,
            ErrorKind::AttributeTooLarge => Self::ArgumentListTooLong,
            ErrorKind::NameTooLong => Self::InvalidFilename,
            ErrorKind::NotEmpty => Self::DirectoryNotEmpty,
            ErrorKind::NotSupported => Self::Unsupported,
            ErrorKind::Stale => Self::StaleNetworkFileHandle,
            ErrorKind::Damaged => Self::InvalidData,
            ErrorKind::QuotaExceeded => Self::QuotaExceeded,
            ErrorKind::Io
            | ErrorKind::NoDeviceOrAddress
            | ErrorKind::Loop
            | ErrorKind::NoAttribute => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn kinds_and_numbers_go_one_to_one() {
        let numbers: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.errno()).collect();
        assert!(numbers.is_sorted_by(|left, right| left < right), "{numbers:?}");
    }

    #[test]
    #[rustfmt::skip]
    fn numbers_are_those_of_the_system() {
        let names = [
            Errno::PERM, Errno::NOENT, Errno::IO, Errno::NXIO, Errno::TOOBIG, Errno::AGAIN,
            Errno::ACCESS, Errno::BUSY, Errno::EXIST, Errno::XDEV, Errno::NOTDIR, Errno::ISDIR, Errno::INVAL,
            Errno::FBIG, Errno::NOSPC, Errno::ROFS, Errno::MLINK, Errno::RANGE, Errno::NAMETOOLONG,
            Errno::NOTEMPTY, Errno::LOOP, Errno::NODATA, Errno::OPNOTSUPP, Errno::STALE,
            Errno::UCLEAN, Errno::DQUOT,
        ];
        let names = names.map(Errno::raw_os_error);
        let numbers: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.errno()).collect();
        assert_eq!(numbers, names);
    }
}
