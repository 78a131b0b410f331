//! One inode: what its bytes claim, and how it is put right.

pub(crate) mod contents;
pub(crate) mod core;
pub(crate) mod map;
pub(crate) mod sound;

use std::ops::Range;

use undercroft_recover::pieces;
use undercroft_xfs::format::dir_layout::DirLayout;
use undercroft_xfs::format::{
    AttrShortform, FileType, ForkFormat, Geometry, InodeCore, RmapRecord, SYMLINK_MAX,
    dir_shortform,
};
use undercroft_xfs::units::{AgNumber, InodeNumber};

use crate::error::RepairError;
use crate::faults::Parts;
use crate::subject::Subject;
use crate::tree::map_blocks;
use contents::Refill;
use map::{Evidence, ForkMap};

/// An inode in use, with its maps.
#[derive(Clone, Debug)]
pub(crate) struct Inode {
    pub(crate) number: InodeNumber,
    pub(crate) core: InodeCore,
    /// All of its bytes; those of the core are old.
    pub(crate) bytes: Vec<u8>,
    pub(crate) data: ForkMap,
    pub(crate) attr: ForkMap,
    pub(crate) refill: Refill,
    /// What is done to it, and what is lost by that.
    pub(crate) notes: Vec<(String, Option<String>)>,
}

/// What is known of an inode besides its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'e> {
    pub(crate) parts: Parts,
    pub(crate) data: Option<Evidence<'e>>,
    pub(crate) attr: Option<Evidence<'e>>,
    /// Blocks that are another's.
    pub(crate) taken: &'e [Range<u64>],
}

impl Inode {
    fn with_maps(
        subject: &Subject,
        number: InodeNumber,
        core: InodeCore,
        bytes: &[u8],
        known: Known<'_>,
    ) -> Self {
        let geometry = &subject.geometry;
        let is_doubted = known.parts.contains(Parts::DOUBTED);
        let data = map::read(
            subject,
            number,
            (core.data_format, core.data_extents),
            &bytes[core.data_fork(geometry)],
            known.data,
            is_doubted,
        );
        let attr = if core.forkoff == 0 {
            ForkMap::default()
        } else {
            let shape = (core.attr_format, core.attr_extents.into());
            map::read(
                subject,
                number,
                shape,
                &bytes[core.attr_fork(geometry)],
                known.attr,
                is_doubted,
            )
        };
        let (refill, notes) = (Refill::default(), Vec::new());
        Self { number, core, bytes: bytes.to_vec(), data, attr, refill, notes }
    }

    /// An inode put right as far as its bytes go; `None` if they are not those of one.
    pub(crate) fn mended(
        subject: &Subject,
        number: InodeNumber,
        bytes: &[u8],
        known: Known<'_>,
    ) -> Result<Option<Self>, RepairError> {
        let geometry = &subject.geometry;
        if !core::is_left_of(bytes, number, geometry) {
            return Ok(None);
        }
        let Some(old) = core::read(bytes, number, geometry) else { return Ok(None) };
        let mut core = old.clone();
        let kind = core.file_type().unwrap_or_else(|| guess(subject, &core, bytes));
        core::settle(&mut core, kind, bytes, geometry);
        let mut inode = Self::with_maps(subject, number, core, bytes, known);
        if known.parts.contains(Parts::MAP) {
            (inode.data.is_new, inode.attr.is_new) =
                (!inode.data.extents.is_empty(), !inode.attr.extents.is_empty());
        }
        let is_cut = [inode.data.without(known.taken), inode.attr.without(known.taken)];
        inode.settle_size(subject, kind);
        let is_changed = inode.core != old || inode.data.is_new || inode.attr.is_new;
        inode.settle_data(subject, kind, known.parts, is_changed, is_cut[0])?;
        inode.settle_attributes(subject, known.parts, is_changed, is_cut[1]);
        inode.describe(&old, is_cut);
        Ok(Some(inode))
    }

    /// The blocks that it claims, by group.
    pub(crate) fn claims(&self, subject: &Subject, to: &mut dyn FnMut(AgNumber, RmapRecord)) {
        sound::claims(subject, self.number, [&self.data, &self.attr], to);
    }

    /// Blocks that the trees of its maps need at most, as far as they are new.
    pub(crate) fn tree_blocks(&self, geometry: &Geometry) -> usize {
        let forks = [self.core.data_fork(geometry), self.core.attr_fork(geometry)];
        let maps = [&self.data, &self.attr].into_iter().zip(forks).filter(|(map, _)| map.is_new);
        maps.map(|(map, fork)| map_blocks(geometry, map.extents.len(), fork.len())).sum()
    }

    fn settle_size(&mut self, subject: &Subject, kind: FileType) {
        let geometry = &subject.geometry;
        let end = self.data.extents.last().map_or(0, |extent| extent.end().0);
        match kind {
            FileType::Regular if self.core.size >> 63 != 0 => {
                self.core.size = end << geometry.block_log;
            }
            FileType::Directory if self.core.data_format != ForkFormat::Local => {
                let unit = u64::from(geometry.dir_block_blocks());
                let leaf = geometry.dir_leaf_block().0;
                let data = self.data.extents.iter().rfind(|extent| extent.offset.0 < leaf);
                let data = data.map_or(0, |extent| extent.end().0.min(leaf));
                self.core.size = if end <= unit { unit } else { data } << geometry.block_log;
            }
            _ => {}
        }
    }

    /// The content of the data fork: a directory or a link that is damaged is emptied.
    fn settle_data(
        &mut self,
        subject: &Subject,
        kind: FileType,
        parts: Parts,
        is_changed: bool,
        is_cut: bool,
    ) -> Result<(), RepairError> {
        let geometry = &subject.geometry;
        let fork = self.core.data_fork(geometry);
        let is_local = self.core.data_format == ForkFormat::Local;
        match kind {
            FileType::Directory if is_local => {
                let room = &self.bytes[fork];
                let size = usize::try_from(self.core.size).unwrap_or(usize::MAX).min(room.len());
                let content = &room[..size];
                let is_sound = size as u64 == self.core.size
                    && dir_shortform::verify_shortform(content, DirLayout::new(geometry), geometry)
                        .is_ok();
                if is_sound && !parts.contains(Parts::DATA) {
                    return Ok(());
                }
                let found = pieces::directory_in_inode(geometry, content)
                    .or_else(|| pieces::directory_in_inode(geometry, room));
                let (entries, parent) =
                    found.map_or((Vec::new(), None), |found| (found.entries, found.parent));
                self.empty_directory(subject, entries, parent);
            }
            FileType::Directory => {
                // The smallest change first: what is left shows when it is checked again.
                let is_wanted = parts.contains(Parts::DATA) && !is_changed;
                let is_empty = self.data.extents.is_empty();
                if is_wanted || is_cut || self.data.is_partial || is_empty {
                    let (entries, parent) =
                        contents::entries_in_blocks(subject, self.number, &self.data.extents)?;
                    self.empty_directory(subject, entries, parent);
                }
            }
            FileType::Symlink => self.settle_target(subject, is_local)?,
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn empty_directory(
        &mut self,
        subject: &Subject,
        entries: Vec<pieces::Entry>,
        parent: Option<InodeNumber>,
    ) {
        let geometry = &subject.geometry;
        let parent = parent.filter(|parent| geometry.valid_inode(*parent));
        let content = contents::empty_directory(geometry, parent.unwrap_or(geometry.root_inode));
        let what = format!("the directory is damaged: built anew, with {} entries", entries.len());
        self.notes.push((what, None));
        self.refill.entries = Some(entries);
        self.set_local(subject, &content);
    }

    /// Makes content the data fork of the inode.
    pub(crate) fn set_local(&mut self, subject: &Subject, content: &[u8]) {
        let fork = self.core.data_fork(&subject.geometry);
        self.bytes[fork.clone()].fill(0);
        self.bytes[fork.start..fork.start + content.len()].copy_from_slice(content);
        self.core.data_format = ForkFormat::Local;
        self.core.data_extents = 0;
        self.core.size = content.len() as u64;
        self.data = ForkMap::default();
    }

    fn settle_target(&mut self, subject: &Subject, is_local: bool) -> Result<(), RepairError> {
        let fork = self.core.data_fork(&subject.geometry);
        if is_local {
            let room = &self.bytes[fork];
            let len = room.iter().position(|byte| *byte == 0).unwrap_or(room.len());
            let size = usize::try_from(self.core.size).unwrap_or(usize::MAX);
            if size > len || size == 0 {
                let target = room[..len].to_vec();
                self.take_target(subject, Some(target).filter(|target| !target.is_empty()));
            }
            return Ok(());
        }
        let (number, size) = (self.number, self.core.size);
        let extents = self.data.extents.clone();
        let fits = |size: &u64| contents::target(subject, number, &extents, *size).is_some();
        if fits(&size) && !self.data.is_partial {
            return Ok(());
        }
        if let Some(size) = (1..=SYMLINK_MAX as u64).rev().find(fits) {
            self.core.size = size;
        } else if contents::renew_target(subject, number, &extents, size)? {
            self.notes.push(("the header of its target is damaged: written anew".into(), None));
        } else {
            self.take_target(subject, None);
        }
        Ok(())
    }

    pub(crate) fn take_target(&mut self, subject: &Subject, target: Option<Vec<u8>>) {
        match target {
            Some(target) => self.set_local(subject, &target),
            None => {
                // A name that nothing has, so that it leads nowhere.
                self.set_local(subject, LOST_TARGET);
                let loss = "the target of the symbolic link".to_owned();
                self.notes.push(("the target is not legible".into(), Some(loss)));
            }
        }
    }

    fn settle_attributes(
        &mut self,
        subject: &Subject,
        parts: Parts,
        is_changed: bool,
        is_cut: bool,
    ) {
        let geometry = &subject.geometry;
        if self.core.forkoff == 0 {
            return;
        }
        let fork = &self.bytes[self.core.attr_fork(geometry)];
        let is_local = self.core.attr_format == ForkFormat::Local;
        let is_wanted = parts.contains(Parts::ATTRIBUTES);
        let attributes = if is_local {
            if AttrShortform::parse(fork).is_ok() && (!is_wanted || is_changed) {
                return;
            }
            contents::attributes_in_inode(fork)
        } else {
            if (!is_wanted || is_changed) && !is_cut && !self.attr.is_partial {
                return;
            }
            contents::attributes_in_blocks(subject, self.number, &self.attr.extents)
        };
        let what =
            format!("the attributes are damaged: built anew, with {} of them", attributes.len());
        self.notes.push((what, None));
        self.refill.attributes = Some(attributes);
        self.attr = ForkMap::default();
        self.core.attr_format = ForkFormat::Extents;
        self.core.attr_extents = 0;
        let fork = self.core.attr_fork(geometry);
        self.bytes[fork].fill(0);
    }

    fn describe(&mut self, old: &InodeCore, is_cut: [bool; 2]) {
        let new = &self.core;
        let fields = [
            ("mode", old.mode != new.mode),
            ("size", old.size != new.size),
            ("format of the data fork", old.data_format != new.data_format),
            ("format of the attributes", old.attr_format != new.attr_format),
            ("flags", old.flags != new.flags || old.flags2 != new.flags2),
            ("fork offset", old.forkoff != new.forkoff),
            (
                "times",
                [old.atime, old.mtime, old.ctime, old.crtime]
                    != [new.atime, new.mtime, new.ctime, new.crtime],
            ),
            ("hints", old.extsize != new.extsize || old.cowextsize != new.cowextsize),
        ];
        let names: Vec<_> =
            fields.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
        if !names.is_empty() {
            self.notes.push((format!("set right: {}", names.join(", ")), None));
        }
        if is_cut[0] && self.refill.entries.is_none() {
            let loss = "the blocks that are another's".to_owned();
            self.notes.push(("blocks of its data belong to another".into(), Some(loss)));
        } else if self.data.is_new && self.data.is_partial {
            let loss = "the parts whose place is not known".to_owned();
            self.notes.push(("parts of its map are lost".into(), Some(loss)));
        } else if self.data.is_new || self.attr.is_new {
            self.notes.push(("its map is damaged: built anew".into(), None));
        }
    }
}

/// The target of a link whose own is lost.
const LOST_TARGET: &[u8] = b"(lost)";

/// What an inode is by what it holds.
fn guess(subject: &Subject, core: &InodeCore, bytes: &[u8]) -> FileType {
    let geometry = &subject.geometry;
    let fork = &bytes[core.data_fork(geometry)];
    match core.data_format {
        ForkFormat::Local => {
            let size = usize::try_from(core.size).unwrap_or(usize::MAX).min(fork.len());
            let is_directory =
                dir_shortform::verify_shortform(&fork[..size], DirLayout::new(geometry), geometry);
            if is_directory.is_ok() { FileType::Directory } else { FileType::Symlink }
        }
        ForkFormat::Dev => FileType::Fifo,
        _ => {
            let shape = (core.data_format, core.data_extents);
            let map = pieces::map(&subject.disk, core.number, shape, fork);
            let first = map.and_then(|map| map.extents.first().copied());
            let block = first.and_then(|first| subject.blocks(first.start, 1).ok());
            match block {
                Some(block) if pieces::is_directory_block(geometry, &block) => FileType::Directory,
                Some(block) if block.starts_with(b"XSLM") => FileType::Symlink,
                _ => FileType::Regular,
            }
        }
    }
}
