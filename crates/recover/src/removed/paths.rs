//! Paths of removed files: names of directories that are there, or were removed themselves.

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::InodeNumber;

use super::evidence::Evidence;
use super::file::{Path, RemovedFile};
use crate::disk::Disk;
use crate::file_id::FileId;
use crate::live::{DEEPEST, LivePaths};
use crate::names::Name;

/// Gives each file its paths.
pub(super) fn name(disk: &Disk, evidence: &Evidence, files: &mut [RemovedFile]) {
    by_entries(disk, evidence, files);
    let newest = super::newest(files);
    let mut places = Places {
        evidence,
        live: LivePaths::new(disk),
        names: files.iter().map(|file| (file.id, file.names.first().cloned())).collect(),
        newest: newest.into_iter().map(|(number, index)| (number, files[index].id)).collect(),
        known: FxHashMap::default(),
    };
    for file in files {
        let mut paths: Vec<_> = file.names.iter().map(|name| places.path(name)).collect();
        paths.sort();
        paths.dedup();
        file.paths = paths;
    }
}

/// Names files that have none by the entries of removed directories, which say a number alone: the
/// last file that had it.
fn by_entries(disk: &Disk, evidence: &Evidence, files: &mut [RemovedFile]) {
    let newest = super::newest(files);
    let mut names: FxHashMap<usize, Vec<Name>> = FxHashMap::default();
    for old in &evidence.remains.entries {
        let half = old.entry.inode.0;
        let groups = if old.entry.is_half { disk.geometry.ag_count } else { 1 };
        let numbers = (0..u64::from(groups)).map(|high| InodeNumber(high << 32 | half));
        let mut known = numbers.filter_map(|number| newest.get(&number)).copied();
        let (Some(index), None) = (known.next(), known.next()) else { continue };
        let name = Name { parent: old.parent, generation: None, name: old.entry.name.clone() };
        names.entry(index).or_default().push(name);
    }
    for (index, mut found) in names {
        if files[index].names.is_empty() {
            found.sort();
            found.dedup();
            files[index].names = found;
        }
    }
}

/// Places of directories, each found once.
struct Places<'d> {
    evidence: &'d Evidence,
    live: LivePaths<'d>,
    /// The first name of each removed file.
    names: FxHashMap<FileId, Option<Name>>,
    newest: FxHashMap<InodeNumber, FileId>,
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
            && (generation.is_none() || generation == present)
            && let Some(names) = self.live.of(number)
        {
            return Place::Known(Path { names, is_complete: true });
        }
        let id = match generation {
            Some(generation) => FileId { number, generation },
            None => match self.newest.get(&number) {
                Some(id) => *id,
                None => return Place::Known(unknown(number)),
            },
        };
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
