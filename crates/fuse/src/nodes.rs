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
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use undercroft_fs::{Error, File, FileSystem, InodeNumber};

/// Parts of the table, so that threads seldom meet.
const SHARDS: usize = 64;

/// Openings of a part above which idle ones are looked for at once.
const SHARD_OPENINGS: usize = 256;

/// An open file of the table.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The file.
    pub(crate) file: File,
    was_used: AtomicBool,
    /// [`STORED`], [`STORING`] or [`WRITTEN`].
    data: AtomicU8,
}

/// All that was written through an opening is durable.
const STORED: u8 = 0;
/// It is on its way.
const STORING: u8 = 1;
/// Some of it is in memory, or lost, and the one who wrote it was not told.
const WRITTEN: u8 = 2;

impl Opening {
    fn new(file: File) -> Self {
        Self { file, was_used: AtomicBool::new(true), data: AtomicU8::new(STORED) }
    }

    /// Data was written through it, which may be lost later: it is not let go before that is known.
    pub(crate) fn note_write(&self) {
        // Mostly it is set; then its cache line is only read.
        if self.data.load(Ordering::Relaxed) != WRITTEN {
            self.data.store(WRITTEN, Ordering::Relaxed);
        }
    }

    /// What was written through it is being stored; [`Nodes::note_stored`] says how that ended.
    pub(crate) fn note_storing(&self) {
        self.data.store(STORING, Ordering::Relaxed);
    }

    fn is_stored(&self) -> bool {
        self.data.load(Ordering::Relaxed) == STORED
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
}

#[derive(Debug, Default)]
struct Shard {
    nodes: FxHashMap<InodeNumber, Node>,
    /// Numbers that have, or had, an opening.
    open: Vec<InodeNumber>,
    /// Openings that the last look for idle ones left.
    left: usize,
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
        // Dropped last, when nothing is locked.
        let mut idle = Vec::new();
        let mut shard = self.shard(number).write();
        shard.make_room(&mut idle);
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
        let opened = Arc::new(Opening::new(fs.nodes().open(number)?));
        let mut shard = self.shard(number).write();
        shard.make_room(&mut idle);
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

    /// Whether a file has no name, and goes when it is forgotten.
    pub(crate) fn is_nameless(&self, number: InodeNumber) -> bool {
        self.shard(number).read().nodes.get(&number).is_some_and(|node| node.is_nameless)
    }

    /// The data that was being stored is durable, or not.
    pub(crate) fn note_stored(&self, number: InodeNumber, is_durable: bool) {
        let shard = self.shard(number).read();
        let Some(opening) = shard.nodes.get(&number).and_then(|node| node.opening.as_ref()) else {
            return;
        };
        let now = if is_durable { STORED } else { WRITTEN };
        // Unless more was written.
        let relaxed = Ordering::Relaxed;
        let _ = opening.data.compare_exchange(STORING, now, relaxed, relaxed);
    }

    /// Lets go of the openings that were not used since the last time; returns those of them that stay,
    /// since data was written through them.
    pub(crate) fn let_go(&self) -> Vec<Arc<Opening>> {
        let (mut idle, mut written) = (Vec::new(), Vec::new());
        for shard in &self.shards {
            // Most have none.
            if !shard.read().open.is_empty() {
                shard.write().let_go(&mut idle, |opening| written.push(Arc::clone(opening)));
            }
        }
        written
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
    /// Takes idle openings out if there are many, and twice as many as the last time: so a look
    /// costs each opening little. Those through which data was written wait for the keeper.
    fn make_room(&mut self, idle: &mut Vec<Arc<Opening>>) {
        if self.open.len() >= SHARD_OPENINGS.max(2 * self.left) {
            self.let_go(idle, |_| ());
        }
    }

    /// Takes openings out that were not used since the last time; calls `written` for those of them that
    /// have to stay.
    fn let_go(&mut self, idle: &mut Vec<Arc<Opening>>, mut written: impl FnMut(&Arc<Opening>)) {
        let nodes = &mut self.nodes;
        self.open.retain(|number| {
            let Some(node) = nodes.get_mut(number) else { return false };
            let Some(opening) = &node.opening else { return false };
            if node.is_nameless || opening.was_used.swap(false, Ordering::Relaxed) {
                return true;
            }
            if !opening.is_stored() {
                written(opening);
                return true;
            }
            idle.extend(node.opening.take());
            false
        });
        self.left = self.open.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use undercroft_block::MemoryDevice;
    use undercroft_fs::{Existing, FileType, NewFile, OpenOptions};
    use undercroft_xfs::mkfs::{MkfsOptions, begin, finish, plan};
    use undercroft_xfs::ops::NewInode;

    fn volume() -> FileSystem {
        let device: Arc<dyn undercroft_block::BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        let plan = plan(&MkfsOptions::new(64 << 20, uuid::Uuid::from_u128(1))).unwrap();
        let root = NewInode::new(FileType::Directory, 0o755);
        finish(&begin(&device, plan, &root).unwrap(), true).unwrap();
        FileSystem::open(device, &OpenOptions::writable()).unwrap()
    }

    fn create(fs: &FileSystem, name: &str) -> File {
        let new = NewFile::new(0o600);
        fs.nodes().create(fs.root(), name.as_bytes(), &new, Existing::Refuse).unwrap().1
    }

    #[test]
    fn numbers_are_known_until_they_are_forgotten_as_often() {
        let fs = volume();
        let nodes = Nodes::new(fs.root());
        let file = create(&fs, "file");
        let number = file.number();
        assert!(matches!(nodes.open(&fs, number), Err(Error::Stale { .. })));
        nodes.remember_open(file);
        nodes.remember(number);
        assert_eq!((nodes.known(), nodes.openings()), (2, 1));
        assert!(nodes.forget(number, 1).is_none());
        nodes.expect(number).unwrap();
        assert!(nodes.forget(number, 1).is_some());
        assert!(matches!(nodes.expect(number), Err(Error::Stale { .. })));
        assert_eq!(nodes.known(), 1);
        assert!(nodes.forget(number, 1).is_none());
    }

    #[test]
    fn files_are_let_go_when_they_were_idle_and_have_a_name() {
        let fs = volume();
        let nodes = Nodes::new(fs.root());
        let [used, idle, nameless] = ["used", "idle", "nameless"].map(|name| {
            let file = create(&fs, name);
            let number = file.number();
            nodes.remember_open(file);
            number
        });
        fs.nodes().unlink(fs.root(), b"nameless").unwrap();
        nodes.hold_nameless(&nodes.open(&fs, nameless).unwrap());
        assert!(nodes.let_go().is_empty() && nodes.openings() == 3, "all were used");
        drop(nodes.open(&fs, used).unwrap());
        nodes.let_go();
        assert!(nodes.shard(idle).read().nodes[&idle].opening.is_none());
        assert!(nodes.is_nameless(nameless) && nodes.openings() == 2);
        // It is opened again when it is used.
        nodes.open(&fs, idle).unwrap();
        assert_eq!(nodes.openings(), 3);
    }

    #[test]
    fn a_file_that_was_written_stays_until_that_is_stored() {
        let fs = volume();
        let nodes = Nodes::new(fs.root());
        let file = create(&fs, "file");
        let number = file.number();
        nodes.remember_open(file);
        nodes.let_go();
        let written = || nodes.let_go().len();
        nodes.open(&fs, number).unwrap().note_write();
        assert_eq!(written(), 0, "it was used");
        let opening = nodes.let_go().pop().unwrap();
        opening.note_storing();
        nodes.note_stored(number, false);
        assert_eq!(written(), 1, "it is not stored");
        opening.note_storing();
        opening.note_write();
        nodes.note_stored(number, true);
        assert_eq!(written(), 1, "more was written");
        opening.note_storing();
        nodes.note_stored(number, true);
        assert_eq!((written(), nodes.openings()), (0, 0));
    }
}
