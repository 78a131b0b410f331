//! What a crash in the middle of a shrink may leave: a sound volume of the old size or the new one, or
//! one that kernels refuse and the next opening for changes finishes.

use crate::xfs::journal::crash::Cut;
use crate::xfs::journal::tree::{Tree, tree};
use crate::xfs::judged;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::testing::recorder::{Recorder, Recording};
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_block::{Sector, read_exact_at};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, rounds};
use undercroft_xfs::Volume;
use undercroft_xfs::maintain::{self, ShrinkOptions, ShrinkTarget};
use undercroft_xfs::recovery::recover;
use undercroft_xfs::volume::LiveOptions;

/// Looks at the volumes that crashes left.
pub struct Judge {
    before: Tree,
    /// Blocks of the volume before and afterwards.
    blocks: [u64; 2],
    to: u64,
    /// Every how many cuts the kernel mounts one, and every how many the shrink goes on.
    every: [u32; 2],
    /// Cuts that left a volume which kernels mount.
    pub seen: u32,
    /// Cuts that left one which they refuse.
    pub guarded: u32,
}

impl Judge {
    /// Shrinks a volume to at most `to` bytes, and records that.
    pub fn record(device: Arc<dyn BlockDevice>, to: u64, every: [u32; 2]) -> (Self, Recording) {
        let open = |device: &Arc<dyn BlockDevice>| Volume::open(Arc::clone(device)).unwrap();
        let old = open(&device);
        let (before, blocks) = (contents(&old), old.superblock().blocks);
        drop(old);
        let recorder = Arc::new(Recorder::with_contents(device).unwrap());
        let recorded: Arc<dyn BlockDevice> = Arc::clone(&recorder) as _;
        shrink(&recorded, to);
        let after = open(&recorded);
        same(&contents(&after), &before, "shrunk");
        let blocks = [blocks, after.superblock().blocks];
        assert!(blocks[1] < blocks[0] && blocks[1] <= to >> after.geometry().block_log);
        let judge = Self { before, blocks, to, every, seen: 0, guarded: 0 };
        (judge, recorder.recording().unwrap())
    }

    /// The kernel does not recover from blocks of metadata that were torn by sectors.
    pub fn look(&mut self, cut: &Cut, by_kernel: bool) {
        let what = &cut.what;
        let volume = Volume::open(Arc::clone(&cut.disk));
        let volume = volume.unwrap_or_else(|error| panic!("{what}: {error}"));
        let blocks = volume.superblock().blocks;
        let full = blocks.is_multiple_of(u64::from(volume.superblock().ag_blocks));
        assert!(self.blocks.contains(&blocks) || full, "{what}: {blocks} blocks");
        same(&contents(&volume), &self.before, what);
        drop(volume);
        if !is_guarded(&cut.disk) {
            self.seen += 1;
            let [mounts, goes_on] = self.every.map(|every| self.seen.is_multiple_of(every));
            if mounts && by_kernel {
                self.mount(cut);
            }
            if goes_on {
                self.again(cut);
                self.opened(cut);
            }
            return;
        }
        self.guarded += 1;
        // Each in turn in a check, so that every way and every moment has its turn; all of them in a
        // soak.
        let guarded = self.guarded;
        let turn = |of: u32| rounds(guarded % 4 == of, true);
        if turn(0) {
            self.repair(cut);
        }
        if turn(1) {
            self.again(cut);
        }
        if turn(2) {
            self.give_up(cut);
        }
        if turn(3) {
            self.opened(cut);
        }
    }

    /// What opens it for changes finishes what was cut, and so does a replay.
    fn opened(&mut self, cut: &Cut) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        cut.save(&image);
        Volume::open_live(device(&image), &LiveOptions::default()).unwrap().close().unwrap();
        self.sound(&image, &format!("{}, opened", cut.what));
        cut.save(&image);
        recover(&device(&image), &mut |_| {}).unwrap();
        self.sound(&image, &format!("{}, replayed", cut.what));
    }

    /// The kernel replays it, and finds all files.
    fn mount(&mut self, cut: &Cut) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        cut.save(&image);
        LoopMount::new(&image, Access::ReadWrite, &[]).unwrap().unmount().unwrap();
        // It leaves copies of the superblock old, which an opening for change writes.
        Volume::open_live(device(&image), &LiveOptions::default()).unwrap().close().unwrap();
        self.sound(&image, &format!("{}, mounted", cut.what));
    }

    /// `xfs_repair` makes a sound volume of it, with all files.
    fn repair(&mut self, cut: &Cut) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        cut.save(&image);
        repair(&image, &cut.what);
        self.sound(&image, &format!("{}, repaired", cut.what));
    }

    /// The same shrink again ends as the first.
    fn again(&mut self, cut: &Cut) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        cut.save(&image);
        shrink(&device(&image), self.to);
        self.sound(&image, &cut.what);
        let blocks = Volume::open(device(&image)).unwrap().superblock().blocks;
        assert_eq!(blocks, self.blocks[1], "{}", cut.what);
    }

    /// Given up, it is sound, has its files, and its size unless all copies have the new one.
    fn give_up(&mut self, cut: &Cut) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        cut.save(&image);
        let copies = copies_of(&image, self.blocks[0]);
        assert!(maintain::abandon_shrink(&device(&image)).unwrap().was_cut);
        self.sound(&image, &format!("{}, given up", cut.what));
        let blocks = Volume::open(device(&image)).unwrap().superblock().blocks;
        assert_eq!(blocks == self.blocks[0], copies, "{}: {blocks} blocks", cut.what);
    }

    fn sound(&mut self, image: &Path, what: &str) {
        judged::sound(image, what);
        same(&contents(&Volume::open(device(image)).unwrap()), &self.before, what);
    }
}

/// Whether kernels refuse a volume.
fn is_guarded(device: &Arc<dyn BlockDevice>) -> bool {
    let mut bytes = [0; 512];
    read_exact_at(device.as_ref(), Sector(0), &mut bytes).unwrap();
    bytes[126] != 0
}

fn device(image: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, false).unwrap())
}

fn shrink(device: &Arc<dyn BlockDevice>, to: u64) {
    let options = ShrinkOptions { target: ShrinkTarget::Bytes(to), keep_inode_numbers: false };
    maintain::shrink(device, options, &mut |_, _| {}).unwrap();
}

fn repair(image: &Path, what: &str) {
    let xfsprogs = Xfsprogs::newest().unwrap();
    let repair = xfsprogs.tool("xfs_repair").unwrap();
    let done = Command::new(repair).arg(image).output().unwrap();
    assert!(done.status.success(), "{what}: {done:?}");
}

/// The tree without what moves may change: numbers of inodes, and of blocks, for a file in more pieces
/// has more blocks of its mapping tree. Names of one inode have one number.
fn contents(volume: &Volume) -> Tree {
    let mut numbers = BTreeMap::new();
    let found = tree(volume).unwrap().into_iter();
    let told = found.map(|(path, text)| {
        let (number, rest) = text.split_once(' ').unwrap();
        let next = numbers.len();
        let number = *numbers.entry(number.to_owned()).or_insert(next);
        let (front, counted) = rest.split_once(" blocks ").unwrap();
        let (_, back) = counted.split_once(' ').unwrap();
        (path, format!("{number} {front} {back}"))
    });
    told.collect()
}

/// Names the first file that differs.
fn same(found: &Tree, expected: &Tree, what: &str) {
    let paths = found.keys().chain(expected.keys());
    if let Some(path) = paths.into_iter().find(|path| found.get(*path) != expected.get(*path)) {
        let (found, expected) = (found.get(path), expected.get(path));
        let path = String::from_utf8_lossy(path);
        panic!("{what}: {path} is\n{found:?} and not\n{expected:?}");
    }
}

/// Whether one of the first copies of the superblock has this number of blocks.
fn copies_of(image: &Path, blocks: u64) -> bool {
    let file = device(image);
    let mut bytes = [0; 512];
    read_exact_at(file.as_ref(), Sector(0), &mut bytes).unwrap();
    let word = |at: usize| u64::from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()));
    let (group_sectors, groups) = (word(84) * word(4) / 512, word(88));
    (1..groups).any(|ag| {
        read_exact_at(file.as_ref(), Sector(ag * group_sectors), &mut bytes).unwrap();
        u64::from_be_bytes(bytes[8..16].try_into().unwrap()) == blocks
    })
}
