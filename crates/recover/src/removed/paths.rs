//! Paths of removed files: names of directories that are there, or were removed themselves.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::{InodeNumber, Lsn};

use super::ByNumber;
use super::evidence::Evidence;
use crate::directory::OldEntry;
use crate::disk::Disk;
use crate::file_id::FileId;
use crate::found::{FoundFile, Path};
use crate::live::{DEEPEST, LivePaths};
use crate::names::Name;
use crate::present::decode;

/// Gives each file its paths.
pub(super) fn name(disk: &Disk, evidence: &Evidence, files: &mut [FoundFile]) {
    by_entries(disk, evidence, files);
    let mut places = Places {
        evidence,
        live: LivePaths::new(disk),
        names: files.iter().map(|file| (file.id, file.names.first().cloned())).collect(),
        known: FxHashMap::default(),
    };
    for file in files {
        let mut paths: Vec<_> = file.names.iter().map(|name| places.path(name)).collect();
        paths.sort();
        paths.dedup();
        file.paths = paths;
    }
}

/// Names files that have none by entries of directories. These say a number, not which of the files
/// that had it: the one that had it at that time is meant, if it is of that kind. Of more names than
/// the file had the latest count.
fn by_entries(disk: &Disk, evidence: &Evidence, files: &mut [FoundFile]) {
    let meaning = Meaning { disk, evidence, by_number: ByNumber::new(files) };
    let mut names: FxHashMap<usize, BTreeMap<Name, Lsn>> = FxHashMap::default();
    for old in &evidence.entries {
        let Some(index) = meaning.file(files, old) else { continue };
        let kind = files[index].kind;
        if !files[index].names.is_empty() || kind.is_some_and(|kind| old.entry.is_not(kind)) {
            continue;
        }
        let (parent, name) = (old.parent, old.entry.name.clone());
        let name = Name { parent, generation: meaning.directory(files, old), name };
        let lsn = names.entry(index).or_default().entry(name).or_default();
        lsn.0 = lsn.0.max(old.lsn.0);
    }
    for (index, found) in names {
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(_, lsn)| std::cmp::Reverse(lsn.0));
        let links = files[index].links.max(1) as usize;
        files[index].names = found.into_iter().take(links).map(|(name, _)| name).collect();
    }
}

/// What numbers in entries mean.
struct Meaning<'d> {
    disk: &'d Disk,
    evidence: &'d Evidence,
    by_number: ByNumber,
}

impl Meaning<'_> {
    /// The removed file that an entry is the name of.
    fn file(&self, files: &[FoundFile], old: &OldEntry) -> Option<usize> {
        let half = old.entry.inode.0;
        let groups = if old.entry.is_half { self.disk.geometry.ag_count } else { 1 };
        let numbers = (0..u64::from(groups)).map(|high| InodeNumber(high << 32 | half));
        let mut known = numbers.filter(|number| self.by_number.has(*number));
        let (number, None) = (known.next()?, known.next()) else { return None };
        let time = self.evidence.time_at(old.lsn);
        // How much older than its block a removed entry is, nothing says.
        if let Some(time) = time.filter(|_| !old.entry.is_removed) {
            let index = self.by_number.at(number, old.lsn)?;
            return (files[index].crtime <= time).then_some(index);
        }
        let only = self.by_number.only(number)?;
        self.evidence.present.generation(number).is_none().then_some(only)
    }

    /// The generation of the directory that had an entry.
    fn directory(&self, files: &[FoundFile], old: &OldEntry) -> Option<u32> {
        if old.generation.is_some() {
            return old.generation;
        }
        let time = self.evidence.time_at(old.lsn);
        let removed = self.by_number.at(old.parent, old.lsn).map(|index| &files[index]);
        let is_there = |crtime| time.is_none_or(|time| crtime <= time);
        if let Some(file) = removed.filter(|file| is_there(file.crtime)) {
            return Some(file.id.generation);
        }
        let bytes = self.disk.inode(old.parent).ok()??;
        let core = decode(self.disk, old.parent, &bytes)?;
        is_there(core.crtime).then(|| self.evidence.present.generation(old.parent))?
    }
}

/// Places of directories, each found once.
struct Places<'d> {
    evidence: &'d Evidence,
    live: LivePaths<'d>,
    /// The first name of each removed file.
    names: FxHashMap<FileId, Option<Name>>,
    known: FxHashMap<FileId, Path>,
}

/// A directory on the way up.
enum Place {
    /// Its path is known.
    Known(Path),
    /// It was removed; its own name.
    Removed(FileId, Name),
}

impl Places<'_> {
    fn path(&mut self, name: &Name) -> Path {
        let mut way: Vec<(Option<FileId>, Vec<u8>)> = vec![(None, name.name.clone())];
        let mut at = (name.parent, name.generation);
        let mut path = loop {
            match self.place(at.0, at.1) {
                Place::Known(path) => break path,
                Place::Removed(id, name) => {
                    // A directory in itself, or names without end: they hang nowhere.
                    let is_circle = way.iter().any(|(met, _)| *met == Some(id));
                    if is_circle || way.len() >= DEEPEST {
                        break unknown(id.number);
                    }
                    at = (name.parent, name.generation);
                    way.push((Some(id), name.name));
                }
            }
        };
        while let Some((id, name)) = way.pop() {
            path.names.push(name);
            if let Some(id) = id {
                self.known.insert(id, path.clone());
            }
        }
        path
    }

    fn place(&mut self, number: InodeNumber, generation: Option<u32>) -> Place {
        let present = self.evidence.present.generation(number);
        if present.is_some()
            && generation == present
            && let Some(names) = self.live.of(number)
        {
            return Place::Known(Path { names, is_complete: true });
        }
        let Some(generation) = generation else { return Place::Known(unknown(number)) };
        let id = FileId { number, generation };
        if let Some(path) = self.known.get(&id) {
            return Place::Known(path.clone());
        }
        match self.names.get(&id).cloned().flatten() {
            Some(name) => Place::Removed(id, name),
            None => Place::Known(unknown(number)),
        }
    }
}

/// The place of files whose directory has no name.
fn unknown(number: InodeNumber) -> Path {
    Path { names: vec![number.to_string().into_bytes()], is_complete: false }
}
