//! The first pass over a source: how much there is, and an identity for the volume.
//!
//! Memory grows with directories, hard links, and files with attributes that may have links, by
//! some 40 bytes each.

use super::{PackError, PackOptions};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::hash::Hasher;
use undercroft_source::{DataRange, Entry, Kind, Links, Source};
use undercroft_xfs::Geometry;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{Content, DirectoryFootprint, Footprint, StoredAttribute};
use uuid::Uuid;

/// The content of a source, as far as the size of a volume depends on it.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Inodes of all kinds.
    pub inodes: u64,
    /// Bytes of file data, holes not counted.
    pub bytes: u64,
    /// Blocks of everything but inodes and directories.
    pub(super) blocks: u64,
    /// Names in each directory, by a hash of its path.
    pub(super) directories: FxHashMap<u64, Names>,
    /// Files with several names, by a hash of the path of the first.
    links: FxHashMap<u64, LinkNames>,
    /// Bytes that the attributes of a file take as a list, for files that may have further names,
    /// by a hash of the path.
    labelled: FxHashMap<u64, u16>,
    /// Block size, inode size and features of the volume. Its number of blocks means nothing.
    geometry: Geometry,
    identity: [u8; 16],
}

/// The names in one directory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Names {
    pub(super) names: DirectoryFootprint,
    /// Bytes for names inside the inode, if the directory has an entry of its own.
    room: Option<u16>,
}

/// The names of one file, by their lengths.
#[derive(Clone, Debug, Default)]
struct LinkNames {
    first: u8,
    further: Vec<u8>,
}

/// A list of this length fits no inode.
const NO_LIST: u16 = u16::MAX;

/// A file of so many runs of blocks leaves its attributes all the room that they can have.
const FEW_RUNS: u64 = 3;

impl Survey {
    /// Reads a source once without its data.
    ///
    /// # Errors
    /// The source cannot be read, or the options of the volume do not go together.
    pub fn of(source: &mut dyn Source, options: &PackOptions) -> Result<Self, PackError> {
        let size = mkfs::minimum_size(&options.volume)?;
        let superblock = mkfs::plan(&MkfsOptions { size, ..options.volume.clone() })?;
        let mut survey = Self {
            // The root, which not every archive holds.
            inodes: 1,
            bytes: 0,
            blocks: 0,
            directories: FxHashMap::default(),
            links: FxHashMap::default(),
            labelled: FxHashMap::default(),
            geometry: superblock.geometry(),
            identity: [0; 16],
        };
        let mut digest = Sha256::new();
        digest.update(format!("{:?}", identity_options(options)));
        source.scan(&mut |entry| {
            survey.add(entry);
            hash_entry(&mut digest, entry, options);
        })?;
        survey.blocks +=
            survey.links.iter().map(|(file, names)| survey.link_blocks(*file, names)).sum::<u64>();
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

    /// Bytes for names inside the inode of a directory.
    pub(super) fn room(&self, names: &Names) -> usize {
        // A directory without an entry of its own has no attributes.
        names.room.map_or_else(|| self.geometry.literal_size() / 4, usize::from)
    }

    fn add(&mut self, entry: &Entry) {
        let path = entry.path.as_bytes();
        let name = entry.path.split_last().map(|(parent, name)| {
            let names = self.directories.entry(path_hash(parent)).or_default();
            names.names.add(&self.geometry, name.len());
            name
        });
        let content = match &entry.kind {
            Kind::HardLink(first) => {
                let names = self.links.entry(path_hash(first.as_bytes())).or_default();
                // Names have at most 255 bytes.
                names.first = first.split_last().map_or(0, |(_, name)| name.len()) as u8;
                names.further.push(name.map_or(0, <[u8]>::len) as u8);
                return;
            }
            Kind::Directory => Content::Directory,
            Kind::Regular { data, .. } => {
                self.bytes += data.iter().map(|range| range.length).sum::<u64>();
                self.runs(data)
            }
            Kind::Symlink(target) => Content::Symlink(target.len()),
            Kind::CharDevice(_) | Kind::BlockDevice(_) | Kind::Fifo | Kind::Socket => {
                Content::Special
            }
        };
        self.inodes += u64::from(name.is_some());
        let parents = self.geometry.features.parent_pointers();
        let pointer =
            name.filter(|_| parents).map(|name| StoredAttribute::parent_pointer(name.len()));
        let property = mkfs::default_property(&self.geometry.features).filter(|_| name.is_none());
        let property = property
            .map(|(name, value)| StoredAttribute::new(&[b"trusted.", name].concat(), value));
        let others =
            entry.xattrs.iter().map(|xattr| StoredAttribute::new(&xattr.name, &xattr.value));
        let attributes: Vec<_> = pointer.into_iter().chain(property).chain(others).collect();
        let footprint = Footprint::new(&self.geometry, content, &attributes);
        self.blocks += footprint.blocks;
        if content == Content::Directory {
            let names = self.directories.entry(path_hash(path)).or_default();
            names.room = Some(footprint.room as u16);
        } else if parents && entry.links == Links::Several {
            self.label(path, content, &attributes[usize::from(pointer.is_some())..]);
        }
    }

    /// The blocks that the data of a file takes.
    fn runs(&self, data: &[DataRange]) -> Content {
        let (mut blocks, mut runs, mut end) = (0, 0, None);
        for range in data {
            let first = range.offset >> self.geometry.block_log;
            let after = self.geometry.blocks_for(range.end());
            // Ranges that meet in a block share it.
            let joined = end.is_some_and(|end| first <= end);
            let from = end.map_or(first, |end: u64| first.max(end));
            blocks += after.saturating_sub(from);
            runs += u64::from(!joined);
            end = Some(after);
        }
        Content::File { blocks, runs }
    }

    /// Remembers what of a file leaves less room for further names.
    fn label(&mut self, path: &[u8], content: Content, attributes: &[StoredAttribute]) {
        let many = matches!(content, Content::File { runs, .. } if runs > FEW_RUNS)
            || matches!(content, Content::Symlink(_));
        if !many && attributes.is_empty() {
            return;
        }
        let list = attributes.iter().map(StoredAttribute::in_list).sum::<Option<usize>>();
        let list = list.filter(|_| !many).and_then(|bytes| u16::try_from(bytes).ok());
        self.labelled.insert(path_hash(path), list.unwrap_or(NO_LIST));
    }

    /// Blocks that the further names of a file add to its attributes.
    fn link_blocks(&self, file: u64, names: &LinkNames) -> u64 {
        if !self.geometry.features.parent_pointers() {
            return 0;
        }
        let lengths = std::iter::once(&names.first).chain(&names.further);
        let pointers = lengths.map(|len| StoredAttribute::parent_pointer(usize::from(*len)));
        let own =
            self.labelled.get(&file).map(|bytes| StoredAttribute::others(usize::from(*bytes)));
        let attributes: Vec<_> = pointers.chain(own).collect();
        Footprint::new(&self.geometry, Content::File { blocks: 0, runs: 0 }, &attributes).blocks
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
    let PackOptions { size, volume, epoch, .. } = options;
    (*size, volume.clone(), *epoch)
}

fn hash_entry(digest: &mut Sha256, entry: &Entry, options: &PackOptions) {
    let field = |digest: &mut Sha256, bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    let number = |digest: &mut Sha256, value: u64| digest.update(value.to_le_bytes());
    field(digest, entry.path.as_bytes());
    // As it will be on the volume: a time that is cut off makes no difference.
    let metadata = options.limited(&entry.metadata);
    number(digest, u64::from(metadata.mode));
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
