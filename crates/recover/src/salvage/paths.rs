//! Paths: names of directories up to the root, which may be lost itself.

use rustc_hash::FxHashMap;
use undercroft_xfs_format::FileType;
use undercroft_xfs_format::units::InodeNumber;

use super::blocks::Blocks;
use super::inodes::Inodes;
use crate::disk::Disk;
use crate::found::Path;
use crate::names::Name;

/// Directories on one path at most. Deeper ones begin anew, below their number.
const DEEPEST: usize = 256;

/// The root directory: the superblock says it; else the directory that is its own parent, or else the
/// first of all that are parents, as the root is the first inode of a volume.
pub(super) fn root(disk: &Disk, inodes: &Inodes, blocks: &Blocks) -> InodeNumber {
    if disk.geometry.root_inode.0 != 0 {
        return disk.geometry.root_inode;
    }
    let short = inodes.files.iter().zip(&inodes.about);
    let short = short.filter_map(|(file, about)| Some((file.id.number, about.parent?)));
    let long = blocks.parents.iter().map(|(own, parent)| (InodeNumber(*own), *parent));
    let pairs: Vec<_> = short.chain(long).collect();
    let own = pairs.iter().filter(|(own, parent)| own == parent).map(|(own, _)| *own).min();
    let names = inodes.files.iter().flat_map(|file| &file.names);
    let all = pairs.iter().map(|(_, parent)| *parent).chain(names.map(|name| name.parent));
    own.or(all.filter(|parent| disk.geometry.valid_inode(*parent)).min()).unwrap_or(InodeNumber(0))
}

/// Gives the files their paths.
pub(super) fn give(inodes: &mut Inodes, root: InodeNumber) {
    let directories = inodes.files.iter().filter(|file| file.kind == Some(FileType::Directory));
    let named = directories.filter_map(|file| Some((file.id.number, file.names.first()?.clone())));
    let mut places = Places { names: named.collect(), known: FxHashMap::default() };
    places.known.insert(root, Path { names: Vec::new(), is_complete: true });
    for file in &mut inodes.files {
        file.paths = file.names.iter().map(|name| places.path(name)).collect();
        file.paths.sort_unstable();
        let is_nameless = file.paths.is_empty();
        if is_nameless && file.kind == Some(FileType::Directory) {
            file.paths.push(unknown(file.id.number));
        }
    }
}

/// Paths of directories, each found once.
struct Places {
    names: FxHashMap<InodeNumber, Name>,
    known: FxHashMap<InodeNumber, Path>,
}

impl Places {
    fn path(&mut self, name: &Name) -> Path {
        let mut path = self.directory(name.parent);
        path.names.push(name.name.clone());
        path
    }

    fn directory(&mut self, number: InodeNumber) -> Path {
        let mut way: Vec<(InodeNumber, Vec<u8>)> = Vec::new();
        let mut at = number;
        let mut path = loop {
            if let Some(path) = self.known.get(&at) {
                break path.clone();
            }
            let Some(name) = self.names.get(&at) else { break unknown(at) };
            if way.len() >= DEEPEST || way.iter().any(|(met, _)| *met == at) {
                break unknown(at);
            }
            way.push((at, name.name.clone()));
            at = name.parent;
        };
        // The way up ended in a circle, or is too long: what is there has a place by its number.
        self.known.entry(at).or_insert_with(|| path.clone());
        while let Some((directory, name)) = way.pop() {
            if directory == at {
                continue;
            }
            if path.names.len() >= DEEPEST {
                path = unknown(directory);
            } else {
                path.names.push(name);
            }
            self.known.insert(directory, path.clone());
        }
        path
    }
}

/// The place of files whose directory has no name.
fn unknown(number: InodeNumber) -> Path {
    Path { names: vec![number.to_string().into_bytes()], is_complete: false }
}
