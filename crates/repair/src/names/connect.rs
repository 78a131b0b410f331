//! Inodes that nothing leads to get names: those that they say themselves, or that are known of them, else a
//! number in `lost+found`.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use undercroft_xfs::Volume;
use undercroft_xfs::check::link_sum;
use undercroft_xfs::format::{FileType, name_defect};
use undercroft_xfs::ops::mend::LinkedName;
use undercroft_xfs::ops::{self, Position, mend};
use undercroft_xfs::units::InodeNumber;

use super::census::Census;
use super::lost_found::{DEEPEST, LostFound};
use crate::action::{Action, Place};
use crate::error::RepairError;
use crate::subject::Subject;

/// The names given to inodes that have none.
pub(super) struct Connector<'c> {
    pub(super) subject: &'c Subject,
    pub(super) volume: &'c Arc<Volume>,
    pub(super) census: &'c mut Census,
    pub(super) lost_found: LostFound,
    pub(super) actions: &'c mut Vec<Action>,
}

impl Connector<'_> {
    /// Gives names to inodes that nothing leads to, directories first.
    pub(super) fn connect(&mut self) -> Result<(), RepairError> {
        self.break_circles()?;
        let depth = |number| self.census.paths(number).iter().map(Vec::len).min().unwrap_or(0);
        let nodes = self.census.nodes(self.subject);
        let mut alone: Vec<(bool, usize, InodeNumber)> = nodes
            .filter(|node| !node.has_entries() && !self.census.is_root(node.number))
            .map(|node| (node.kind != FileType::Directory, depth(node.number), node.number))
            .collect();
        alone.sort_unstable();
        for (is_file, _, number) in alone {
            let told = self.own_names(number)?;
            let told = if told.is_empty() { self.names_by_paths(number) } else { told };
            let mut named = 0;
            for name in &told {
                named += u32::from(self.enter(number, name)?);
                if !is_file && named > 0 {
                    break;
                }
            }
            if named == 0 {
                self.lose(number, is_file)?;
            }
        }
        Ok(())
    }

    /// Puts an inode into `lost+found`.
    fn lose(&mut self, number: InodeNumber, is_file: bool) -> Result<(), RepairError> {
        let path = self.last_directory(number, is_file)?;
        let directory = self.lost_found.place(self.volume, self.census.root, &path)?;
        let generation = match self.lost_found.made.get(&directory) {
            Some(made) => made.generation,
            None => self.census.generation(directory),
        };
        let name = number.0.to_string().into_bytes();
        let is_in = self.enter(number, &LinkedName { directory, generation, name })?;
        if is_in && let Some(action) = self.actions.last_mut() {
            action.loss = Some("its name".into());
        }
        Ok(())
    }

    /// The path of the last directory that is known of an inode, as far as it is known.
    fn last_directory(
        &self,
        number: InodeNumber,
        is_file: bool,
    ) -> Result<Vec<Vec<u8>>, RepairError> {
        let mut told: Vec<InodeNumber> = Vec::new();
        if !is_file && let Some(directory) = self.census.directories.get(&number.0) {
            told.push(InodeNumber(directory.dot_dot));
        }
        if self.census.has_pointers {
            let inode = self.volume.inode(number)?;
            let pointers = mend::parent_pointers(self.volume, &inode.read())?;
            told.extend(pointers.into_iter().map(|pointer| pointer.directory));
        }
        for directory in told {
            let is_there = self.census.directories.contains_key(&directory.0);
            if is_there && !self.census.is_below(directory, number) {
                return self.path(directory);
            }
        }
        let above = self
            .census
            .paths(number)
            .first()
            .and_then(|path| path.split_last())
            .map_or(&[][..], |it| it.1);
        let is_usable = |name: &&Vec<u8>| name_defect(name).is_none();
        Ok(above.iter().filter(is_usable).cloned().collect())
    }

    /// The path of a directory from the root, or from where it ends.
    fn path(&self, directory: InodeNumber) -> Result<Vec<Vec<u8>>, RepairError> {
        let (mut at, mut path) = (directory, Vec::new());
        while at != self.census.root && path.len() < DEEPEST {
            let parent = InodeNumber(self.census.parent(at.0));
            if parent.0 == 0 {
                break;
            }
            let Some(name) = self.names_in(parent, at)?.into_iter().next() else { break };
            path.push(name);
            at = parent;
        }
        path.reverse();
        Ok(path)
    }

    /// The names of an inode in a directory.
    fn names_in(
        &self,
        directory: InodeNumber,
        number: InodeNumber,
    ) -> Result<Vec<Vec<u8>>, RepairError> {
        let mut names = Vec::new();
        let inode = self.volume.inode(directory)?;
        ops::entries(self.volume, &inode.read(), Position::START, |entry| {
            if entry.inode == number && entry.name != b"." && entry.name != b".." {
                names.push(entry.name.to_vec());
            }
            true
        })?;
        Ok(names)
    }

    /// Names that an inode says itself, in directories that are there and are the same as then.
    fn own_names(&self, number: InodeNumber) -> Result<Vec<LinkedName>, RepairError> {
        if !self.census.has_pointers {
            return Ok(Vec::new());
        }
        let inode = self.volume.inode(number)?;
        let mut names = mend::parent_pointers(self.volume, &inode.read())?;
        names.retain(|name| {
            self.census.same_directory(name.directory, name.generation)
                && !self.census.is_below(name.directory, number)
        });
        Ok(names)
    }

    /// Names by the paths that an inode had, as far as the directories are there.
    fn names_by_paths(&self, number: InodeNumber) -> Vec<LinkedName> {
        let name = |path: &Vec<Vec<u8>>| {
            let (name, above) = path.split_last()?;
            let mut directory = self.census.root;
            for step in above {
                let inode = self.volume.inode(directory).ok()?;
                directory = ops::lookup(self.volume, &inode.read(), step).ok()??;
            }
            let is_usable = self.census.directories.contains_key(&directory.0)
                && !self.census.is_below(directory, number);
            let generation = self.census.generation(directory);
            is_usable.then(|| LinkedName { directory, generation, name: name.clone() })
        };
        self.census.paths(number).iter().filter_map(name).collect()
    }

    /// Adds an entry; whether there was none of the name.
    fn enter(&mut self, number: InodeNumber, name: &LinkedName) -> Result<bool, RepairError> {
        let Some(kind) = self.census.kind(self.subject, number) else { return Ok(false) };
        let LinkedName { directory, generation, name } = name;
        match mend::add_entry(self.volume, *directory, name, number, kind.into()) {
            Ok(()) => {}
            Err(undercroft_xfs::Error::Exists(_) | undercroft_xfs::Error::Invalid(_)) => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        let sum = || link_sum(*directory, *generation, name);
        self.census.enter(self.subject, *directory, (number, kind.into()), sum);
        if kind == FileType::Directory {
            if let Some(own) = self.census.directories.get_mut(&number.0) {
                own.parent = directory.0;
            }
            if let Some(made) = self.lost_found.made.get_mut(directory) {
                made.links += 1;
                mend::set_links(self.volume, *directory, made.links)?;
            } else if let Some(above) = self.census.directories.get_mut(&directory.0) {
                above.children += 1;
            }
        }
        let shown = String::from_utf8_lossy(name);
        let what = format!("nothing leads to it: it is {shown:?} in directory {directory}");
        self.actions.push(Action { place: Place::Inode(number), what, loss: None });
        Ok(true)
    }

    /// Directories that only lead to each other: one of each circle loses its name, and gets another.
    fn break_circles(&mut self) -> Result<(), RepairError> {
        let mut reached: FxHashSet<u64> = FxHashSet::default();
        reached.insert(self.census.root.0);
        let mut circles = Vec::new();
        for number in self.census.directories.keys() {
            let (mut at, mut path) = (*number, FxHashSet::default());
            while at != 0 && !reached.contains(&at) && path.insert(at) {
                at = self.census.parent(at);
            }
            if at != 0 && !reached.contains(&at) {
                circles.push(InodeNumber(at));
            }
            reached.extend(path);
        }
        circles.into_iter().try_for_each(|number| self.cut(number))
    }

    /// Takes a directory out of its parent.
    fn cut(&mut self, number: InodeNumber) -> Result<(), RepairError> {
        let Some(own) = self.census.directories.get_mut(&number.0) else { return Ok(()) };
        let parent = InodeNumber(std::mem::take(&mut own.parent));
        let generation = self.census.generation(parent);
        for name in self.names_in(parent, number)? {
            mend::remove_entry(self.volume, parent, &name)?;
            self.census.leave(self.subject, number, link_sum(parent, generation, &name));
        }
        self.census.forget_entries(self.subject, number);
        if let Some(parent) = self.census.directories.get_mut(&parent.0) {
            parent.children = parent.children.saturating_sub(1);
        }
        let what = "directories lead to each other in a circle: cut".into();
        self.actions.push(Action { place: Place::Inode(number), what, loss: None });
        Ok(())
    }
}
