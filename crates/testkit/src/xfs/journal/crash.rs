//! Crashes at every point: the disk must be replayed to the state behind some whole operation, and
//! not to one before the last that was made durable.
//!
//! A history of random operations runs on a recorder. A [`Recording`] then gives the disk after
//! each event, with writes that were not flushed dropped, kept, or torn in sectors.

use crate::disk;
use crate::xfs::journal::tree::{Tree, tree};
use crate::xfs::journal::work;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::testing::recorder::{Event, Recorder, Recording, Unflushed};
use undercroft_block::{Batch, Bio, BlockDevice, Buffer, MemoryDevice, Plug};
use undercroft_judges::random::Random;
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::bmap;
use undercroft_xfs::mkfs::{self, MkfsOptions, Preset};
use undercroft_xfs::ops::SetMode;
use undercroft_xfs::ops::{self, DataPlacement, RenameMode};
use undercroft_xfs::recovery::recover;
use undercroft_xfs::units::{FileBlock, InodeNumber};
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

/// An empty volume of ours in memory.
pub fn make(options: &MkfsOptions) -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(options.size));
    let plan = mkfs::plan(options).unwrap();
    let volume = mkfs::begin(&device, plan, &work::new(FileType::Directory)).unwrap();
    mkfs::finish(&volume, false).unwrap();
    device
}

/// A name of something that is no directory.
struct Named {
    parent: InodeNumber,
    name: String,
}

/// Random operations on a live volume, each with the tree behind it.
pub struct History {
    recorder: Arc<Recorder>,
    volume: Volume,
    random: Random,
    directories: Vec<InodeNumber>,
    files: Vec<InodeNumber>,
    names: Vec<Named>,
    /// The tree behind each operation; the first one is that of the empty volume.
    pub trees: Vec<Tree>,
    /// Whether trees are kept, which takes time.
    pub keep_trees: bool,
}

impl History {
    /// Opens the volume on `device`, whose changes are recorded from here on.
    pub fn start(device: Arc<dyn BlockDevice>, options: &LiveOptions, seed: u64) -> Self {
        let recorder = Arc::new(Recorder::with_contents(device).unwrap());
        let volume = Volume::open_live(Arc::clone(&recorder) as _, options).unwrap();
        let directories = vec![volume.geometry().root_inode];
        let trees = vec![tree(&volume).unwrap()];
        let random = Random::new(seed);
        Self {
            recorder,
            volume,
            random,
            directories,
            files: Vec::new(),
            names: Vec::new(),
            trees,
            keep_trees: true,
        }
    }

    /// Runs operations; now and then all are made durable, which the recording says.
    pub fn run(&mut self, operations: u64, sync_one_in: u64) {
        for number in 0..operations {
            self.step(number);
            if self.keep_trees {
                self.trees.push(tree(&self.volume).unwrap());
            }
            if self.random.one_in(sync_one_in) {
                self.volume.sync().unwrap();
                self.recorder.mark(&(self.trees.len() - 1).to_string());
            }
        }
    }

    /// Ends the history by unmounting, or as if the power failed.
    pub fn end(self, close: bool) -> (Recording, Vec<Tree>) {
        if close {
            self.volume.close().unwrap();
            self.recorder.mark(&(self.trees.len() - 1).to_string());
        }
        drop(self.volume);
        (self.recorder.recording().unwrap(), self.trees)
    }

    fn step(&mut self, number: u64) {
        match self.random.below(14) {
            10 | 11 if !self.names.is_empty() => self.unlink(),
            12 if !self.names.is_empty() => self.rename(number),
            13 if !self.files.is_empty() => self.change_attributes(),
            0 => self.create(number, FileType::Directory),
            1 => self.create(number, FileType::Symlink),
            2 if !self.files.is_empty() => self.link(number),
            3 | 4 if !self.files.is_empty() => self.punch(),
            _ => self.create(number, FileType::Regular),
        }
    }

    fn pick(random: &mut Random, from: &[InodeNumber]) -> InodeNumber {
        from[random.below(from.len() as u64) as usize]
    }

    fn create(&mut self, number: u64, kind: FileType) {
        let name = format!("{}-{number}", "n".repeat(self.random.below(100) as usize));
        let target = vec![b't'; if kind == FileType::Symlink { 700 } else { 0 }];
        let value = vec![b'v'; self.random.below(9000) as usize];
        let parent = Self::pick(&mut self.random, &self.directories);
        let mut trans = self.volume.begin().unwrap();
        let mut parent = self.volume.lock_inode(parent).unwrap();
        let new = ops::NewInode { target: &target, ..work::new(kind) };
        let mut inode = ops::create(&mut trans, &mut parent, name.as_bytes(), &new).unwrap();
        if self.random.one_in(4) {
            let attributes = [(&b"user.large"[..], &value[..]), (b"security.x", b"label")];
            ops::set_attributes(&mut trans, &mut inode, attributes).unwrap();
        }
        if kind == FileType::Regular {
            let size = self.random.below(60_000);
            let mut placement = DataPlacement::new(self.volume.geometry());
            let data = std::iter::once(0..size);
            let map =
                ops::allocate_file(&mut trans, &mut inode, size, data, &mut placement).unwrap();
            let (writes, plug) = (Batch::new(), Plug::new(self.volume.cache().device()));
            for extent in map {
                let len = (extent.len as usize) << self.volume.geometry().block_log;
                let bytes = Buffer::copy_of(&vec![(number % 251) as u8; len]);
                let sector = self.volume.geometry().sector(extent.start);
                plug.submit(Bio::write(sector, bytes).in_batch(&writes));
            }
            trans.add_data(&writes);
        }
        let made = inode.number;
        trans.commit(&mut [&mut parent, &mut inode]).unwrap();
        if kind != FileType::Directory {
            self.names.push(Named { parent: parent.number, name: name.clone() });
        }
        match kind {
            FileType::Directory => self.directories.push(made),
            FileType::Regular => self.files.push(made),
            _ => {}
        }
    }

    fn link(&mut self, number: u64) {
        let target = Self::pick(&mut self.random, &self.files);
        let parent = Self::pick(&mut self.random, &self.directories);
        let name = format!("link-{number}");
        work::link(&self.volume, parent, &name, target);
        self.names.push(Named { parent, name });
    }

    /// Removes a name, and its inode if it was the last.
    fn unlink(&mut self) {
        let index = self.random.below(self.names.len() as u64) as usize;
        let Named { parent, name } = self.names.swap_remove(index);
        let now = Timestamp::default();
        let gone = ops::unlink(&self.volume, parent, name.as_bytes(), now).unwrap();
        let stays = self.volume.inode(gone).is_ok_and(|inode| inode.read().core.nlink > 0);
        if !stays {
            self.files.retain(|file| *file != gone);
        }
    }

    fn rename(&mut self, number: u64) {
        let index = self.random.below(self.names.len() as u64) as usize;
        let parent = Self::pick(&mut self.random, &self.directories);
        let Named { parent: before, name } = &self.names[index];
        let to = format!("renamed-{number}");
        let from = ops::Name { parent: *before, name: name.as_bytes() };
        let target = ops::Name { parent, name: to.as_bytes() };
        ops::rename(&self.volume, from, target, RenameMode::Replace, Timestamp::default()).unwrap();
        self.names[index] = Named { parent, name: to };
    }

    /// Sets attributes, or removes them.
    fn change_attributes(&mut self) {
        let file = Self::pick(&mut self.random, &self.files);
        let now = Timestamp::default();
        if self.random.one_in(2) {
            ops::remove_xattr(&self.volume, file, b"user.large", now).unwrap();
            return;
        }
        let value = vec![b'w'; self.random.below(6000) as usize];
        let (name, mode) = (b"user.large", SetMode::Either);
        ops::set_xattr(&self.volume, file, (name, &value), mode, now).unwrap();
    }

    /// Frees the end of a file.
    fn punch(&mut self) {
        let file = Self::pick(&mut self.random, &self.files);
        let mut trans = self.volume.begin().unwrap();
        let mut inode = self.volume.lock_inode(file).unwrap();
        let end = bmap::extents(&self.volume, &inode, ForkKind::Data).unwrap().end().0;
        let (from, to) = (FileBlock(self.random.below(end + 1)), FileBlock(end + 1));
        bmap::remove(&mut trans, &mut inode, ForkKind::Data, from, to).unwrap();
        trans.commit(&mut [&mut inode]).unwrap();
    }
}

/// A disk that a crash left, and the number of operations that must be on it.
pub struct Cut {
    pub disk: Arc<dyn BlockDevice>,
    pub durable: usize,
    pub what: String,
}

/// Calls `judge` with about `count` cuts of a recording, spread over all events; `torn` makes a tear
/// of a seed.
pub fn cuts(
    mut recording: Recording,
    (count, seed): (u64, u64),
    torn: impl Fn(u64) -> Unflushed,
    mut judge: impl FnMut(Cut),
) {
    let mut random = Random::new(seed);
    let events = recording.events().len() as u64;
    let mut durable = 0;
    while let Some(event) = recording.step() {
        if let Event::Mark(text) = event {
            durable = text.parse().unwrap();
        }
        let here = count / events + u64::from(random.below(events) < count % events);
        for _ in 0..here {
            let unflushed = match random.below(4) {
                0 => Unflushed::Dropped,
                1 => Unflushed::Kept,
                _ => torn(random.below(1 << 32)),
            };
            let what = format!("event {} of {events}, {unflushed:?}", recording.position());
            judge(Cut { disk: recording.disk(unflushed), durable, what });
        }
    }
}

impl Cut {
    /// Checks that a volume that was replayed has the tree behind an operation, and not behind one
    /// before the last durable one.
    pub fn judge_tree(&self, found: &Tree, trees: &[Tree]) {
        let known = trees[self.durable..].contains(found);
        if known {
            return;
        }
        let early = trees.iter().position(|tree| tree == found);
        let difference: Vec<_> = trees[self.durable]
            .iter()
            .filter(|(path, text)| found.get(*path) != Some(text))
            .map(|(path, text)| (String::from_utf8_lossy(path), text, found.get(path)))
            .take(3)
            .collect();
        panic!(
            "{}: {} operations were durable; found the tree behind {early:?}; {difference:#?}",
            self.what, self.durable
        );
    }

    /// Copies the disk into a file.
    pub fn save(&self, image: &Path) {
        disk::save(self.disk.as_ref(), image);
    }
}

/// Replays a cut in memory, and looks at the whole volume.
pub fn judge(cut: &Cut, trees: &[Tree], whole_check: bool) {
    let volume = Volume::open(Arc::clone(&cut.disk));
    let volume = volume.unwrap_or_else(|error| panic!("{}: {error}", cut.what));
    let found = tree(&volume).unwrap_or_else(|error| panic!("{}: {error}", cut.what));
    cut.judge_tree(&found, trees);
    if whole_check {
        recover(&cut.disk, &mut |_| {}).unwrap();
        let options = CheckOptions::default();
        let report = check(Arc::clone(&cut.disk), &options, &mut |finding| {
            panic!("{}: {finding}", cut.what);
        });
        assert!(report.unwrap().is_clean(), "{}", cut.what);
    }
}

pub fn options(size: u64, seed: u64) -> MkfsOptions {
    MkfsOptions::new(size, Uuid::from_u128(seed.into()))
}

/// Formats on which crashes are tried.
pub fn formats(seed: u64) -> Vec<MkfsOptions> {
    let plain = options(64 << 20, seed);
    vec![
        plain.clone(),
        MkfsOptions { preset: Preset::Linux4_19, ..plain.clone() },
        MkfsOptions { inode_size: 1024, dir_block_size: Some(8192), ..plain.clone() },
        MkfsOptions { block_size: 1024, ..plain.clone() },
        MkfsOptions { sector_size: 4096, log_stripe_unit: Some(16 << 10), ..plain },
    ]
}
