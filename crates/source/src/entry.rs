//! One entry of a tree: its name, kind, owner, and extended attributes.
//!
//! Entries carry no file data; a regular file carries the map of its data ranges, so that a consumer
//! can reserve space for the whole file before the first byte arrives.

use std::fmt;

/// Longest name of one path component, in bytes.
pub const MAX_NAME: usize = 255;
/// Longest path of an entry relative to the root, in bytes.
pub const MAX_PATH: usize = 16 * 1024;
/// Longest target of a symbolic link, in bytes.
pub const MAX_SYMLINK_TARGET: usize = 1023;
/// Largest file, in bytes: offsets fit a signed 64-bit integer.
pub const MAX_FILE_SIZE: u64 = i64::MAX as u64;
/// Most data ranges of one sparse file (each costs 16 bytes of memory).
pub const MAX_DATA_RANGES: usize = 1 << 20;
/// Longest full name of an extended attribute (`user.foo`), in bytes.
pub const MAX_XATTR_NAME: usize = 255;
/// Largest value of an extended attribute, in bytes.
pub const MAX_XATTR_VALUE: usize = 64 * 1024;

/// One entry of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the root; the root itself is the empty path.
    pub path: EntryPath,
    /// The kind of the entry.
    pub kind: Kind,
    /// Permission bits, owner and modification time. Those of a [`Kind::HardLink`] are the ones of
    /// the file it names and need not be looked at.
    pub metadata: Metadata,
    /// Extended attributes, sorted by name, each name once. Empty for a [`Kind::HardLink`].
    pub xattrs: Vec<Xattr>,
    /// Whether further names of this entry may follow as [`Kind::HardLink`].
    pub links: Links,
    /// Whether another entry, no directory either, came before under this path: this one takes its
    /// place. Other names of the earlier file stay. Never set for directories.
    pub replaces: bool,
}

/// Most bytes of entries that a source keeps from a scan for the pass behind it: 150,000 names and more.
pub(crate) const KEPT_BYTES: usize = 32 << 20;

impl Entry {
    /// Memory that it takes, about.
    pub(crate) fn weight(&self) -> usize {
        let ranges = match &self.kind {
            Kind::Regular { data, .. } => data.len(),
            _ => 0,
        };
        let xattrs = self.xattrs.iter().map(|xattr| xattr.name.len() + xattr.value.len());
        size_of::<Self>()
            + self.path.as_bytes().len()
            + ranges * size_of::<DataRange>()
            + xattrs.sum::<usize>()
    }
}

/// Whether a consumer must be able to find an entry again by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The entry has one name; no [`Kind::HardLink`] names it.
    Single,
    /// Hard links to it may follow. Archives do not tell in advance, so this is always their value.
    Several,
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A directory. A second directory entry with a path that came before replaces the metadata and
    /// extended attributes of the first; its children stay.
    Directory,
    /// A regular file.
    Regular {
        /// Length in bytes.
        size: u64,
        /// Where data is, ascending, not overlapping, not touching, none empty, all within `size`.
        /// The ranges between are holes and read as zeros. Ends need not be aligned to anything.
        data: Vec<DataRange>,
    },
    /// A symbolic link with the bytes of its target (1 to [`MAX_SYMLINK_TARGET`], no NUL).
    Symlink(Vec<u8>),
    /// A further name of the non-directory that came before under this path.
    HardLink(EntryPath),
    /// A character device.
    CharDevice(Device),
    /// A block device.
    BlockDevice(Device),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

/// A device number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Major number: which driver.
    pub major: u32,
    /// Minor number: which of its devices.
    pub minor: u32,
}

/// A run of bytes of a file that holds data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataRange {
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Number of bytes; `offset + length` is at most the size of the file.
    pub length: u64,
}

impl DataRange {
    /// The byte after the last.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }
}

/// Permission bits, owner and modification time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Permission bits with setuid, setgid and sticky: the low 12 bits, no file type.
    pub mode: u16,
    /// Numeric owner.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
    /// Last modification of the contents.
    pub mtime: Timestamp,
}

/// A point in time, counted from 1970-01-01 00:00:00 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds after that second, 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// One extended attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xattr {
    /// Full name with its namespace: `user.foo`, `security.selinux`, `trusted.x`,
    /// `system.posix_acl_access`.
    pub name: Vec<u8>,
    /// The value as `getxattr` returns it; may be empty. ACLs have the layout of Linux's
    /// `posix_acl_xattr`: a version word, then entries of tag, permissions and id, little-endian.
    pub value: Vec<u8>,
}

/// Sorts attributes by name, of which each is there once.
pub(crate) fn sort_by_name(xattrs: &mut [Xattr]) {
    xattrs.sort_unstable_by(|one, other| one.name.cmp(&other.name));
}

/// A path relative to the root: components of 1 to [`MAX_NAME`] bytes joined by single slashes, none
/// of them `.` or `..`, no NUL, no slash at either end. The root is the empty path.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPath(Vec<u8>);

impl EntryPath {
    /// The root of the tree.
    pub fn root() -> Self {
        Self(Vec::new())
    }

    /// The path of these bytes, if they have the form described on the type and are no longer than
    /// [`MAX_PATH`].
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let is_name = |name: &[u8]| {
            (1..=MAX_NAME).contains(&name.len())
                && !matches!(name, b"." | b"..")
                && !name.contains(&0)
        };
        let fits = bytes.len() <= MAX_PATH;
        let is_path = bytes.is_empty() || bytes.split(|byte| *byte == b'/').all(is_name);
        (fits && is_path).then_some(Self(bytes))
    }

    /// Takes bytes that already have the form described on the type; the callers are the sources,
    /// which check what they read.
    pub(crate) fn from_checked(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The path of `name` in this directory. `name` is one component of some path.
    pub fn join(&self, name: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        if !self.0.is_empty() {
            bytes.extend_from_slice(&self.0);
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self(bytes)
    }

    /// All bytes, components separated by slashes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The directory that it is in; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        self.split_last().map(|(parent, _)| Self(parent.to_vec()))
    }

    /// The components from the root down; none for the root.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/').filter(|component| !component.is_empty())
    }

    /// The bytes of the parent's path and the last component; `None` for the root.
    pub fn split_last(&self) -> Option<(&[u8], &[u8])> {
        if self.0.is_empty() {
            return None;
        }
        Some(match self.0.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&self.0[..slash], &self.0[slash + 1..]),
            None => (&[], &self.0),
        })
    }
}

impl fmt::Display for EntryPath {
    /// The path with bytes outside printable ASCII escaped; `.` for the root.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            formatter.write_str(".")
        } else {
            self.0.escape_ascii().fmt(formatter)
        }
    }
}
