//! A tree of files in memory: what operations should do.

use super::operation::{Move, Operation, Set, split};
use std::collections::BTreeMap;
use std::ops::Range;
use undercroft_judges::random::Random;
use undercroft_xfs::format::FileType;

pub use undercroft_xfs::format::FileType as Kind;

/// One inode.
#[derive(Clone, Debug)]
pub struct Node {
    pub kind: FileType,
    pub mode: u16,
    pub owner: (u32, u32),
    pub links: u32,
    pub times: (i64, i64),
    pub device: (u32, u32),
    pub target: Vec<u8>,
    pub ranges: Vec<Range<u64>>,
    pub seed: u8,
    pub attributes: BTreeMap<String, Vec<u8>>,
    /// Of a directory.
    pub names: BTreeMap<Vec<u8>, usize>,
    parent: usize,
}

/// The tree. Nodes are never reused.
#[derive(Clone, Debug)]
pub struct Model {
    pub nodes: Vec<Node>,
    /// Names in the tree.
    count: usize,
}

pub const ROOT: usize = 0;

impl Model {
    /// A tree with nothing but a root.
    pub fn new(mode: u16, modification: i64) -> Self {
        let mut root = Node::new(FileType::Directory, mode, (0, 0));
        root.times.1 = modification;
        Self { nodes: vec![root], count: 0 }
    }

    /// Names in it.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn find(&self, path: &[u8]) -> Option<usize> {
        let mut at = ROOT;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            at = *self.nodes[at].names.get(name)?;
        }
        Some(at)
    }

    pub fn kind(&self, path: &[u8]) -> Option<FileType> {
        self.find(path).map(|node| self.nodes[node].kind)
    }

    /// A random path to something that `wanted` accepts.
    pub fn any(&self, random: &mut Random, wanted: impl Fn(FileType) -> bool) -> Option<Vec<u8>> {
        for _ in 0..20 {
            let (mut at, mut path) = (ROOT, Vec::new());
            loop {
                let names = &self.nodes[at].names;
                let index = random.below(names.len().max(1) as u64) as usize;
                let Some((name, node)) = names.iter().nth(index) else { break };
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend(name);
                at = *node;
                if self.nodes[at].kind != FileType::Directory || random.one_in(3) {
                    break;
                }
            }
            if at != ROOT && wanted(self.nodes[at].kind) {
                return Some(path);
            }
        }
        None
    }

    /// Does it; `false` if it must fail.
    pub fn apply(&mut self, operation: &Operation, now: i64) -> bool {
        self.attempt(operation, now).is_some()
    }

    fn attempt(&mut self, operation: &Operation, now: i64) -> Option<()> {
        match operation {
            Operation::Make { path, kind, mode, device, target } => {
                let mode = if *kind == FileType::Symlink { 0o777 } else { *mode };
                let mut node = Node::new(*kind, mode, (0, 0));
                (node.device, node.target) = (*device, target.clone());
                self.add(path, node, now)
            }
            Operation::File { path, mode, ranges, seed } => {
                let mut node = Node::new(FileType::Regular, *mode, (0, 0));
                (node.ranges, node.seed) = (ranges.clone(), *seed);
                self.add(path, node, now)
            }
            Operation::Link { from, to } => {
                let node = self.find(from)?;
                let parent = self.absent(to)?;
                if self.nodes[node].kind == FileType::Directory {
                    return None;
                }
                self.nodes[node].links += 1;
                self.put(parent, split(to).1, node, now);
                Some(())
            }
            Operation::Unlink { path } => self.remove(path, false, now),
            Operation::Rmdir { path } => self.remove(path, true, now),
            Operation::Rename { from, to, mode } => self.rename(from, to, *mode, now),
            _ => self.change(operation),
        }
    }

    /// Operations on one inode.
    fn change(&mut self, operation: &Operation) -> Option<()> {
        let (Operation::Mode { path, .. }
        | Operation::Owner { path, .. }
        | Operation::Times { path, .. }
        | Operation::SetAttribute { path, .. }
        | Operation::RemoveAttribute { path, .. }) = operation
        else {
            return None;
        };
        let found = self.find(path)?;
        let node = &mut self.nodes[found];
        match operation {
            Operation::Mode { mode, .. } => node.mode = *mode,
            Operation::Owner { uid, gid, .. } => {
                node.owner = (*uid, *gid);
                if node.kind != FileType::Directory {
                    node.mode &= !0o4000;
                    if node.mode & 0o010 != 0 {
                        node.mode &= !0o2000;
                    }
                }
            }
            Operation::Times { access, modification, .. } => node.times = (*access, *modification),
            Operation::SetAttribute { name, value, mode, .. } => {
                let exists = node.attributes.contains_key(name);
                let may = match mode {
                    Set::Either => true,
                    Set::Create => !exists,
                    Set::Replace => exists,
                };
                let user = name.starts_with("user.");
                let plain = matches!(node.kind, FileType::Regular | FileType::Directory);
                if !may || (user && !plain) {
                    return None;
                }
                node.attributes.insert(name.clone(), value.clone());
            }
            Operation::RemoveAttribute { name, .. } => {
                node.attributes.remove(name)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// The directory for a path that must not exist yet.
    fn absent(&self, path: &[u8]) -> Option<usize> {
        let (directory, name) = split(path);
        let parent = self.find(directory)?;
        let node = &self.nodes[parent];
        let may = node.kind == FileType::Directory && name.len() <= 255;
        (may && !node.names.contains_key(name)).then_some(parent)
    }

    fn add(&mut self, path: &[u8], mut node: Node, now: i64) -> Option<()> {
        let parent = self.absent(path)?;
        let above = &self.nodes[parent];
        if above.mode & 0o2000 != 0 {
            node.owner.1 = above.owner.1;
            if node.kind == FileType::Directory {
                node.mode |= 0o2000;
            }
        }
        (node.times, node.parent) = ((now, now), parent);
        if node.kind == FileType::Directory {
            self.nodes[parent].links += 1;
        }
        self.nodes.push(node);
        self.put(parent, split(path).1, self.nodes.len() - 1, now);
        Some(())
    }

    fn put(&mut self, parent: usize, name: &[u8], node: usize, now: i64) {
        self.nodes[parent].names.insert(name.to_vec(), node);
        self.nodes[parent].times.1 = now;
        self.count += 1;
    }

    fn take(&mut self, parent: usize, name: &[u8], now: i64) {
        self.nodes[parent].names.remove(name);
        self.nodes[parent].times.1 = now;
        self.count -= 1;
    }

    fn remove(&mut self, path: &[u8], directory: bool, now: i64) -> Option<()> {
        let node = self.find(path)?;
        let (above, name) = split(path);
        let parent = self.find(above)?;
        let is_directory = self.nodes[node].kind == FileType::Directory;
        if node == ROOT || directory != is_directory || !self.nodes[node].names.is_empty() {
            return None;
        }
        self.take(parent, name, now);
        self.leave(node, parent);
        Some(())
    }

    /// A name of `node` in `parent` went.
    fn leave(&mut self, node: usize, parent: usize) {
        if self.nodes[node].kind == FileType::Directory {
            self.nodes[parent].links -= 1;
        }
        self.nodes[node].links -= 1;
    }

    fn is_within(&self, mut directory: usize, above: usize) -> bool {
        loop {
            if directory == above {
                return true;
            }
            if directory == ROOT {
                return false;
            }
            directory = self.nodes[directory].parent;
        }
    }

    fn rename(&mut self, from: &[u8], to: &[u8], mode: Move, now: i64) -> Option<()> {
        let ((above, old), (below, new)) = (split(from), split(to));
        let source = self.find(from)?;
        let (from_parent, to_parent) = (self.find(above)?, self.find(below)?);
        if self.nodes[to_parent].kind != FileType::Directory || new.len() > 255 {
            return None;
        }
        let target = self.nodes[to_parent].names.get(new).copied();
        match target {
            Some(_) if mode == Move::NoReplace => return None,
            None if mode == Move::Exchange => return None,
            _ => {}
        }
        if self.is_within(to_parent, source)
            || target.is_some_and(|target| self.is_within(from_parent, target))
        {
            return None;
        }
        if target == Some(source) {
            return Some(());
        }
        let is_directory = |node: usize| self.nodes[node].kind == FileType::Directory;
        if mode == Move::Exchange {
            let target = target?;
            let more = |node: usize| u32::from(is_directory(node));
            let (moved, back) = (more(source), more(target));
            self.nodes[from_parent].links = self.nodes[from_parent].links + back - moved;
            self.nodes[to_parent].links = self.nodes[to_parent].links + moved - back;
            for (parent, name, node) in [(from_parent, old, target), (to_parent, new, source)] {
                self.nodes[parent].names.insert(name.to_vec(), node);
                (self.nodes[parent].times.1, self.nodes[node].parent) = (now, parent);
            }
            return Some(());
        }
        if let Some(target) = target {
            if is_directory(source) != is_directory(target) || !self.nodes[target].names.is_empty()
            {
                return None;
            }
            self.take(to_parent, new, now);
            self.leave(target, to_parent);
        }
        let moved = u32::from(self.nodes[source].kind == FileType::Directory);
        self.take(from_parent, old, now);
        self.put(to_parent, new, source, now);
        self.nodes[from_parent].links -= moved;
        self.nodes[to_parent].links += moved;
        self.nodes[source].parent = to_parent;
        Some(())
    }

    /// All paths with their nodes, directories before their contents.
    pub fn walk(&self) -> Vec<(Vec<u8>, usize)> {
        let mut found = vec![(Vec::new(), ROOT)];
        let mut next = 0;
        while let Some((path, node)) = found.get(next).cloned() {
            for (name, child) in &self.nodes[node].names {
                let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
                found.push(([&path, slash, name].concat(), *child));
            }
            next += 1;
        }
        found
    }
}

impl Node {
    fn new(kind: FileType, mode: u16, owner: (u32, u32)) -> Self {
        Self {
            kind,
            mode,
            owner,
            links: if kind == FileType::Directory { 2 } else { 1 },
            times: (0, 0),
            device: (0, 0),
            target: Vec::new(),
            ranges: Vec::new(),
            seed: 0,
            attributes: BTreeMap::new(),
            names: BTreeMap::new(),
            parent: ROOT,
        }
    }

    pub fn size(&self) -> u64 {
        self.ranges.last().map_or(0, |range| range.end)
    }
}
