//! The census taken: all inodes in use and all directories are read once.

use std::collections::BTreeMap;

use undercroft_recover::pieces::Entry;
use undercroft_xfs::check::link_sum;
use undercroft_xfs::format::{EntryType, FileType};
use undercroft_xfs::units::InodeNumber;

use super::census::{Census, Directory, is_right};
use super::pointers;
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::inode::contents;
use crate::inode::sound::Sound;
use crate::pass::{self, Found};
use crate::subject::Subject;

/// An entry that is wrong.
#[derive(Clone, Debug)]
pub(super) struct FalseEntry {
    pub(super) directory: InodeNumber,
    pub(super) name: Vec<u8>,
    /// Where it leads.
    pub(super) child: InodeNumber,
    /// What the entry should say of the kind; `None` if it is to go.
    pub(super) right: Option<EntryType>,
}

impl FalseEntry {
    fn order(&self) -> (InodeNumber, &[u8]) {
        (self.directory, &self.name)
    }
}

/// What one thread found.
#[derive(Default)]
struct Part {
    directories: Vec<(u64, Directory)>,
    wrong: Vec<FalseEntry>,
}

/// Takes the census of a volume; returns the entries that are wrong, too.
pub(super) fn take(
    subject: &Subject,
    chunks: &Chunks,
    rooted: &[InodeNumber],
) -> Result<(Census, Vec<FalseEntry>), RepairError> {
    let mut census = Census::new(subject, chunks, rooted);
    let parts = pass::over(subject, chunks, Part::default, |part, found| {
        if found.in_use { inode(subject, &census, part, found) } else { Ok(()) }
    })?;
    let mut wrong = Vec::new();
    for mut part in parts {
        census.directories.extend(part.directories);
        wrong.append(&mut part.wrong);
    }
    let (mut false_ones, named) = second(subject, chunks, &census)?;
    for entry in false_ones.iter().filter(|entry| entry.right.is_none()) {
        let generation = census.generation(entry.directory);
        census.leave(subject, entry.child, link_sum(entry.directory, generation, &entry.name));
    }
    wrong.append(&mut false_ones);
    wrong.sort_unstable_by(|a, b| a.order().cmp(&b.order()));
    let told: Vec<_> = census
        .nodes(subject)
        .filter(|node| node.kind == FileType::Directory && node.has_entries())
        .filter_map(|node| Some((node.number, named.get(&node.number).copied().or(node.parent)?)))
        .collect();
    for (child, parent) in told {
        if let Some(directory) = census.directories.get_mut(&child.0) {
            directory.parent = parent.0;
        }
        if let Some(directory) = census.directories.get_mut(&parent.0) {
            directory.children += 1;
        }
    }
    Ok((census, wrong))
}

fn inode(
    subject: &Subject,
    census: &Census,
    part: &mut Part,
    found: &Found<'_>,
) -> Result<(), RepairError> {
    let Some(sound) = Sound::read(subject, found.number, found.bytes) else { return Ok(()) };
    let Some(kind) = sound.core.file_type() else { return Ok(()) };
    let is_directory = kind == FileType::Directory;
    let links = (!is_directory).then_some(sound.core.nlink);
    census.know(subject, found.number, kind, links);
    if census.has_pointers {
        census.point(subject, found.number, pointers::sum(subject, &sound, found)?);
    }
    if !is_directory {
        return Ok(());
    }
    let (number, generation) = (found.number, sound.core.generation);
    let (entries, parent) = contents::entries(subject, &sound, found.bytes)?;
    for entry in entries {
        let (child, kind) = (entry.inode, entry.kind);
        let is_wrong = census.is_root(child) || child == number;
        let sum = || link_sum(number, generation, &entry.name);
        if is_wrong || !census.enter(subject, number, (child, kind), sum) {
            part.wrong.push(FalseEntry { directory: number, name: entry.name, child, right: None });
        }
    }
    let dot_dot = parent.map_or(0, |parent| parent.0);
    let links = sound.core.nlink;
    let directory = Directory { generation, links, children: 0, parent: 0, dot_dot };
    part.directories.push((number.0, directory));
    Ok(())
}

/// Hands over the generation of a directory with each of its entries.
pub(crate) fn names_of(
    subject: &Subject,
    found: &Found<'_>,
    visit: &mut dyn FnMut(u32, Entry),
) -> Result<(), RepairError> {
    let sound = Sound::read(subject, found.number, found.bytes).filter(|_| found.in_use);
    let sound = sound.filter(|it| it.core.file_type() == Some(FileType::Directory));
    let Some(sound) = sound else { return Ok(()) };
    let (entries, _) = contents::entries(subject, &sound, found.bytes)?;
    entries.into_iter().for_each(|entry| visit(sound.core.generation, entry));
    Ok(())
}

/// The directories that have the one entry of directories that had several.
type Named = BTreeMap<InodeNumber, InodeNumber>;

/// Entries that are wrong by what they lead to, if there are any: a second look at all directories.
fn second(
    subject: &Subject,
    chunks: &Chunks,
    census: &Census,
) -> Result<(Vec<FalseEntry>, Named), RepairError> {
    let geometry = &subject.geometry;
    let mut doubted: BTreeMap<InodeNumber, FileType> = BTreeMap::new();
    for node in census.nodes(subject) {
        let has_many = node.kind == FileType::Directory && node.balance > 1;
        if has_many || !node.is_told_right(geometry) {
            doubted.insert(node.number, node.kind);
        }
    }
    let (mut named, mut wrong) = (Named::new(), Vec::new());
    if doubted.is_empty() && !census.has_loose_ends() {
        return Ok((wrong, named));
    }
    let parts = pass::over(subject, chunks, Vec::new, |doubtful, found| {
        let directory = found.number;
        names_of(subject, found, &mut |_, Entry { inode: child, name, kind, .. }| {
            let is_counted = !census.is_root(child) && child != directory;
            let is_loose = census.kind(subject, child).is_none();
            if is_counted && (is_loose || doubted.contains_key(&child)) {
                doubtful.push((FalseEntry { directory, name, child, right: None }, kind));
            }
        })
    })?;
    let mut doubtful: Vec<_> = parts.into_iter().flatten().collect();
    doubtful.sort_unstable_by(|(a, _), (b, _)| a.order().cmp(&b.order()));
    for (entry, told) in doubtful {
        let kind = doubted.get(&entry.child);
        // A directory has one name: the first stays.
        let is_second = kind == Some(&FileType::Directory) && named.contains_key(&entry.child);
        match kind {
            Some(kind) if !is_second => {
                named.insert(entry.child, entry.directory);
                if !is_right(geometry, told, *kind) {
                    wrong.push(FalseEntry { right: Some(EntryType::from(*kind)), ..entry });
                }
            }
            _ if census.has_place(subject, entry.child) => wrong.push(entry),
            _ => {}
        }
    }
    Ok((wrong, named))
}
