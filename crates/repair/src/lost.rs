//! Inodes that are gone, made again from what the rest of the volume says of them: the journal, directories,
//! reverse mappings, and the files that were in them.

use std::collections::{BTreeMap, BTreeSet};

use undercroft_recover::pieces::{self, Name};
use undercroft_recover::{FoundFile, Salvaged, Scan};
use undercroft_xfs::format::{
    AclKind, DeviceNumber, FileType, ForkFormat, InodeCore, InodeFlags, InodeFlags2, Namespace,
};
use undercroft_xfs::ops::mend::RawAttribute;
use undercroft_xfs::units::{AgInode, AgNumber, InodeNumber};

use crate::blocks::Blocks;
use crate::chunks::{Chunks, INODES};
use crate::error::RepairError;
use crate::faults::Faults;
use crate::free_inode;
use crate::inode::Inode;
use crate::inode::contents::{self, Refill};
use crate::inode::map::ForkMap;
use crate::inode::sound::Sound;
use crate::owners::Maps;
use crate::pass::{self, Found};
use crate::subject::Subject;

/// Where the attributes of a new inode begin, in units of 8 bytes.
const FORK_OFFSET: u8 = 24;

/// What the rest of a volume says of inodes that are gone.
#[derive(Default)]
pub(crate) struct Testimony {
    files: BTreeMap<InodeNumber, FoundFile>,
    /// Directories that files say they are in, with the generation that they say.
    parents: BTreeMap<InodeNumber, u32>,
}

impl Testimony {
    /// Reads all that can say something of inodes that are gone: not what belongs to others, nor what is free.
    pub(crate) fn gather(
        subject: &Subject,
        chunks: &Chunks,
        faults: &Faults,
        lost: &BTreeSet<InodeNumber>,
    ) -> Result<Self, RepairError> {
        let mut witness = Witness { subject, chunks, lost, told: Blocks::new(&subject.geometry) };
        let parts = pass::over(subject, chunks, Heard::default, |heard, found| {
            if found.in_use { witness.hear(heard, found) } else { Ok(()) }
        })?;
        let mut testimony = Self::default();
        let root = subject.geometry.root_inode;
        let mut is_told = !lost.is_empty() || !chunks.in_use(&subject.geometry, root);
        for mut part in parts {
            is_told |= part.is_told;
            testimony.parents.append(&mut part.parents);
        }
        if !is_told && testimony.parents.is_empty() {
            return Ok(testimony);
        }
        witness.leave_out(faults);
        let device = subject.device();
        let rest = witness.told.others(device.capacity().0);
        let scan = Scan::read(&device, &rest, &mut |_, _, _| {});
        let Some(traces) = scan.volume(subject.geometry.meta_uuid) else { return Ok(testimony) };
        let (_, found) = Salvaged::find(&device, &scan, traces, &mut |_, _, _| {})?;
        for file in found.files.iter().filter(|file| witness.is_gone(file.id.number)) {
            testimony.files.insert(file.id.number, file.clone());
        }
        Ok(testimony)
    }

    /// The paths that an inode is known by.
    pub(crate) fn paths(&self, number: InodeNumber) -> Vec<Vec<Vec<u8>>> {
        let paths = self.files.get(&number).map_or(&[][..], |file| &file.paths[..]);
        paths.iter().filter(|path| path.is_complete).map(|path| path.names.clone()).collect()
    }

    /// Inodes that the chunks do not have, and that something is known of.
    pub(crate) fn missing(&self, subject: &Subject, chunks: &Chunks) -> Vec<InodeNumber> {
        let geometry = &subject.geometry;
        let mut numbers: BTreeSet<InodeNumber> = self.files.keys().copied().collect();
        numbers.extend(self.parents.keys().copied());
        let root = geometry.root_inode.0;
        numbers.extend([root, root + 1, root + 2].map(InodeNumber));
        let is_missing = |number: &InodeNumber| {
            geometry.valid_inode(*number) && !chunks.in_use(geometry, *number)
        };
        numbers.into_iter().filter(is_missing).collect()
    }
}

/// What one thread heard.
#[derive(Default)]
struct Heard {
    parents: BTreeMap<InodeNumber, u32>,
    /// Entries lead to inodes that are gone.
    is_told: bool,
}

/// Who is asked for inodes that are gone.
struct Witness<'w> {
    subject: &'w Subject,
    chunks: &'w Chunks,
    lost: &'w BTreeSet<InodeNumber>,
    /// Blocks that say nothing, or said it already.
    told: Blocks,
}

impl Witness<'_> {
    fn is_gone(&self, number: InodeNumber) -> bool {
        self.lost.contains(&number) || !self.chunks.in_use(&self.subject.geometry, number)
    }

    /// Hears what an inode in use says.
    fn hear(&self, heard: &mut Heard, found: &Found<'_>) -> Result<(), RepairError> {
        let mut is_silent = true;
        for name in own_names(self.subject, found)? {
            if let Some(generation) = name.generation.filter(|_| self.is_gone(name.parent)) {
                heard.parents.insert(name.parent, generation);
                is_silent = false;
            }
        }
        let Some(sound) = Sound::read(self.subject, found.number, found.bytes) else {
            return Ok(());
        };
        if sound.core.file_type() == Some(FileType::Directory) {
            let (entries, _) = contents::entries(self.subject, &sound, found.bytes)?;
            let is_told = entries.iter().any(|entry| self.is_gone(entry.inode));
            heard.is_told |= is_told;
            is_silent &= !is_told;
        }
        if is_silent && !self.is_gone(found.number) {
            sound.claims(self.subject, &mut |ag, claim| {
                self.told.add(self.subject.geometry.fs_block(ag, claim.start), claim.len);
            });
        }
        Ok(())
    }

    /// Leaves out what is free, and chunks of inodes of which none is gone.
    fn leave_out(&mut self, faults: &Faults) {
        let geometry = &self.subject.geometry;
        for ag in (0..geometry.ag_count).map(AgNumber) {
            if !faults.groups.contains(&ag) {
                for free in pieces::free(&self.subject.disk, ag).unwrap_or_default() {
                    self.told.add(geometry.fs_block(ag, free.start), free.len);
                }
            }
            for (start, record) in &self.chunks.groups[ag.0 as usize] {
                let first = geometry.inode_number(ag, *start);
                let end = InodeNumber(first.0 + u64::from(INODES));
                if self.lost.range(first..end).next().is_none() {
                    for (start, len) in crate::chunks::blocks(geometry, record) {
                        self.told.add(geometry.fs_block(ag, start), len);
                    }
                }
            }
        }
    }
}

/// The names that an inode says itself.
fn own_names(subject: &Subject, found: &Found<'_>) -> Result<Vec<Name>, RepairError> {
    let (geometry, number, bytes) = (&subject.geometry, found.number, found.bytes);
    if !crate::chunks::is_inode(bytes, number, geometry.meta_uuid) {
        return Ok(Vec::new());
    }
    let Ok(core) = InodeCore::decode(bytes, geometry) else { return Ok(Vec::new()) };
    if core.forkoff == 0 {
        return Ok(Vec::new());
    }
    let fork = &bytes[core.attr_fork(geometry)];
    if core.attr_format == ForkFormat::Local {
        return Ok(pieces::names_in_inode(geometry, fork));
    }
    let shape = (core.attr_format, core.attr_extents.into());
    let map = pieces::map(&subject.disk, number, shape, fork).unwrap_or_default();
    let mut names = Vec::new();
    contents::attribute_leaves(subject, number, &map.extents, &mut |block| {
        names.extend(pieces::names_in_leaf(geometry, block));
    })?;
    Ok(names)
}

/// Makes room for inodes where there is no chunk any more.
pub(crate) fn add_chunks(subject: &Subject, chunks: &mut Chunks, missing: &[InodeNumber]) {
    for number in missing {
        if !chunks.exists(&subject.geometry, *number) {
            chunks.add(&subject.geometry, *number);
        }
    }
}

/// An inode made again; `None` if too little is known of it.
pub(crate) fn remade(
    subject: &Subject,
    testimony: &Testimony,
    maps: &Maps,
    number: InodeNumber,
) -> Result<Option<Inode>, RepairError> {
    let root = subject.geometry.root_inode;
    let file = testimony.files.get(&number);
    let is_internal = number.0 == root.0 + 1 || number.0 == root.0 + 2;
    let is_directory = number == root || testimony.parents.contains_key(&number);
    let told = file.and_then(|file| file.kind);
    let kind = match told {
        _ if is_internal => FileType::Regular,
        _ if is_directory => FileType::Directory,
        Some(kind) => kind,
        None => return Ok(None),
    };
    let mut inode = blank(subject, testimony, number, kind);
    if is_internal {
        inode.core.mode = FileType::Regular.mode_bits();
        inode.core.nlink = 1;
        if number.0 == root.0 + 1 {
            inode.core.flags = InodeFlags::NEWRTBM;
        }
        return Ok(Some(inode));
    }
    if let Some(file) = file {
        describe(&mut inode, file, kind);
    }
    let mapped = maps.get(&(number, false)).map_or(&[][..], |map| &map[..]);
    match (kind, file) {
        (FileType::Directory, _) => {
            let (entries, parent) = contents::entries_in_blocks(subject, number, mapped)?;
            inode.empty_directory(subject, entries, parent);
            inode.notes.clear();
        }
        (FileType::Symlink, Some(file)) => match file.target() {
            Some(target) if target.len() <= room(subject) => inode.set_local(subject, target),
            _ => inode.take_target(subject, None),
        },
        (FileType::Regular, Some(file)) => {
            inode.core.size = file.size;
            let extents = if file.extents().is_empty() { mapped } else { file.extents() };
            inode.data = ForkMap { extents: extents.to_vec(), is_new: true, ..ForkMap::default() };
        }
        (FileType::Character | FileType::Block, Some(file)) => match file.device() {
            Some(device) => put_device(&mut inode, subject, device),
            None => return Ok(None),
        },
        _ => {}
    }
    let what = format!("the {} was lost: made again from what is known of it", word(kind));
    let is_guessed = file.is_none_or(|file| file.mode.is_none());
    let loss = is_guessed.then(|| "owner, rights and times".to_owned());
    inode.notes.push((what, loss));
    Ok(Some(inode))
}

/// Bytes of the data fork beside attributes.
fn room(subject: &Subject) -> usize {
    (usize::from(FORK_OFFSET) * 8).min(subject.geometry.literal_size())
}

const fn word(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "directory",
        FileType::Symlink => "symbolic link",
        FileType::Regular => "file",
        _ => "special file",
    }
}

fn blank(subject: &Subject, testimony: &Testimony, number: InodeNumber, kind: FileType) -> Inode {
    let geometry = &subject.geometry;
    let features = &geometry.features;
    let mut flags2 = InodeFlags2::empty();
    flags2.set(InodeFlags2::BIGTIME, features.bigtime());
    flags2.set(InodeFlags2::NREXT64, features.nrext64());
    let told = testimony.files.get(&number).map(|file| file.id.generation);
    let of_children = testimony.parents.get(&number).copied();
    let generation = of_children.or(told.filter(|told| *told != 0)).unwrap_or(1);
    let rights = if kind == FileType::Directory { 0o755 } else { 0o644 };
    let has_attributes = features.parent_pointers();
    let core = InodeCore {
        mode: kind.mode_bits() | rights,
        version: 3,
        nlink: 1,
        generation,
        next_unlinked: AgInode::NULL,
        changecount: 1,
        flags2,
        number,
        uuid: geometry.meta_uuid,
        data_format: if kind.is_special() { ForkFormat::Dev } else { ForkFormat::Extents },
        forkoff: match (has_attributes, kind.is_special()) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => FORK_OFFSET,
        },
        ..InodeCore::default()
    };
    let mut bytes = vec![0; geometry.inode_size()];
    InodeCore::write_never_used(&mut bytes, geometry, number, generation);
    Inode {
        number,
        core,
        bytes,
        data: ForkMap::default(),
        attr: ForkMap::default(),
        refill: Refill::default(),
        notes: Vec::new(),
    }
}

/// What a copy in the journal says of an inode.
fn describe(inode: &mut Inode, file: &FoundFile, kind: FileType) {
    let core = &mut inode.core;
    if let Some(mode) = file.mode {
        core.mode = kind.mode_bits() | mode;
        (core.uid, core.gid) = (file.uid, file.gid);
        (core.mtime, core.ctime) = (file.mtime, file.mtime);
        (core.atime, core.crtime) = (file.mtime, file.crtime);
    }
    let attributes = file.attributes.iter().filter_map(|(name, value)| {
        if AclKind::from_xattr_name(name).is_some() {
            return None;
        }
        let (namespace, name) = Namespace::split(name)?;
        Some(RawAttribute { namespace, name: name.to_vec(), value: value.clone() })
    });
    let attributes: Vec<_> = attributes.collect();
    if !attributes.is_empty() {
        inode.refill.attributes = Some(attributes);
    }
}

fn put_device(inode: &mut Inode, subject: &Subject, device: DeviceNumber) {
    let start = inode.core.data_fork(&subject.geometry).start;
    if let Some(number) = device.encode() {
        inode.bytes[start..start + 4].copy_from_slice(&number.to_be_bytes());
    }
}

/// Inodes of chunks that are made again hold nothing yet.
pub(crate) fn clear(
    subject: &Subject,
    chunks: &Chunks,
    missing: &[InodeNumber],
) -> Result<(), RepairError> {
    let geometry = &subject.geometry;
    for number in missing {
        let first = InodeNumber(number.0 & !u64::from(INODES - 1));
        for index in 0..u64::from(INODES) {
            let number = InodeNumber(first.0 + index);
            if !chunks.exists(geometry, number) || chunks.in_use(geometry, number) {
                continue;
            }
            let bytes = subject.read_inode(number)?;
            if !crate::chunks::is_inode(&bytes, number, geometry.meta_uuid) {
                free_inode::write_free(subject, number)?;
            }
        }
    }
    Ok(())
}
