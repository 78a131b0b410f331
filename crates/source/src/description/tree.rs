//! A described tree in memory: files, and the names that stand for them.
//!
//! Names are kept in the order in which they are delivered, that of a directory: depth first, names
//! sorted by bytes. A name costs 24 bytes and its path, a file 48 and its digests.

use super::arena::{Arena, Piece};
use super::error::{DescriptionError, DescriptionProblem};
use super::file::File;
use super::packed_file::PackedFile;
use crate::entry::Kind;
use crate::{EntryPath, Exclude};
use rustc_hash::FxHashMap;

/// A file by its place in the list.
pub(super) type FileId = u32;

/// A name.
pub(super) struct Name {
    path: Piece,
    pub(super) line: u64,
    pub(super) file: FileId,
}

/// A tree that is being described.
#[derive(Default)]
pub(super) struct Draft {
    names: Vec<Name>,
    files: Vec<PackedFile>,
    /// Paths and digests.
    arena: Arena,
}

impl Draft {
    /// A draft with room for so many names, and files: a list that grows is there twice for a while.
    pub(super) fn with_capacity(names: usize) -> Self {
        let (names, files) = (Vec::with_capacity(names), Vec::with_capacity(names));
        Self { names, files, arena: Arena::default() }
    }

    /// Adds a file; a fault if there are more than numbers for them.
    pub(super) fn add(&mut self, file: File) -> Result<FileId, DescriptionProblem> {
        let id = FileId::try_from(self.files.len())
            .map_err(|_| DescriptionProblem::Entries(FileId::MAX))?;
        self.files.push(PackedFile::new(file, &mut self.arena));
        Ok(id)
    }

    /// The file with this number.
    pub(super) fn file(&self, id: FileId) -> File {
        self.files[id as usize].file(&self.arena)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds a name of a file.
    pub(super) fn name(&mut self, path: &EntryPath, line: u64, file: FileId) {
        let path = self.arena.push(path.as_bytes());
        self.names.push(Name { path, line, file });
    }

    /// Adds a name with a file of its own.
    pub(super) fn add_named(
        &mut self,
        path: &EntryPath,
        line: u64,
        file: File,
    ) -> Result<(), DescriptionProblem> {
        let file = self.add(file)?;
        self.name(path, line, file);
        Ok(())
    }

    /// The tree, if every name lies in a directory and is there once. `description` is its name.
    pub(super) fn finish(
        mut self,
        description: &str,
        exclude: &Exclude,
    ) -> Result<Tree, Box<DescriptionError>> {
        let arena = &self.arena;
        self.names.sort_unstable_by(|one, other| {
            let paths = in_order(arena.get(one.path), arena.get(other.path));
            paths.then(one.line.cmp(&other.line))
        });
        let fault = |name: &Name, problem: DescriptionProblem| problem.at(description, name.line);
        for pair in self.names.windows(2) {
            let path = self.path(&pair[1]);
            if self.path(&pair[0]) == path {
                let (path, first) = (path.to_vec(), pair[0].line);
                return Err(fault(&pair[1], DescriptionProblem::Duplicate { path, first }));
            }
        }
        let mut links = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            if let Kind::HardLink(target) = self.kind(name) {
                let file = self.linked(name, target).map_err(|problem| fault(name, problem))?;
                links.push((index, file));
            }
        }
        for (index, file) in links {
            self.names[index].file = file;
        }
        self.check_parents(description)?;
        Ok(Tree::new(self, exclude))
    }

    /// The file of the name that `name` is a hard link to.
    fn linked(&self, name: &Name, target: &EntryPath) -> Result<FileId, DescriptionProblem> {
        let refused = |reason| DescriptionProblem::Link {
            path: self.path(name).to_vec(),
            target: target.as_bytes().to_vec(),
            reason,
        };
        let found =
            self.names.binary_search_by(|other| in_order(self.path(other), target.as_bytes()));
        let Ok(found) = found else { return Err(refused("is not described")) };
        let found = &self.names[found];
        match self.kind(found) {
            Kind::HardLink(_) => Err(refused("is a hard link itself; name the file")),
            Kind::Directory => Err(refused("is a directory")),
            _ => Ok(found.file),
        }
    }

    fn kind(&self, name: &Name) -> &Kind {
        self.files[name.file as usize].kind()
    }

    fn path(&self, name: &Name) -> &[u8] {
        self.arena.get(name.path)
    }

    /// Every name but the root lies in a directory.
    fn check_parents(&self, description: &str) -> Result<(), Box<DescriptionError>> {
        // The names above the present one, from the root down.
        let mut above: Vec<&Name> = Vec::new();
        for name in &self.names {
            let fault = |problem: DescriptionProblem| Err(problem.at(description, name.line));
            let own = self.path(name);
            let Some(parent) = parent(own) else {
                if *self.kind(name) == Kind::Directory {
                    continue;
                }
                return fault(DescriptionProblem::RootNotDirectory);
            };
            while above.last().is_some_and(|above| !is_below(own, self.path(above))) {
                above.pop();
            }
            if let Some(above) = above.last()
                && *self.kind(above) != Kind::Directory
            {
                let kind = kind_name(self.kind(above));
                let (parent, first) = (self.path(above).to_vec(), above.line);
                let path = own.to_vec();
                return fault(DescriptionProblem::ParentNotDirectory { path, parent, kind, first });
            }
            let known = above.last().map_or(&b""[..], |above| self.path(above));
            if parent != known {
                let (path, parent) = (own.to_vec(), parent.to_vec());
                return fault(DescriptionProblem::NoParent { path, parent });
            }
            above.push(name);
        }
        Ok(())
    }
}

/// The order of names: depth first, sorted by bytes.
pub(super) fn in_order(one: &[u8], other: &[u8]) -> std::cmp::Ordering {
    // The root has an empty component, which goes before all.
    one.split(|&byte| byte == b'/').cmp(other.split(|&byte| byte == b'/'))
}

/// The path of the directory that a path is in; `None` for the root.
fn parent(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    (!path.is_empty()).then(|| &path[..slash.unwrap_or(0)])
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    let rest = path.strip_prefix(directory);
    rest.is_some_and(|rest| rest.first() == Some(&b'/'))
}

fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Directory => "a directory",
        Kind::Regular { .. } | Kind::HardLink(_) => "a file",
        Kind::Symlink(_) => "a symbolic link",
        Kind::CharDevice(_) | Kind::BlockDevice(_) => "a device",
        Kind::Fifo => "a pipe",
        Kind::Socket => "a socket",
    }
}

/// A finished tree.
pub(super) struct Tree {
    names: Vec<Name>,
    files: Vec<PackedFile>,
    arena: Arena,
    /// For each file with several names the first of them, and how many there are.
    several: FxHashMap<FileId, (usize, u32)>,
}

impl Tree {
    fn new(draft: Draft, exclude: &Exclude) -> Self {
        let Draft { mut names, files, arena } = draft;
        let mut pruned: Option<Piece> = None;
        names.retain(|name| {
            let path = arena.get(name.path);
            if pruned.is_some_and(|pruned| is_below(path, arena.get(pruned))) {
                return false;
            }
            let is_directory = *files[name.file as usize].kind() == Kind::Directory;
            if !path.is_empty() && exclude.prunes(path, is_directory, true) {
                pruned = Some(name.path);
                return false;
            }
            true
        });
        let several = several(&names, files.len());
        Self { names, files, arena, several }
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The name at `index`.
    pub(super) fn name(&self, index: usize) -> &Name {
        &self.names[index]
    }

    pub(super) fn path(&self, name: &Name) -> EntryPath {
        EntryPath::from_checked(self.arena.get(name.path).to_vec())
    }

    pub(super) fn file(&self, id: FileId) -> File {
        self.files[id as usize].file(&self.arena)
    }

    /// The first name of the file of the name at `index`, and the number of its names.
    pub(super) fn uses(&self, index: usize) -> (usize, u32) {
        self.several.get(&self.names[index].file).copied().unwrap_or((index, 1))
    }
}

/// Of `files` files those with several names: the first of them, and how many there are.
fn several(names: &[Name], files: usize) -> FxHashMap<FileId, (usize, u32)> {
    let mut counts = vec![0_u32; files];
    for name in names {
        counts[name.file as usize] += 1;
    }
    let mut several = FxHashMap::default();
    for (index, name) in names.iter().enumerate() {
        let count = counts[name.file as usize];
        if count > 1 {
            several.entry(name.file).or_insert((index, count));
        }
    }
    several
}
