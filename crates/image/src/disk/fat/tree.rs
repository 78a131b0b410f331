//! The directory that a FAT file system is made from, as it was looked at.

use super::directory::entries_bytes;
use super::names::refused;
use crate::disk::DiskError;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Most bytes of a directory.
const DIRECTORY_MAX: u64 = 2 << 20;

/// A directory tree; the root is the first directory, and parents come before their children.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) directories: Vec<Directory>,
    pub(super) files: Vec<FileNode>,
}

#[derive(Debug)]
pub(super) struct Directory {
    /// The directory above; the root's own.
    pub(super) parent: usize,
    /// Its children by name.
    pub(super) children: Vec<(String, Child)>,
    /// Bytes of its entries.
    pub(super) bytes: u64,
}

/// A child, by its place in a list of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Child {
    Directory(usize),
    File(usize),
}

#[derive(Debug)]
pub(super) struct FileNode {
    pub(super) path: PathBuf,
    pub(super) length: u64,
}

impl Tree {
    /// Looks at everything below `root`.
    pub(super) fn read(root: &Path) -> Result<Self, DiskError> {
        let mut tree = Self { directories: Vec::new(), files: Vec::new() };
        tree.directories.push(Directory { parent: 0, children: Vec::new(), bytes: 0 });
        let mut paths = vec![root.to_owned()];
        let mut index = 0;
        while index < paths.len() {
            let path = paths[index].clone();
            tree.read_directory(index, &path, &mut paths)?;
            index += 1;
        }
        Ok(tree)
    }

    fn read_directory(
        &mut self,
        index: usize,
        path: &Path,
        paths: &mut Vec<PathBuf>,
    ) -> Result<(), DiskError> {
        let failed = |source| DiskError::Source { action: "list", path: path.to_owned(), source };
        let entries = fs::read_dir(path).map_err(failed)?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let wrong = |what| DiskError::Fat { path: path.join(&name), what };
            let text = name.to_str();
            let text = text.ok_or_else(|| wrong("FAT has names of Unicode only".to_owned()))?;
            if let Some(what) = refused(text) {
                return Err(wrong(what));
            }
            names.push(text.to_owned());
        }
        names.sort_unstable();
        check_case(path, &names)?;
        let bytes = entries_bytes(&names, index == 0);
        if bytes > DIRECTORY_MAX {
            let what = format!("{} entries are more than a directory of FAT has", names.len());
            return Err(DiskError::Fat { path: path.to_owned(), what });
        }
        let children = names.into_iter().map(|name| {
            let child = self.child(index, path.join(&name), paths)?;
            Ok((name, child))
        });
        let children = children.collect::<Result<_, DiskError>>()?;
        let directory = &mut self.directories[index];
        (directory.children, directory.bytes) = (children, bytes);
        Ok(())
    }

    fn child(
        &mut self,
        parent: usize,
        path: PathBuf,
        paths: &mut Vec<PathBuf>,
    ) -> Result<Child, DiskError> {
        let failed = |source| DiskError::Source { action: "look at", path: path.clone(), source };
        let metadata = path.symlink_metadata().map_err(failed)?;
        if metadata.is_dir() {
            self.directories.push(Directory { parent, children: Vec::new(), bytes: 0 });
            paths.push(path);
            return Ok(Child::Directory(self.directories.len() - 1));
        }
        let length = metadata.len();
        let what = if !metadata.is_file() {
            "FAT holds files and directories only; put a file in the place of this".to_owned()
        } else if u32::try_from(length).is_err() {
            format!("{length} bytes are more than a file of FAT has")
        } else {
            self.files.push(FileNode { path, length });
            return Ok(Child::File(self.files.len() - 1));
        };
        Err(DiskError::Fat { path, what })
    }

    /// Bytes of all files and directories.
    pub(super) fn bytes(&self) -> u64 {
        self.lengths().fold(0, u64::saturating_add)
    }

    /// Clusters of so many bytes that all of it takes.
    pub(super) fn clusters(&self, cluster: u64) -> u64 {
        self.lengths().map(|length| length.div_ceil(cluster)).fold(0, u64::saturating_add)
    }

    fn lengths(&self) -> impl Iterator<Item = u64> {
        let directories = self.directories.iter().map(|directory| directory.bytes);
        directories.chain(self.files.iter().map(|file| file.length))
    }
}

/// Refuses names that differ in case alone: FAT finds the first of them.
fn check_case(path: &Path, names: &[String]) -> Result<(), DiskError> {
    let mut seen = HashMap::new();
    for name in names {
        if let Some(other) = seen.insert(name.to_lowercase(), name) {
            let what = format!("FAT does not tell this name from {other:?}");
            return Err(DiskError::Fat { path: path.join(name), what });
        }
    }
    Ok(())
}
