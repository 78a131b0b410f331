//! A described tree in memory: files, and the names that stand for them.
//!
//! Names are kept in the order in which they are delivered, that of a directory: depth first, names
//! sorted by bytes. A name costs some 250 bytes with its file, and its attributes.

use super::described::{Expected, Told};
use super::error::{DescriptionError, DescriptionProblem};
use crate::entry::{Kind, Xattr};
use crate::{EntryPath, Exclude};
use std::path::PathBuf;
use std::sync::Arc;

/// A file by its place in the list.
pub(super) type FileId = u32;

/// Where the contents of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whence {
    /// Nowhere: it is empty, or no regular file.
    Nowhere,
    /// In the description.
    Inline(Arc<[u8]>),
    /// Below the directory of contents, where the name is in the tree.
    AtPath,
    /// Below the directory of contents.
    Below(EntryPath),
    /// At a path of this machine.
    Host(PathBuf),
}

/// A file or directory without its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// A regular file has no size here; its contents have one.
    pub(super) kind: Kind,
    pub(super) told: Told,
    pub(super) xattrs: Box<[Xattr]>,
    pub(super) whence: Whence,
    pub(super) expected: Expected,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stands {
    File(FileId),
    /// The file of another name.
    Link(EntryPath),
}

/// A name.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) path: EntryPath,
    pub(super) line: u64,
    pub(super) stands: Stands,
}

/// A tree that is being described.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) names: Vec<Name>,
    pub(super) files: Vec<File>,
}

impl Draft {
    /// Adds a file; a fault if there are more than numbers for them.
    pub(super) fn add(&mut self, file: File) -> Result<FileId, DescriptionProblem> {
        let id = FileId::try_from(self.files.len())
            .map_err(|_| DescriptionProblem::Entries(FileId::MAX))?;
        self.files.push(file);
        Ok(id)
    }

    /// Adds a name with a file of its own.
    pub(super) fn add_named(
        &mut self,
        path: EntryPath,
        line: u64,
        file: File,
    ) -> Result<(), DescriptionProblem> {
        let stands = Stands::File(self.add(file)?);
        self.names.push(Name { path, line, stands });
        Ok(())
    }

    /// The tree, if every name lies in a directory and is there once. `description` is its name.
    pub(super) fn finish(
        mut self,
        description: &str,
        exclude: &Exclude,
    ) -> Result<Tree, Box<DescriptionError>> {
        self.names.sort_by(|one, other| in_order(&one.path, &other.path));
        let fault = |name: &Name, problem: DescriptionProblem| problem.at(description, name.line);
        for pair in self.names.windows(2) {
            if pair[0].path == pair[1].path {
                let (path, first) = (pair[1].path.as_bytes().to_vec(), pair[0].line);
                return Err(fault(&pair[1], DescriptionProblem::Duplicate { path, first }));
            }
        }
        let mut ids = Vec::with_capacity(self.names.len());
        for name in &self.names {
            ids.push(self.file_of(name).map_err(|problem| fault(name, problem))?);
        }
        self.check_parents(&ids, description)?;
        Ok(Tree::new(self, ids, exclude))
    }

    /// The file that a name stands for.
    fn file_of(&self, name: &Name) -> Result<FileId, DescriptionProblem> {
        let target = match &name.stands {
            Stands::File(id) => return Ok(*id),
            Stands::Link(target) => target,
        };
        let refused = |reason| DescriptionProblem::Link {
            path: name.path.as_bytes().to_vec(),
            target: target.as_bytes().to_vec(),
            reason,
        };
        let found = self.names.binary_search_by(|other| in_order(&other.path, target));
        match found.map(|index| &self.names[index].stands) {
            Err(_) => Err(refused("is not described")),
            Ok(Stands::Link(_)) => Err(refused("is a hard link itself; name the file")),
            Ok(Stands::File(id)) if self.files[*id as usize].kind == Kind::Directory => {
                Err(refused("is a directory"))
            }
            Ok(Stands::File(id)) => Ok(*id),
        }
    }

    /// Every name but the root lies in a directory.
    fn check_parents(
        &self,
        ids: &[FileId],
        description: &str,
    ) -> Result<(), Box<DescriptionError>> {
        // The names above the present one, from the root down.
        let mut above: Vec<usize> = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            let fault = |problem: DescriptionProblem| Err(problem.at(description, name.line));
            let is_directory = |at: usize| self.files[ids[at] as usize].kind == Kind::Directory;
            let Some((parent, _)) = name.path.split_last() else {
                if is_directory(index) {
                    continue;
                }
                return fault(DescriptionProblem::RootNotDirectory);
            };
            while above.last().is_some_and(|&at| !is_below(&name.path, &self.names[at].path)) {
                above.pop();
            }
            let path = || name.path.as_bytes().to_vec();
            if let Some(&at) = above.last()
                && !is_directory(at)
            {
                let kind = kind_name(&self.files[ids[at] as usize].kind);
                let Name { path: parent, line: first, .. } = &self.names[at];
                let (parent, first) = (parent.as_bytes().to_vec(), *first);
                let path = path();
                return fault(DescriptionProblem::ParentNotDirectory { path, parent, kind, first });
            }
            let known = above.last().map_or(&b""[..], |&at| self.names[at].path.as_bytes());
            if parent != known {
                let (path, parent) = (path(), parent.to_vec());
                return fault(DescriptionProblem::NoParent { path, parent });
            }
            above.push(index);
        }
        Ok(())
    }
}

/// The order of names: depth first, sorted by bytes.
pub(super) fn in_order(one: &EntryPath, other: &EntryPath) -> std::cmp::Ordering {
    one.components().cmp(other.components())
}

fn is_below(path: &EntryPath, directory: &EntryPath) -> bool {
    let rest = path.as_bytes().strip_prefix(directory.as_bytes());
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

/// A name of a finished tree.
pub(super) struct Leaf {
    pub(super) path: EntryPath,
    pub(super) line: u64,
    pub(super) file: FileId,
}

/// A finished tree.
pub(super) struct Tree {
    pub(super) leaves: Vec<Leaf>,
    files: Vec<File>,
    /// For each file its first name, and how many it has.
    names: Vec<(usize, u32)>,
}

impl Tree {
    fn new(draft: Draft, ids: Vec<FileId>, exclude: &Exclude) -> Self {
        let Draft { names, files } = draft;
        let mut leaves: Vec<Leaf> = Vec::with_capacity(names.len());
        let mut counts = vec![(0, 0); files.len()];
        let mut pruned: Option<EntryPath> = None;
        for (Name { path, line, .. }, file) in names.into_iter().zip(ids) {
            if pruned.as_ref().is_some_and(|pruned| is_below(&path, pruned)) {
                continue;
            }
            let is_directory = files[file as usize].kind == Kind::Directory;
            if !path.is_root() && exclude.prunes(path.as_bytes(), is_directory, true) {
                pruned = Some(path);
                continue;
            }
            let (first, count) = &mut counts[file as usize];
            if *count == 0 {
                *first = leaves.len();
            }
            *count += 1;
            leaves.push(Leaf { path, line, file });
        }
        Self { leaves, files, names: counts }
    }

    pub(super) fn file(&self, id: FileId) -> &File {
        &self.files[id as usize]
    }

    /// The first name of a file, as an index, and the number of its names.
    pub(super) fn names(&self, id: FileId) -> (usize, u32) {
        self.names[id as usize]
    }
}
