//! The first pass over a source: how much there is, and an identity for the volume.
//!
//! Memory grows with directories and hard-linked files, by some 30 bytes each.

use super::{PackError, PackOptions};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::hash::Hasher;
use undercroft_source::{Entry, Kind, Source};
use uuid::Uuid;

/// What a source holds, as far as the size of a volume depends on it.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Inodes of all kinds.
    pub inodes: u64,
    /// Bytes of file data, holes not counted.
    pub bytes: u64,
    /// Data ranges of regular files; the last block of each is partly empty.
    pub ranges: u64,
    /// Files with more data ranges than an inode has room for, and their ranges.
    pub(super) mapped_ranges: u64,
    /// Lengths of remote symbolic link targets count as one block each.
    pub(super) long_symlinks: u64,
    /// Names and their bytes in each directory, by a hash of its path.
    pub(super) directories: FxHashMap<u64, Names>,
    /// Further names of files, by a hash of the path of the first.
    pub(super) links: FxHashMap<u64, Names>,
    /// Inodes whose attributes do not fit beside everything else, and the bytes of all their
    /// attributes.
    pub(super) attribute_inodes: u64,
    /// Bytes of attribute names and values of those inodes.
    pub(super) attribute_bytes: u64,
    /// Values longer than a quarter of the smallest block, with their bytes.
    pub(super) long_values: Vec<u32>,
    identity: [u8; 16],
}

/// A number of names and the sum of their lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl Names {
    fn add(&mut self, name: &[u8]) {
        self.count += 1;
        self.bytes += name.len() as u64;
    }
}

/// Attributes that take more than this many bytes do not fit the smallest inode for sure.
const INLINE_ATTRIBUTES: u64 = 60;

/// Longest target that surely fits an inode with attributes.
const INLINE_TARGET: usize = 48;

/// Ranges that surely fit the list in an inode.
const INLINE_RANGES: usize = 3;

/// Values at least this long may be stored in blocks of their own.
const LONG_VALUE: usize = 256;

impl Survey {
    /// Reads a source once without its data.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn of(source: &mut dyn Source, options: &PackOptions) -> Result<Self, PackError> {
        let mut survey = Self::default();
        let mut digest = Sha256::new();
        digest.update(format!("{:?}", identity_options(options)));
        // The root, which not every archive holds.
        survey.inodes = 1;
        source.scan(&mut |entry| {
            survey.add(entry);
            hash_entry(&mut digest, entry, options);
        })?;
        let digest: [u8; 32] = digest.finalize().into();
        survey.identity.copy_from_slice(&digest[..16]);
        Ok(survey)
    }

    /// An identity that depends on the options and on every entry's name, kind, size, owner, mode,
    /// time and attributes, but not on file contents.
    #[must_use]
    pub fn identity(&self) -> Uuid {
        uuid::Builder::from_custom_bytes(self.identity).into_uuid()
    }

    fn add(&mut self, entry: &Entry) {
        let path = entry.path.as_bytes();
        if let Some((parent, name)) = entry.path.split_last() {
            self.directories.entry(path_hash(parent)).or_default().add(name);
        }
        match &entry.kind {
            Kind::HardLink(first) => {
                let name = entry.path.split_last().map_or(path, |(_, name)| name);
                self.links.entry(path_hash(first.as_bytes())).or_default().add(name);
                return;
            }
            Kind::Regular { data, .. } => {
                self.bytes += data.iter().map(|range| range.length).sum::<u64>();
                self.ranges += data.len() as u64;
                if data.len() > INLINE_RANGES {
                    self.mapped_ranges += data.len() as u64;
                }
            }
            Kind::Symlink(target) if target.len() > INLINE_TARGET => self.long_symlinks += 1,
            _ => {}
        }
        self.inodes += u64::from(!entry.path.is_root());
        self.add_attributes(entry);
    }

    fn add_attributes(&mut self, entry: &Entry) {
        let name = entry.path.split_last().map_or(0, |(_, name)| name.len());
        let sizes = entry.xattrs.iter().map(|xattr| xattr.name.len() + xattr.value.len() + 8);
        // A parent pointer: the name, twelve bytes of value, and its header.
        let total = (sizes.sum::<usize>() + name + 24) as u64;
        if total > INLINE_ATTRIBUTES {
            self.attribute_inodes += 1;
            self.attribute_bytes += total;
        }
        let long = entry.xattrs.iter().map(|xattr| xattr.value.len());
        self.long_values.extend(long.filter(|len| *len >= LONG_VALUE).map(|len| len as u32));
    }
}

/// A hash of a path; two paths with one hash only make the estimate larger.
fn path_hash(path: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(path);
    hasher.finish()
}

/// What of the options decides the content of the image.
fn identity_options(options: &PackOptions) -> impl std::fmt::Debug {
    let PackOptions { size, volume, owner, mtime, epoch, root_mode, .. } = options;
    (*size, volume.clone(), *owner, *mtime, *epoch, *root_mode)
}

fn hash_entry(digest: &mut Sha256, entry: &Entry, options: &PackOptions) {
    let field = |digest: &mut Sha256, bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    let number = |digest: &mut Sha256, value: u64| digest.update(value.to_le_bytes());
    field(digest, entry.path.as_bytes());
    // As it will be on the volume: what is overridden makes no difference.
    let metadata = options.overridden(&entry.metadata);
    let root_mode = options.root_mode.filter(|_| entry.path.is_root());
    number(digest, u64::from(root_mode.unwrap_or(metadata.mode)));
    number(digest, u64::from(metadata.uid) << 32 | u64::from(metadata.gid));
    number(digest, metadata.mtime.seconds as u64);
    number(digest, u64::from(metadata.mtime.nanoseconds));
    match &entry.kind {
        Kind::Directory => number(digest, 1),
        Kind::Regular { size, data } => {
            number(digest, 2);
            number(digest, *size);
            for range in data {
                number(digest, range.offset);
                number(digest, range.length);
            }
        }
        Kind::Symlink(target) => {
            number(digest, 3);
            field(digest, target);
        }
        Kind::HardLink(first) => {
            number(digest, 4);
            field(digest, first.as_bytes());
        }
        Kind::CharDevice(device) | Kind::BlockDevice(device) => {
            number(digest, 5 + u64::from(matches!(entry.kind, Kind::BlockDevice(_))));
            number(digest, u64::from(device.major) << 32 | u64::from(device.minor));
        }
        Kind::Fifo => number(digest, 7),
        Kind::Socket => number(digest, 8),
    }
    for xattr in &entry.xattrs {
        field(digest, &xattr.name);
        field(digest, &xattr.value);
    }
}
