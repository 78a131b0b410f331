//! Who leads to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use undercroft_xfs::Volume;
use undercroft_xfs::format::{EntryType, FileType, NLINK_MAX, NLINK_PINNED};
use undercroft_xfs::ops::mend::LinkedName;
use undercroft_xfs::ops::{self, Position, mend};
use undercroft_xfs::units::InodeNumber;

use super::Work;
use super::lost_found::LostFound;
use crate::action::{Action, Place};
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::subject::Subject;

/// One inode in use.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: FileType,
    generation: u32,
    links: u32,
    /// Entries that lead to it.
    entries: u32,
    /// Directories in it.
    children: u32,
    /// Of a directory, the one with its entry; 0 if there is none.
    parent: u64,
    /// Sum over the entries that lead here, and over its own pointers.
    sums: [u64; 2],
}

/// An entry that is wrong.
#[derive(Clone, Debug)]
struct FalseEntry {
    directory: InodeNumber,
    name: Vec<u8>,
    /// What the entry should say of the kind; `None` if it is to go.
    right: Option<(InodeNumber, EntryType)>,
}

/// The names of a volume.
pub(super) struct Graph {
    root: InodeNumber,
    nodes: FxHashMap<u64, Node>,
    rooted: FxHashSet<u64>,
    wrong: Vec<FalseEntry>,
    /// Paths of inodes that were made again.
    paths: FxHashMap<u64, Vec<Vec<Vec<u8>>>>,
    has_pointers: bool,
}

fn sum(directory: InodeNumber, generation: u32, name: &[u8]) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    (directory.0, generation, name).hash(&mut hasher);
    hasher.finish()
}

impl Graph {
    pub(super) fn read(
        subject: &Subject,
        volume: &Volume,
        chunks: &Chunks,
        work: &Work,
    ) -> Result<Self, RepairError> {
        let geometry = &subject.geometry;
        let mut graph = Self {
            root: volume.geometry().root_inode,
            nodes: FxHashMap::default(),
            rooted: work.rooted.iter().map(|number| number.0).collect(),
            wrong: Vec::new(),
            paths: work
                .refills
                .iter()
                .map(|(number, refill)| (number.0, refill.paths.clone()))
                .collect(),
            has_pointers: geometry.features.parent_pointers(),
        };
        let numbers = chunks.numbers(geometry);
        let mut directories = Vec::new();
        for number in numbers {
            let Ok(inode) = volume.inode(number) else { continue };
            let inode = inode.read();
            let mut node = Node {
                kind: inode.file_type(),
                generation: inode.core.generation,
                links: inode.core.nlink,
                entries: 0,
                children: 0,
                parent: 0,
                sums: [0; 2],
            };
            if graph.has_pointers {
                for pointer in mend::parent_pointers(volume, &inode)? {
                    let one = sum(pointer.directory, pointer.generation, &pointer.name);
                    node.sums[1] = node.sums[1].wrapping_add(one);
                }
            }
            if node.kind == FileType::Directory {
                directories.push(number);
            }
            graph.nodes.insert(number.0, node);
        }
        for directory in directories {
            graph.read_directory(volume, directory)?;
        }
        Ok(graph)
    }

    fn read_directory(
        &mut self,
        volume: &Volume,
        directory: InodeNumber,
    ) -> Result<(), RepairError> {
        let mut entries: Vec<(Vec<u8>, InodeNumber, EntryType)> = Vec::new();
        let inode = volume.inode(directory)?;
        ops::entries(volume, &inode.read(), Position::START, |entry| {
            if entry.name != b"." && entry.name != b".." {
                entries.push((entry.name.to_vec(), entry.inode, entry.ftype));
            }
            true
        })?;
        for (name, child, kind) in entries {
            self.add(directory, name, child, kind);
        }
        Ok(())
    }

    fn add(&mut self, directory: InodeNumber, name: Vec<u8>, child: InodeNumber, kind: EntryType) {
        let generation = self.nodes.get(&directory.0).map_or(0, |node| node.generation);
        let is_root = child == self.root || self.rooted.contains(&child.0);
        let node = self.nodes.get_mut(&child.0).filter(|_| !is_root && child != directory);
        let Some(node) = node else {
            return self.wrong.push(FalseEntry { directory, name, right: None });
        };
        let is_directory = node.kind == FileType::Directory;
        if is_directory && node.parent != 0 {
            // A directory has one name: the first stays.
            return self.wrong.push(FalseEntry { directory, name, right: None });
        }
        node.entries += 1;
        node.sums[0] = node.sums[0].wrapping_add(sum(directory, generation, &name));
        if is_directory {
            node.parent = directory.0;
        }
        let right: EntryType = node.kind.into();
        let is_whiteout = kind == EntryType::Whiteout && node.kind == FileType::Character;
        if kind != right && !is_whiteout && kind != EntryType::Unknown {
            let right = Some((child, right));
            self.wrong.push(FalseEntry { directory, name, right });
        }
        if is_directory && let Some(parent) = self.nodes.get_mut(&directory.0) {
            parent.children += 1;
        }
    }

    pub(super) fn remove_false_entries(
        &mut self,
        volume: &Volume,
        actions: &mut Vec<Action>,
    ) -> Result<(), RepairError> {
        for entry in std::mem::take(&mut self.wrong) {
            let FalseEntry { directory, name, right } = entry;
            let shown = String::from_utf8_lossy(&name).into_owned();
            mend::remove_entry(volume, directory, &name)?;
            let what = match right {
                Some((child, kind)) => {
                    mend::add_entry(volume, directory, &name, child, kind)?;
                    format!("the entry {shown:?} says another kind of file: set right")
                }
                None => format!("the entry {shown:?} leads nowhere: removed"),
            };
            actions.push(Action { place: Place::Inode(directory), what, loss: None });
        }
        Ok(())
    }

    /// Gives names to inodes that nothing leads to, directories first.
    pub(super) fn connect(
        &mut self,
        volume: &Arc<Volume>,
        actions: &mut Vec<Action>,
    ) -> Result<(), RepairError> {
        self.break_circles(volume, actions)?;
        let mut lost_found = LostFound::default();
        let depth = |number: &u64| {
            let paths = self.paths.get(number).map_or(&[][..], |paths| &paths[..]);
            paths.iter().map(Vec::len).min().unwrap_or(0)
        };
        let mut alone: Vec<(bool, usize, u64)> = self
            .nodes
            .iter()
            .filter(|(number, node)| {
                node.entries == 0 && **number != self.root.0 && !self.rooted.contains(number)
            })
            .map(|(number, node)| (node.kind != FileType::Directory, depth(number), *number))
            .collect();
        alone.sort_unstable();
        for (_, _, number) in alone {
            let number = InodeNumber(number);
            let mut named = 0;
            let told = self.own_names(volume, number)?;
            let told = if told.is_empty() { self.names_by_paths(volume, number) } else { told };
            for name in told {
                named += u32::from(self.enter(volume, number, &name, actions)?);
                let is_directory = self.kind(number) == Some(FileType::Directory);
                if is_directory && named > 0 {
                    break;
                }
            }
            if named == 0 {
                let (directory, name) = lost_found.place(self.root, volume, number)?;
                if let Some(made) = lost_found.take_made() {
                    self.know_made(volume, made)?;
                }
                let generation = self.generation(directory);
                let name = LinkedName { directory, generation, name };
                if self.enter(volume, number, &name, actions)?
                    && let Some(action) = actions.last_mut()
                {
                    action.loss = Some("its name".into());
                }
            }
        }
        Ok(())
    }

    fn kind(&self, number: InodeNumber) -> Option<FileType> {
        self.nodes.get(&number.0).map(|node| node.kind)
    }

    fn generation(&self, number: InodeNumber) -> u32 {
        self.nodes.get(&number.0).map_or(0, |node| node.generation)
    }

    /// The directory for files without a name, which was just made.
    fn know_made(&mut self, volume: &Volume, made: InodeNumber) -> Result<(), RepairError> {
        let inode = volume.inode(made)?;
        let inode = inode.read();
        let generation = self.generation(self.root);
        let one = sum(self.root, generation, b"lost+found");
        self.nodes.insert(
            made.0,
            Node {
                kind: FileType::Directory,
                generation: inode.core.generation,
                links: inode.core.nlink,
                entries: 1,
                children: 0,
                parent: self.root.0,
                sums: [one; 2],
            },
        );
        if let Some(root) = self.nodes.get_mut(&self.root.0) {
            root.children += 1;
            root.links += 1;
        }
        Ok(())
    }

    /// Names that an inode says itself, in directories that are there and are the same as then.
    fn own_names(
        &self,
        volume: &Volume,
        number: InodeNumber,
    ) -> Result<Vec<LinkedName>, RepairError> {
        if !self.has_pointers {
            return Ok(Vec::new());
        }
        let inode = volume.inode(number)?;
        let mut names = mend::parent_pointers(volume, &inode.read())?;
        names.retain(|name| {
            self.nodes.get(&name.directory.0).is_some_and(|node| {
                node.kind == FileType::Directory && node.generation == name.generation
            }) && !self.is_below(name.directory, number)
        });
        Ok(names)
    }

    /// Names by the paths that an inode had, as far as the directories are there.
    fn names_by_paths(&self, volume: &Volume, number: InodeNumber) -> Vec<LinkedName> {
        let paths = self.paths.get(&number.0).map_or(&[][..], |paths| &paths[..]);
        let name = |path: &Vec<Vec<u8>>| {
            let (name, above) = path.split_last()?;
            let mut directory = self.root;
            for step in above {
                let inode = volume.inode(directory).ok()?;
                directory = ops::lookup(volume, &inode.read(), step).ok()??;
            }
            let is_directory = self.kind(directory) == Some(FileType::Directory);
            let is_usable = is_directory && !self.is_below(directory, number);
            let generation = self.generation(directory);
            is_usable.then(|| LinkedName { directory, generation, name: name.clone() })
        };
        paths.iter().filter_map(name).collect()
    }

    /// Whether a directory is another one, or below it.
    fn is_below(&self, directory: InodeNumber, above: InodeNumber) -> bool {
        let (mut at, mut met) = (directory.0, FxHashSet::default());
        while at != 0 && met.insert(at) {
            if at == above.0 {
                return true;
            }
            at = self.nodes.get(&at).map_or(0, |node| node.parent);
        }
        false
    }

    /// Adds an entry; whether there was none of the name.
    fn enter(
        &mut self,
        volume: &Volume,
        number: InodeNumber,
        name: &LinkedName,
        actions: &mut Vec<Action>,
    ) -> Result<bool, RepairError> {
        let Some(kind) = self.kind(number) else { return Ok(false) };
        let LinkedName { directory, generation, name } = name;
        match mend::add_entry(volume, *directory, name, number, kind.into()) {
            Ok(()) => {}
            Err(undercroft_xfs::Error::Exists(_) | undercroft_xfs::Error::Invalid(_)) => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(node) = self.nodes.get_mut(&number.0) {
            node.entries += 1;
            node.sums[0] = node.sums[0].wrapping_add(sum(*directory, *generation, name));
            if kind == FileType::Directory {
                node.parent = directory.0;
            }
        }
        if kind == FileType::Directory
            && let Some(parent) = self.nodes.get_mut(&directory.0)
        {
            parent.children += 1;
        }
        let shown = String::from_utf8_lossy(name);
        let what = format!("nothing leads to it: it is {shown:?} in directory {directory}");
        actions.push(Action { place: Place::Inode(number), what, loss: None });
        Ok(true)
    }

    /// Directories that only lead to each other: one of each circle loses its name, and gets another.
    fn break_circles(
        &mut self,
        volume: &Volume,
        actions: &mut Vec<Action>,
    ) -> Result<(), RepairError> {
        let mut reached: FxHashSet<u64> = FxHashSet::default();
        reached.insert(self.root.0);
        let mut numbers: Vec<u64> = self.nodes.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            if self.kind(InodeNumber(number)) != Some(FileType::Directory) {
                continue;
            }
            let (mut at, mut path) = (number, BTreeSet::new());
            while at != 0 && !reached.contains(&at) && path.insert(at) {
                at = self.nodes.get(&at).map_or(0, |node| node.parent);
            }
            let is_circle = at != 0 && !reached.contains(&at);
            if is_circle {
                self.cut(volume, InodeNumber(at), actions)?;
            }
            reached.extend(path);
        }
        Ok(())
    }

    /// Takes a directory out of its parent.
    fn cut(
        &mut self,
        volume: &Volume,
        number: InodeNumber,
        actions: &mut Vec<Action>,
    ) -> Result<(), RepairError> {
        let Some(node) = self.nodes.get_mut(&number.0) else { return Ok(()) };
        let parent = InodeNumber(std::mem::take(&mut node.parent));
        (node.entries, node.sums[0]) = (0, 0);
        let mut names = Vec::new();
        let inode = volume.inode(parent)?;
        ops::entries(volume, &inode.read(), Position::START, |entry| {
            if entry.inode == number && entry.name != b"." && entry.name != b".." {
                names.push(entry.name.to_vec());
            }
            true
        })?;
        for name in names {
            mend::remove_entry(volume, parent, &name)?;
        }
        if let Some(parent) = self.nodes.get_mut(&parent.0) {
            parent.children = parent.children.saturating_sub(1);
        }
        let what = "directories lead to each other in a circle: cut".into();
        actions.push(Action { place: Place::Inode(number), what, loss: None });
        Ok(())
    }

    pub(super) fn settle_parents(
        &self,
        volume: &Volume,
        actions: &mut Vec<Action>,
    ) -> Result<(), RepairError> {
        for (number, node) in self.sorted() {
            if node.kind != FileType::Directory {
                continue;
            }
            let is_root = number == self.root;
            let expected = if is_root { number } else { InodeNumber(node.parent) };
            let inode = volume.inode(number)?;
            let found = ops::lookup(volume, &inode.read(), b"..").ok().flatten();
            if found != Some(expected) {
                mend::set_dot_dot(volume, number, expected)?;
                let what = format!("\"..\" leads elsewhere: set to directory {expected}");
                actions.push(Action { place: Place::Inode(number), what, loss: None });
            }
        }
        Ok(())
    }

    pub(super) fn settle_links(
        &self,
        volume: &Volume,
        actions: &mut Vec<Action>,
    ) -> Result<(), RepairError> {
        for (number, node) in self.sorted() {
            let expected = match node.kind {
                FileType::Directory => 2 + node.children,
                _ if self.rooted.contains(&number.0) => 1,
                _ => node.entries,
            };
            let expected = if expected > NLINK_MAX { NLINK_PINNED } else { expected };
            if node.links != expected {
                mend::set_links(volume, number, expected)?;
                let what = format!("the link count is {}: set to {expected}", node.links);
                actions.push(Action { place: Place::Inode(number), what, loss: None });
            }
        }
        Ok(())
    }

    /// Makes parent pointers those of the entries.
    pub(super) fn settle_pointers(
        &self,
        volume: &Volume,
        actions: &mut Vec<Action>,
    ) -> Result<(), RepairError> {
        if !self.has_pointers {
            return Ok(());
        }
        let differs = |node: &&(InodeNumber, Node)| node.1.sums[0] != node.1.sums[1];
        let sorted = self.sorted();
        let mut wanted: BTreeMap<InodeNumber, BTreeSet<LinkedName>> =
            sorted.iter().filter(differs).map(|(number, _)| (*number, BTreeSet::new())).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        for (directory, node) in &sorted {
            if node.kind != FileType::Directory {
                continue;
            }
            let inode = volume.inode(*directory)?;
            ops::entries(volume, &inode.read(), Position::START, |entry| {
                let is_own = entry.name == b"." || entry.name == b"..";
                if !is_own && let Some(names) = wanted.get_mut(&entry.inode) {
                    let (directory, generation) = (*directory, node.generation);
                    let name = entry.name.to_vec();
                    names.insert(LinkedName { directory, generation, name });
                }
                true
            })?;
        }
        for (number, names) in wanted {
            let inode = volume.inode(number)?;
            let found = mend::parent_pointers(volume, &inode.read())?;
            let gone: Vec<_> = found.iter().filter(|name| !names.contains(name)).cloned().collect();
            let new: Vec<_> = names.into_iter().filter(|name| !found.contains(name)).collect();
            mend::change_parents(volume, number, &gone, &new)?;
            let what = format!(
                "its parent pointers are not those of its names: {} removed, {} added",
                gone.len(),
                new.len()
            );
            actions.push(Action { place: Place::Inode(number), what, loss: None });
        }
        Ok(())
    }

    fn sorted(&self) -> Vec<(InodeNumber, Node)> {
        let mut all: Vec<_> =
            self.nodes.iter().map(|(number, node)| (InodeNumber(*number), *node)).collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }
}
