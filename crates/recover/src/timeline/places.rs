//! Paths of files by their numbers: of those that are there by a walk down from the root, of others by the
//! search for removed files.

use rustc_hash::{FxHashMap, FxHashSet};
use undercroft_xfs_format::FileType;
use undercroft_xfs_format::units::InodeNumber;

use crate::disk::Disk;
use crate::file_id::FileId;
use crate::found::{FoundFile, Path};
use crate::live::{self, DEEPEST};
use crate::names::Name;

/// Where files are.
pub(super) struct Places {
    /// A name and a directory of each number that is in use.
    present: FxHashMap<InodeNumber, (InodeNumber, Vec<u8>)>,
    root: InodeNumber,
    removed: FxHashMap<FileId, Path>,
    /// Numbers whose path is another by now, or none.
    gone: FxHashSet<FileId>,
}

impl Places {
    pub(super) fn new(disk: &Disk, removed: &[FoundFile]) -> Self {
        let root = disk.geometry.root_inode;
        let mut present = FxHashMap::default();
        let mut met = FxHashSet::from_iter([root]);
        let mut left = vec![root];
        while let Some(directory) = left.pop() {
            live::entries(disk, directory, |found| {
                for entry in found.entries.iter().filter(|entry| !entry.is_removed) {
                    // A file with several names has the first that is met.
                    if met.insert(entry.inode) {
                        present.insert(entry.inode, (directory, entry.name.clone()));
                        left.extend((!entry.is_not(FileType::Directory)).then_some(entry.inode));
                    }
                }
                true
            });
        }
        let paths = removed.iter().filter_map(|file| Some((file.id, file.paths.first()?.clone())));
        let gone = removed.iter().map(|file| file.id).collect();
        Self { present, root, removed: paths.collect(), gone }
    }

    /// The path of a number that is in use.
    pub(super) fn present(&self, number: InodeNumber) -> Option<Path> {
        let mut names = Vec::new();
        let mut at = number;
        while at != self.root {
            let (parent, name) = self.present.get(&at)?;
            // No circle: each was met from the root. But no system call takes a longer path.
            if names.len() == DEEPEST {
                return None;
            }
            names.push(name.clone());
            at = *parent;
        }
        names.reverse();
        Some(Path { names, is_complete: true })
    }

    /// The last path of a file.
    pub(super) fn of(&self, id: FileId) -> Option<Path> {
        let removed = self.removed.get(&id).cloned();
        removed.or_else(|| self.present(id.number).filter(|_| !self.gone.contains(&id)))
    }

    /// The path of a name in a directory, wherever that is now.
    pub(super) fn path(&self, name: &Name) -> Path {
        let generation = name.generation;
        let removed = generation.map(|generation| FileId { number: name.parent, generation });
        let parent = match removed {
            Some(id) => self.of(id),
            None => self.present(name.parent),
        };
        let mut path = parent.unwrap_or_else(|| Path {
            names: vec![name.parent.to_string().into_bytes()],
            is_complete: false,
        });
        path.names.push(name.name.clone());
        path
    }
}
