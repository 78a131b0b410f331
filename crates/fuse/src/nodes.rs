//! The files that the kernel knows, by number, and those of them that are open.
//!
//! The kernel counts how often it was told of a file, and says when it has forgotten that many. As
//! long as it has not, the number must stay this file's. A name does that by itself; a file that
//! loses its last name is held open from then until it is forgotten. So a file that is merely known
//! costs a few words. A file whose data is used is held open as well, so that an opening, with the
//! space ahead that it has, lasts over many requests; it is let go when it was idle for a while.
//!
//! No file is opened, closed or dropped while a part of the table is locked.

use parking_lot::RwLock;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use undercroft_fs::{Error, File, FileSystem, InodeNumber};

/// Parts of the table, so that threads seldom meet.
const SHARDS: usize = 64;

/// Open files of a part above which idle ones are let go at once.
const SHARD_OPENINGS: usize = 256;

/// An open file of the table.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The file.
    pub(crate) file: File,
    was_used: AtomicBool,
    is_written: AtomicBool,
}

impl Opening {
    fn new(file: File) -> Self {
        Self { file, was_used: AtomicBool::new(true), is_written: AtomicBool::new(false) }
    }

    /// Data was written through it, which may be lost later: it is not let go before that is known.
    pub(crate) fn note_write(&self) {
        // Mostly it is set; then its cache line is only read.
        if !self.is_written.load(Ordering::Relaxed) {
            self.is_written.store(true, Ordering::Relaxed);
        }
    }

    /// Whether data was written through it.
    pub(crate) fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Relaxed)
    }

    fn note_use(&self) {
        if !self.was_used.load(Ordering::Relaxed) {
            self.was_used.store(true, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Default)]
struct Node {
    /// How often the kernel was told of it and has not forgotten it.
    lookups: u64,
    opening: Option<Arc<Opening>>,
    /// It has no name: it is open until it is forgotten.
    is_nameless: bool,
    /// Data of it was lost, and no one was told yet.
    has_loss: bool,
}

#[derive(Debug, Default)]
struct Shard {
    nodes: FxHashMap<InodeNumber, Node>,
    /// Numbers that have, or had, an opening.
    open: Vec<InodeNumber>,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Nodes {
    shards: Vec<RwLock<Shard>>,
    known: AtomicU64,
}

impl Nodes {
    /// A table in which the root is known for ever.
    pub(crate) fn new(root: InodeNumber) -> Self {
        let shards = std::iter::repeat_with(RwLock::default).take(SHARDS).collect();
        let nodes = Self { shards, known: AtomicU64::new(0) };
        nodes.remember(root);
        nodes
    }

    /// How many files the kernel knows.
    pub(crate) fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    /// How many of them are open.
    pub(crate) fn openings(&self) -> usize {
        let open = |shard: &RwLock<Shard>| {
            shard.read().nodes.values().filter(|node| node.opening.is_some()).count()
        };
        self.shards.iter().map(open).sum()
    }

    /// Fails unless the kernel knows a number.
    pub(crate) fn expect(&self, number: InodeNumber) -> Result<(), Error> {
        if self.shard(number).read().nodes.contains_key(&number) {
            return Ok(());
        }
        Err(Error::Stale { inode: number })
    }

    /// The kernel is told of a file.
    pub(crate) fn remember(&self, number: InodeNumber) {
        let mut shard = self.shard(number).write();
        let node = self.node(&mut shard, number);
        node.lookups = node.lookups.saturating_add(1);
    }

    /// The kernel is told of a file that is open.
    pub(crate) fn remember_open(&self, file: File) {
        let number = file.number();
        let is_nameless = file.metadata().nlink == 0;
        let opening = Arc::new(Opening::new(file));
        let mut shard = self.shard(number).write();
        let node = self.node(&mut shard, number);
        node.lookups = node.lookups.saturating_add(1);
        node.is_nameless |= is_nameless;
        if node.opening.is_none() {
            node.opening = Some(Arc::clone(&opening));
            shard.open.push(number);
        }
        drop(shard);
        drop(opening);
    }

    /// The kernel has forgotten a file `lookups` times; returns the opening to be dropped when that
    /// is all.
    pub(crate) fn forget(&self, number: InodeNumber, lookups: u64) -> Option<Arc<Opening>> {
        let mut shard = self.shard(number).write();
        let node = shard.nodes.get_mut(&number)?;
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.lookups > 0 {
            return None;
        }
        self.known.fetch_sub(1, Ordering::Relaxed);
        shard.nodes.remove(&number)?.opening
    }

    /// The opening of a file that the kernel knows.
    pub(crate) fn open(&self, fs: &FileSystem, number: InodeNumber) -> Result<Arc<Opening>, Error> {
        let stale = || Error::Stale { inode: number };
        if let Some(opening) =
            &self.shard(number).read().nodes.get(&number).ok_or_else(stale)?.opening
        {
            opening.note_use();
            return Ok(Arc::clone(opening));
        }
        let mut idle = Vec::new();
        let opened = Arc::new(Opening::new(fs.open_number(number)?));
        let mut shard = self.shard(number).write();
        if shard.open.len() >= SHARD_OPENINGS {
            shard.let_go(&mut idle);
        }
        let node = shard.nodes.get_mut(&number).ok_or_else(stale)?;
        if let Some(other) = &node.opening {
            return Ok(Arc::clone(other));
        }
        node.opening = Some(Arc::clone(&opened));
        shard.open.push(number);
        drop(shard);
        Ok(opened)
    }

    /// A file that may have lost its last name: it is held open until it is forgotten.
    pub(crate) fn hold_nameless(&self, opening: &Arc<Opening>) {
        let number = opening.file.number();
        let mut shard = self.shard(number).write();
        let Some(node) = shard.nodes.get_mut(&number) else { return };
        node.is_nameless = true;
        if node.opening.is_none() {
            node.opening = Some(Arc::clone(opening));
            shard.open.push(number);
        }
    }

    /// Data of a file is lost; the next to ask is told.
    pub(crate) fn note_loss(&self, number: InodeNumber) {
        if let Some(node) = self.shard(number).write().nodes.get_mut(&number) {
            node.has_loss = true;
        }
    }

    /// Whether data of a file was lost since this was asked last.
    pub(crate) fn take_loss(&self, number: InodeNumber) -> bool {
        if !self.shard(number).read().nodes.get(&number).is_some_and(|node| node.has_loss) {
            return false;
        }
        let mut shard = self.shard(number).write();
        shard.nodes.get_mut(&number).is_some_and(|node| std::mem::take(&mut node.has_loss))
    }

    /// Takes the openings out of the table that were not used since the last time.
    pub(crate) fn idle(&self) -> Vec<Arc<Opening>> {
        let mut idle = Vec::new();
        for shard in &self.shards {
            // Most have none.
            if !shard.read().open.is_empty() {
                shard.write().let_go(&mut idle);
            }
        }
        idle
    }

    /// Takes all openings out of the table.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let nodes = std::mem::take(&mut *shard.write());
            drop(nodes);
        }
    }

    fn shard(&self, number: InodeNumber) -> &RwLock<Shard> {
        use std::hash::BuildHasher;
        // The upper bits are the well mixed ones.
        let hash = FxBuildHasher.hash_one(number) >> 57;
        &self.shards[hash as usize % SHARDS]
    }

    fn node<'s>(&self, shard: &'s mut Shard, number: InodeNumber) -> &'s mut Node {
        shard.nodes.entry(number).or_insert_with(|| {
            self.known.fetch_add(1, Ordering::Relaxed);
            Node::default()
        })
    }
}

impl Shard {
    fn let_go(&mut self, idle: &mut Vec<Arc<Opening>>) {
        let nodes = &mut self.nodes;
        self.open.retain(|number| {
            let Some(node) = nodes.get_mut(number) else { return false };
            let Some(opening) = &node.opening else { return false };
            if node.is_nameless || opening.was_used.swap(false, Ordering::Relaxed) {
                return true;
            }
            idle.extend(node.opening.take());
            false
        });
    }
}
