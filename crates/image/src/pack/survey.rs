//! The first pass over a source: how much there is, and an identity for the volume.
//!
//! Memory grows with directories, hard links, and files with attributes that may have links, by
//! some 50 bytes each.

use super::gaps::{Gaps, Place};
use super::identity::Identity;
use super::{PackError, PackOptions};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hasher;
use undercroft_source::{DataRange, Entry, EntryPath, Kind, Links, Source};
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
    /// Those of them that have data of files shorter than a chunk of inodes: they go into any space.
    pub(super) small: u64,
    /// What chunks of inodes leave between them.
    pub(super) gaps: Gaps,
    /// The directory of the last name, by the hash of its path.
    last: Option<u64>,
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
    place: Place,
    /// Blocks that have a place.
    placed: u32,
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
        let geometry = superblock.geometry();
        let mut survey = Self {
            // The root, which not every archive holds.
            inodes: 1,
            bytes: 0,
            blocks: 0,
            small: 0,
            gaps: Gaps::new(&geometry),
            last: None,
            directories: FxHashMap::default(),
            links: FxHashMap::default(),
            labelled: FxHashMap::default(),
            geometry,
            identity: [0; 16],
        };
        let mut identity = Identity::new(options);
        source.scan(&mut |entry| {
            survey.add(entry);
            identity.add(entry);
        })?;
        survey.identity = identity.finish();
        survey.place_blocks();
        survey.blocks +=
            survey.links.iter().map(|(file, names)| survey.link_blocks(*file, names)).sum::<u64>();
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
        names.room(&self.geometry)
    }

    fn add(&mut self, entry: &Entry) {
        let path = entry.path.as_bytes();
        let name = entry.path.split_last().map(|(parent, name)| (path_hash(parent), name.len()));
        let content = match &entry.kind {
            Kind::HardLink(first) => return self.add_link(name, first),
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
        let pointer = name.filter(|_| parents).map(|(_, len)| StoredAttribute::parent_pointer(len));
        let property = mkfs::default_property(&self.geometry.features).filter(|_| name.is_none());
        let property = property
            .map(|(name, value)| StoredAttribute::new(&[b"trusted.", name].concat(), value));
        let others =
            entry.xattrs.iter().map(|xattr| StoredAttribute::new(&xattr.name, &xattr.value));
        let attributes: SmallVec<[_; 4]> =
            pointer.into_iter().chain(property).chain(others).collect();
        let footprint = Footprint::new(&self.geometry, content, &attributes);
        self.blocks += footprint.blocks;
        let place = self.place(path, name.map(|(parent, _)| parent), content, &footprint);
        self.add_name(name);
        if content == Content::Directory {
            let names = self.directories.entry(path_hash(path)).or_default();
            (names.room, names.place) = (Some(footprint.room as u16), place);
        } else if parents && entry.links == Links::Several {
            self.label(path, content, &attributes[usize::from(pointer.is_some())..]);
        }
    }

    /// Adds a name of a directory, by the hash of its path, and the length of the name.
    fn add_name(&mut self, name: Option<(u64, usize)>) {
        let Some((parent, len)) = name else { return };
        let names = self.directories.entry(parent).or_default();
        names.names.add(&self.geometry, len);
    }

    fn add_link(&mut self, name: Option<(u64, usize)>, first: &EntryPath) {
        let names = self.links.entry(path_hash(first.as_bytes())).or_default();
        // Names have at most 255 bytes.
        names.first = first.split_last().map_or(0, |(_, name)| name.len()) as u8;
        names.further.push(name.map_or(0, |(_, len)| len) as u8);
        self.turn_to(name.map(|(parent, _)| parent));
        self.add_name(name);
    }

    /// Gives an inode its place, and its blocks that are no file data; `parent` has no name of it yet.
    fn place(
        &mut self,
        path: &[u8],
        parent: Option<u64>,
        content: Content,
        footprint: &Footprint,
    ) -> Place {
        self.turn_to(parent);
        let known = match parent {
            None => Some(Place::default()),
            Some(_) if content == Content::Directory => {
                // An archive may have entries of a directory that exists.
                let known = self.directories.get(&path_hash(path));
                known.filter(|names| names.room.is_some()).map(|names| names.place)
            }
            Some(_) => None,
        };
        let mut place = known.unwrap_or_else(|| {
            if content == Content::Directory {
                return self.gaps.directory();
            }
            let group = parent.and_then(|parent| self.directories.get(&parent));
            let group = group.map_or(0, |names| names.place.group);
            if self.gaps.needs_chunk(group) {
                self.place_blocks();
            }
            self.gaps.inode(group)
        });
        let data = match content {
            Content::File { blocks, .. } => blocks,
            _ => 0,
        };
        self.gaps.blocks(&mut place, footprint.blocks - data);
        place
    }

    /// Goes on to another directory.
    fn turn_to(&mut self, directory: Option<u64>) {
        if self.last != directory {
            self.place_blocks();
            self.last = directory;
        }
    }

    /// Gives the blocks that names have added to the last directory their places.
    fn place_blocks(&mut self) {
        let Some(names) = self.last.and_then(|last| self.directories.get_mut(&last)) else {
            return;
        };
        let blocks = names.names.blocks(&self.geometry, names.room(&self.geometry));
        let added = blocks.saturating_sub(names.placed.into());
        self.gaps.blocks(&mut names.place, added);
        names.placed += added as u32;
    }

    /// The blocks that the data of a file takes.
    fn runs(&mut self, data: &[DataRange]) -> Content {
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
        if blocks < self.geometry.chunk_blocks().into() {
            self.small += blocks;
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

impl Names {
    /// Bytes for names inside the inode.
    fn room(&self, geometry: &Geometry) -> usize {
        // A directory without an entry of its own has no attributes.
        self.room.map_or_else(|| geometry.literal_size() / 4, usize::from)
    }
}

/// A hash of a path; two paths with one hash only make the estimate larger.
fn path_hash(path: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(path);
    hasher.finish()
}
