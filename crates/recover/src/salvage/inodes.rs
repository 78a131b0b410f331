//! The inodes of a volume: those in their places, and those that the journal alone still has.

use rustc_hash::{FxHashMap, FxHashSet};
use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{Extent, FileType, ForkFormat, InodeCore, InodeFlags, InodeFlags2};

use super::copies::Copies;
use super::groups::Groups;
use super::index::Index;
use super::links::Link;
use super::places::Places;
use crate::attributes;
use crate::content::{self, Content};
use crate::directory;
use crate::disk::Disk;
use crate::file_id::FileId;
use crate::found::{FoundFile, SizeFrom, State};
use crate::journal::Span;
use crate::map;
use crate::names;
use crate::present::decode;
use crate::progress::{Progress, Step};
use crate::remains::in_place;
use crate::stream::{joined, read_in_order};
use crate::trail::{Origin, Seen, Trail};

/// Inodes of one entry of the table of places.
const GROUP: u64 = 64;

/// What is known of a file besides what people see.
#[derive(Debug)]
pub(super) struct About {
    /// Whether trees say that its inode is in use.
    pub(super) in_use: Option<bool>,
    /// The journal has a later state than the place of the inode: trees may lag behind.
    pub(super) is_of_journal: bool,
    /// The parent of a directory, as far as it says so itself.
    pub(super) parent: Option<InodeNumber>,
}

/// The inodes that were found.
#[derive(Debug, Default)]
pub(super) struct Inodes {
    pub(super) files: Vec<FoundFile>,
    pub(super) about: Vec<About>,
    /// Their names, as their own attributes and the directories inside inodes have them.
    pub(super) links: Vec<Link>,
    /// Blocks of directories, with their owners.
    pub(super) directories: Places,
    /// Extents of attribute forks, by inode.
    pub(super) attributes: FxHashMap<u64, Vec<Extent>>,
    by_number: FxHashMap<u64, usize>,
    /// Places of inodes that are sound, in use or free.
    sound: FxHashMap<u64, u64>,
    /// The latest change of what was found.
    newest: Lsn,
    /// Inodes that are in use by themselves, and not by the trees or the journal.
    pub(super) stale: u64,
    /// Inodes without a name that are still open, or were when the volume was left.
    pub(super) unlinked: u64,
}

impl Inodes {
    /// Reads all inodes of the index, and the journal before them.
    pub(super) fn read(
        disk: &Disk,
        index: &Index,
        groups: &Groups,
        progress: &mut Progress<'_>,
    ) -> Self {
        let mut copies = Copies::read(disk, progress);
        let mut inodes = Self::default();
        // As many as there are at most, so that nothing is moved and copied as they grow.
        let used = index.files.min(index.inodes.iter().map(|run| u64::from(run.count)).sum());
        inodes.reserve(usize::try_from(used).unwrap_or(0));
        let size = disk.geometry.inode_size();
        let unit = (size as u64 / 512).max(1);
        let mut ranges: Vec<_> = index.inode_sectors(&disk.geometry).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let ranges = joined(ranges);
        let bytes = ranges.iter().map(|range| (range.end - range.start) * 512).sum();
        progress.begin(Step::Inodes, bytes);
        read_in_order(&disk.present, ranges, unit, |sectors, piece| {
            progress.read((sectors.end - sectors.start) * 512);
            let Ok(piece) = piece else { return };
            for (index, bytes) in piece.chunks_exact(size).enumerate() {
                let at = (sectors.start * 512) + (index * size) as u64;
                inodes.take(disk, groups, &mut copies, at, bytes);
            }
        });
        let span = copies.span;
        inodes.take_lost(disk, groups, copies);
        inodes.doubt(span);
        inodes.directories.sort();
        inodes
    }

    fn reserve(&mut self, count: usize) {
        self.files.reserve_exact(count);
        self.about.reserve_exact(count);
        self.by_number.reserve(count);
    }

    /// The place of a file in the list.
    pub(super) fn index(&self, number: InodeNumber) -> Option<usize> {
        self.by_number.get(&number.0).copied()
    }

    /// Adds a file.
    pub(super) fn push(&mut self, about: About, file: FoundFile) {
        self.by_number.insert(file.id.number.0, self.files.len());
        self.about.push(about);
        self.files.push(file);
    }

    /// The files alone.
    pub(super) fn into_files(self) -> Vec<FoundFile> {
        self.files
    }

    /// Takes files away again: places in the list.
    pub(super) fn remove(&mut self, places: &[usize]) {
        let gone: FxHashSet<usize> = places.iter().copied().collect();
        let mut place = 0;
        self.files.retain(|_| {
            place += 1;
            !gone.contains(&(place - 1))
        });
        let mut place = 0;
        self.about.retain(|_| {
            place += 1;
            !gone.contains(&(place - 1))
        });
        let numbers = self.files.iter().enumerate();
        self.by_number = numbers.map(|(place, file)| (file.id.number.0, place)).collect();
    }

    /// Whether the place of an inode is sound, so that it is known whether it is in use.
    pub(super) fn is_sound(&self, number: InodeNumber) -> bool {
        let mask = self.sound.get(&(number.0 / GROUP)).copied().unwrap_or(0);
        mask >> (number.0 % GROUP) & 1 == 1
    }

    fn take(&mut self, disk: &Disk, groups: &Groups, copies: &mut Copies, at: u64, bytes: &[u8]) {
        let Some(number) = number_at(disk, at) else { return };
        let Some(core) = decode(disk, number, bytes) else { return };
        if !core.lsn.is_null() {
            self.newest = self.newest.max(core.lsn);
        }
        *self.sound.entry(number.0 / GROUP).or_default() |= 1 << (number.0 % GROUP);
        let id = FileId { number, generation: core.generation };
        let latest = copies.latest(number).filter(|latest| latest.is_behind(&core));
        if latest.is_some_and(|latest| !latest.is_end && latest.id != id) {
            // Another file by now, which is taken with those that are not in their places.
            return;
        }
        copies.latest.remove(&number);
        if core.mode == 0 || latest.is_some_and(|latest| latest.is_end) {
            return;
        }
        let in_use = groups.in_use(disk, number);
        if in_use == Some(false) && latest.is_none() {
            self.stale += 1;
            return;
        }
        let mut trail = copies.trails.remove(&id).unwrap_or_default();
        trail.add(in_place(disk, core, bytes), |_| true);
        self.add(disk, &trail, in_use, latest.is_some());
    }

    /// Inodes that the journal alone has are as it says if it is whole from there to its end, and that is
    /// behind all other changes. Else the last state may be missing.
    fn doubt(&mut self, span: Option<Span>) {
        let since =
            span.filter(|span| span.newest >= self.newest).and_then(|span| span.whole_since);
        for (file, about) in self.files.iter_mut().zip(&self.about) {
            if about.is_of_journal && since.is_none_or(|since| file.last_seen < since.0) {
                file.is_guessed = true;
            }
        }
    }

    /// Adds the inodes that are not in their places any more.
    fn take_lost(&mut self, disk: &Disk, groups: &Groups, copies: Copies) {
        let mut lost: Vec<_> = copies.latest.into_iter().collect();
        lost.sort_unstable_by_key(|(number, _)| *number);
        let mut trails = copies.trails;
        for (number, latest) in lost {
            let in_use = groups.in_use(disk, number);
            // Trees do not know of what the journal alone has.
            let is_free = in_use == Some(false) && !self.is_sound(number);
            if latest.is_end || is_free {
                continue;
            }
            if let Some(trail) = trails.remove(&latest.id) {
                self.add(disk, &trail, in_use, true);
            }
        }
    }

    fn add(&mut self, disk: &Disk, trail: &Trail, in_use: Option<bool>, is_of_journal: bool) {
        let Some(seen) = &trail.core else {
            self.unlinked += 1;
            return;
        };
        let core = &seen.value;
        let Some(kind) = core.file_type() else { return };
        if core.metatype != 0 || core.flags2.contains(InodeFlags2::METADATA) {
            return;
        }
        if core.nlink == 0 {
            self.unlinked += 1;
            return;
        }
        let number = core.number;
        // The blocks of such files are on another device.
        let content = if core.flags.contains(InodeFlags::REALTIME) {
            Content::None
        } else {
            content::of_trail(disk, core, trail, None)
        };
        let mut parent = None;
        if kind == FileType::Directory {
            parent = self.add_directory(disk, core, trail, &content);
        }
        let attr = trail.attr.as_ref().map(|seen| &seen.value);
        let attr = attr.filter(|fork| core.forkoff > 0 && core.attr_format == fork.format);
        let short = attr.filter(|fork| fork.format == ForkFormat::Local).map(|fork| &*fork.bytes);
        for name in short.map_or(Vec::new(), |fork| names::of_shortform(&disk.geometry, fork)) {
            self.links.push(Link::pointer(number, name));
        }
        let in_blocks = attr.filter(|_| short.is_none());
        let attr_map = in_blocks.and_then(|fork| map::of_fork(disk, number, fork.as_map()));
        if let Some(map) = attr_map {
            self.attributes.insert(number.0, map.extents);
        }
        let file = file(seen, kind, content, short);
        self.push(About { in_use, is_of_journal, parent }, file);
    }

    /// Takes the entries of a directory inside its inode; else notes its blocks. Returns its parent.
    fn add_directory(
        &mut self,
        disk: &Disk,
        core: &InodeCore,
        trail: &Trail,
        content: &Content,
    ) -> Option<InodeNumber> {
        if let Content::Map(map) = content {
            let end = disk.geometry.dir_leaf_block().0;
            for extent in map.extents.iter().filter(|extent| extent.offset.0 < end) {
                self.directories.add(core.number, extent);
            }
            return None;
        }
        let fork = trail.data.as_ref().map(|seen| &seen.value);
        let fork = &fork.filter(|fork| fork.format == ForkFormat::Local)?.bytes;
        let size = usize::try_from(core.size).ok()?.min(fork.len());
        let found = directory::of_shortform(&disk.geometry, &fork[..size])?;
        let entries = found.entries.into_iter();
        self.links.extend(entries.map(|entry| Link::entry(core.number, entry)));
        found.parent
    }
}

/// The number of the inode at a byte.
fn number_at(disk: &Disk, at: u64) -> Option<InodeNumber> {
    let geometry = &disk.geometry;
    let block = disk.block_at(at / 512)?;
    let index = (at & ((1 << geometry.block_log) - 1)) >> geometry.inode_log;
    Some(InodeNumber(block.0 << geometry.inodes_per_block_log() | index))
}

fn file(
    seen: &Seen<InodeCore>,
    kind: FileType,
    content: Content,
    attr: Option<&[u8]>,
) -> FoundFile {
    let core = &seen.value;
    FoundFile {
        id: FileId { number: core.number, generation: core.generation },
        kind: Some(kind),
        paths: Vec::new(),
        // The format has none that are longer.
        size: core.size.min(i64::MAX as u64),
        size_from: match seen.origin {
            Origin::Journal => SizeFrom::Journal,
            Origin::Chunk => SizeFrom::Inode,
        },
        removed_at: None,
        uid: core.uid,
        gid: core.gid,
        mode: Some(core.mode & 0o7777),
        mtime: core.mtime,
        attributes: attr.map_or(Vec::new(), attributes::of_shortform),
        state: State::Lost,
        losses: Vec::new(),
        content,
        names: Vec::new(),
        vacated: seen.lsn.0,
        last_seen: seen.lsn.0,
        links: core.nlink,
        is_reflinked: core.flags2.contains(InodeFlags2::REFLINK),
        crtime: core.crtime,
        ctime: core.ctime,
        is_guessed: false,
    }
}
