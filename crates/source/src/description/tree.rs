//! A described tree in memory: files, and the names that stand for them.
//!
//! Names are kept in the order in which they are delivered, that of a directory: depth first, names
//! sorted by bytes. A name costs some 200 bytes with its file and a digest, and its attributes.

use super::described::{Expected, Told};
use super::error::{DescriptionError, DescriptionProblem};
use super::stored::Stored;
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
    /// A regular file has no size here; its contents have one. In a draft, a hard link stands for the
    /// file of another name.
    pub(super) kind: Kind,
    pub(super) told: Told,
    pub(super) xattrs: Box<[Xattr]>,
    pub(super) whence: Whence,
    pub(super) expected: Expected,
}

impl File {
    /// What stands in a draft for the file of another name.
    pub(super) fn link(target: EntryPath) -> Self {
        Self {
            kind: Kind::HardLink(target),
            told: Told::default(),
            xattrs: Box::default(),
            whence: Whence::Nowhere,
            expected: Expected::default(),
        }
    }
}

/// A name.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) path: EntryPath,
    pub(super) line: u64,
    pub(super) file: FileId,
}

/// A tree that is being described.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) names: Vec<Name>,
    files: Vec<Stored>,
}

impl Draft {
    /// A draft with room for so many names, and files: a list that grows is there twice for a while.
    pub(super) fn with_capacity(names: usize) -> Self {
        Self { names: Vec::with_capacity(names), files: Vec::with_capacity(names) }
    }

    /// Adds a file; a fault if there are more than numbers for them.
    pub(super) fn add(&mut self, file: File) -> Result<FileId, DescriptionProblem> {
        let id = FileId::try_from(self.files.len())
            .map_err(|_| DescriptionProblem::Entries(FileId::MAX))?;
        self.files.push(file.into());
        Ok(id)
    }

    /// The file with this number.
    pub(super) fn file(&self, id: FileId) -> File {
        self.files[id as usize].file()
    }

    /// Adds a name with a file of its own.
    pub(super) fn add_named(
        &mut self,
        path: EntryPath,
        line: u64,
        file: File,
    ) -> Result<(), DescriptionProblem> {
        let file = self.add(file)?;
        self.names.push(Name { path, line, file });
        Ok(())
    }

    /// The tree, if every name lies in a directory and is there once. `description` is its name.
    pub(super) fn finish(
        mut self,
        description: &str,
        exclude: &Exclude,
    ) -> Result<Tree, Box<DescriptionError>> {
        self.names.sort_unstable_by(|one, other| {
            in_order(&one.path, &other.path).then(one.line.cmp(&other.line))
        });
        let fault = |name: &Name, problem: DescriptionProblem| problem.at(description, name.line);
        for pair in self.names.windows(2) {
            if pair[0].path == pair[1].path {
                let (path, first) = (pair[1].path.as_bytes().to_vec(), pair[0].line);
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
            path: name.path.as_bytes().to_vec(),
            target: target.as_bytes().to_vec(),
            reason,
        };
        let found = self.names.binary_search_by(|other| in_order(&other.path, target));
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

    /// Every name but the root lies in a directory.
    fn check_parents(&self, description: &str) -> Result<(), Box<DescriptionError>> {
        // The names above the present one, from the root down.
        let mut above: Vec<&Name> = Vec::new();
        for name in &self.names {
            let fault = |problem: DescriptionProblem| Err(problem.at(description, name.line));
            let Some((parent, _)) = name.path.split_last() else {
                if *self.kind(name) == Kind::Directory {
                    continue;
                }
                return fault(DescriptionProblem::RootNotDirectory);
            };
            while above.last().is_some_and(|above| !is_below(&name.path, &above.path)) {
                above.pop();
            }
            let path = || name.path.as_bytes().to_vec();
            if let Some(above) = above.last()
                && *self.kind(above) != Kind::Directory
            {
                let kind = kind_name(self.kind(above));
                let (parent, first) = (above.path.as_bytes().to_vec(), above.line);
                let path = path();
                return fault(DescriptionProblem::ParentNotDirectory { path, parent, kind, first });
            }
            let known = above.last().map_or(&b""[..], |above| above.path.as_bytes());
            if parent != known {
                let (path, parent) = (path(), parent.to_vec());
                return fault(DescriptionProblem::NoParent { path, parent });
            }
            above.push(name);
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

/// A finished tree.
pub(super) struct Tree {
    pub(super) names: Vec<Name>,
    files: Vec<Stored>,
    /// For each file its first name, and how many it has.
    uses: Vec<(usize, u32)>,
}

impl Tree {
    fn new(draft: Draft, exclude: &Exclude) -> Self {
        let Draft { mut names, files } = draft;
        let mut uses = vec![(0, 0); files.len()];
        let mut kept = 0;
        let mut pruned: Option<EntryPath> = None;
        names.retain(|Name { path, file, .. }| {
            if pruned.as_ref().is_some_and(|pruned| is_below(path, pruned)) {
                return false;
            }
            let is_directory = *files[*file as usize].kind() == Kind::Directory;
            if !path.is_root() && exclude.prunes(path.as_bytes(), is_directory, true) {
                pruned = Some(path.clone());
                return false;
            }
            let (first, count) = &mut uses[*file as usize];
            if *count == 0 {
                *first = kept;
            }
            *count += 1;
            kept += 1;
            true
        });
        Self { names, files, uses }
    }

    pub(super) fn file(&self, id: FileId) -> File {
        self.files[id as usize].file()
    }

    /// The first name of a file, as an index, and the number of its names.
    pub(super) fn uses(&self, id: FileId) -> (usize, u32) {
        self.uses[id as usize]
    }
}
