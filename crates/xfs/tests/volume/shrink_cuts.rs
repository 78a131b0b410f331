//! Crashes in the middle of a shrink: a sound volume of the old size or the new one, or one that
//! kernels refuse and the next shrink finishes.

use crate::crash::Cut;
use crate::judged;
use crate::shrink::{MIB, device, run_mounted};
use crate::tree::{Tree, tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::testing::recorder::{Recorder, Unflushed};
use undercroft_block::{BlockDevice, MemoryDevice, Sector, read_exact_at, write_all_at};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel, rounds};
use undercroft_xfs::Volume;
use undercroft_xfs::maintain::{self, ShrinkOptions, ShrinkTarget};
use undercroft_xfs::volume::LiveOptions;

/// Every how many cuts the kernel and `xfs_repair` judge one.
const JUDGED: u32 = 20;

/// Files of the first group behind the new end.
const FILES: &str = "for i in $(seq 12); do : > f-$i; done; : > b; fallocate -l 80M b; \
                     for i in $(seq 12); do head -c $((i * 9000)) /dev/urandom > f-$i; done; \
                     cp --reflink=always f-12 f-1; sync; rm b";

/// Inodes of all kinds in all groups.
const INODES: &str = "for d in $(seq 12); do mkdir -p d$d/deeper; \
                      for i in $(seq $((d * 2))); do echo $d $i > d$d/file-$i; done; \
                      ln -s $(head -c $((d * 70)) /dev/zero | tr '\\0' s) d$d/link; \
                      ln d$d/file-1 other-$d; mkfifo d$d/deeper/fifo; done; \
                      for d in $(seq 12); do ln d5/file-2 d$d/deeper/same; done; \
                      for i in $(seq 150); do echo > d6/a-name-with-a-long-tail-$i; done; \
                      setfattr -n user.big -v $(head -c 9000 /dev/zero | tr '\\0' x) d4/file-3; \
                      cp --reflink=always d7/file-3 d8/copy; sync";

/// A format, by arguments of `mkfs.xfs`.
type Format = &'static [&'static str];

/// One whose journal lies in what goes.
const POINTERS: Format = &["-n", "parent=1"];

/// One without reverse mappings, whose journal does not move.
const SCANNED: Format = &["-n", "parent=0", "-m", "rmapbt=0", "-l", "agnum=0"];

/// A volume by the kernel, in which a script was run.
fn volume(size: u64, script: &str, format: Format) -> Arc<dyn BlockDevice> {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let arguments = [&["-d", "agcount=6"], format].concat();
    Xfsprogs::newest().unwrap().mkfs(&image, size, &arguments).unwrap();
    run_mounted(&image, script, &["cuts"]);
    let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
    let file = device(&image);
    let mut bytes = vec![0; 1 << 20];
    for first in (0..size / 512).step_by(2048) {
        read_exact_at(file.as_ref(), Sector(first), &mut bytes).unwrap();
        if bytes.iter().any(|byte| *byte != 0) {
            write_all_at(memory.as_ref(), Sector(first), &bytes).unwrap();
        }
    }
    memory
}

fn shrink(device: &Arc<dyn BlockDevice>, to: u64) {
    let options = ShrinkOptions { target: ShrinkTarget::Bytes(to), keep_inode_numbers: false };
    maintain::shrink(device, options, &mut |_, _| {}).unwrap();
}

/// The tree without what moves may change: numbers of inodes. Names of one inode have one number.
fn contents(volume: &Volume) -> Tree {
    let mut numbers = BTreeMap::new();
    let found = tree(volume).unwrap().into_iter();
    let told = found.map(|(path, text)| {
        let (number, rest) = text.split_once(' ').unwrap();
        let next = numbers.len();
        let number = *numbers.entry(number.to_owned()).or_insert(next);
        (path, format!("{number} {rest}"))
    });
    told.collect()
}

/// Whether one of the first copies of the superblock has this number of blocks.
fn copies_of(image: &Path, blocks: u64) -> bool {
    let file = device(image);
    let mut bytes = [0; 512];
    read_exact_at(file.as_ref(), Sector(0), &mut bytes).unwrap();
    let group_sectors = u64::from(u32::from_be_bytes(bytes[84..88].try_into().unwrap())) * 8;
    let groups = u64::from(u32::from_be_bytes(bytes[88..92].try_into().unwrap()));
    (1..groups).any(|ag| {
        read_exact_at(file.as_ref(), Sector(ag * group_sectors), &mut bytes).unwrap();
        u64::from_be_bytes(bytes[8..16].try_into().unwrap()) == blocks
    })
}

/// Looks at the volume that a crash left.
struct Judge {
    before: Tree,
    blocks: [u64; 2],
    to: u64,
    seen: u32,
    guarded: u32,
}

impl Judge {
    /// The kernel does not recover from blocks of metadata that were torn by sectors.
    fn look(&mut self, cut: &Cut, by_kernel: bool) {
        let what = &cut.what;
        match Volume::open(Arc::clone(&cut.disk)) {
            Ok(volume) => {
                let blocks = volume.superblock().blocks;
                let full = blocks % u64::from(volume.superblock().ag_blocks) == 0;
                assert!(self.blocks.contains(&blocks) || full, "{what}: {blocks} blocks");
                assert!(contents(&volume) == self.before, "{what}: files differ");
                self.seen += 1;
                if self.seen.is_multiple_of(rounds(JUDGED, 1)) {
                    if by_kernel {
                        self.mount(cut);
                    }
                    self.again(cut);
                }
            }
            Err(error) => {
                assert!(error.to_string().contains("never finished"), "{what}: {error}");
                self.guarded += 1;
                // Each in turn in a check, so that every way and every moment has its turn; all of them
                // in a soak.
                let turn = |of: u32| rounds(self.guarded % 3 == of, true);
                if turn(0) {
                    self.repair(cut);
                }
                if turn(1) {
                    self.again(cut);
                }
                if turn(2) {
                    self.give_up(cut);
                }
            }
        }
    }

    /// The kernel replays it, and finds all files.
    fn mount(&self, cut: &Cut) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        cut.save(&image);
        LoopMount::new(&image, Access::ReadWrite, &[]).unwrap().unmount().unwrap();
        // It leaves copies of the superblock old, which an opening for change writes.
        Volume::open_live(device(&image), &LiveOptions::default()).unwrap().close().unwrap();
        let found = contents(&Volume::open(device(&image)).unwrap());
        assert!(found == self.before, "{}: files differ to the kernel", cut.what);
    }

    /// `xfs_repair` makes a sound volume of it, with all files.
    fn repair(&self, cut: &Cut) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        cut.save(&image);
        let xfsprogs = Xfsprogs::newest().unwrap();
        let repair = xfsprogs.tool("xfs_repair").unwrap();
        let done = Command::new(repair).arg(&image).output().unwrap();
        assert!(done.status.success(), "{}: {done:?}", cut.what);
        self.sound(&image, &format!("{}, repaired", cut.what));
    }

    /// The same shrink again ends as the first.
    fn again(&self, cut: &Cut) {
        let directory = tempfile::tempdir().unwrap();
        let (image, copy) = (directory.path().join("image"), directory.path().join("copy"));
        cut.save(&copy);
        image::copy(&copy, &image).unwrap();
        shrink(&device(&image), self.to);
        self.sound(&image, &cut.what);
        let blocks = Volume::open(device(&image)).unwrap().superblock().blocks;
        assert_eq!(blocks, self.blocks[1], "{}", cut.what);
    }

    /// Given up, it is sound, has its files, and its size unless all copies have the new one.
    fn give_up(&self, cut: &Cut) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        cut.save(&image);
        let copies = copies_of(&image, self.blocks[0]);
        maintain::abandon_shrink(&device(&image)).unwrap();
        self.sound(&image, &format!("{}, given up", cut.what));
        let blocks = Volume::open(device(&image)).unwrap().superblock().blocks;
        assert_eq!(blocks == self.blocks[0], copies, "{}: {blocks} blocks", cut.what);
    }

    fn sound(&self, image: &Path, what: &str) {
        judged::sound(image, what);
        let found = contents(&Volume::open(device(image)).unwrap());
        assert!(found == self.before, "{what}: files differ");
    }
}

#[test]
fn a_crash_while_shrinking() {
    if !kernel::available_or_report("xfs::volume::shrink_cuts::a_crash_while_shrinking") {
        return;
    }
    let judge = cut_everywhere(volume(120 * MIB, FILES, POINTERS), 50 * MIB);
    // Of the journal, and of the number of groups.
    assert!(judge.guarded > 6 && judge.seen > 100, "{} and {}", judge.guarded, judge.seen);
}

#[test]
fn a_crash_while_inodes_get_new_numbers() {
    if !kernel::available_or_report("xfs::volume::shrink_cuts::a_crash_while_inodes_move") {
        return;
    }
    for (format, guarded) in [(POINTERS, 6), (SCANNED, 3)] {
        let judge = cut_everywhere(volume(120 * MIB, INODES, format), 50 * MIB);
        assert!(
            judge.guarded > guarded && judge.seen > 100,
            "{} and {}",
            judge.guarded,
            judge.seen
        );
    }
}

/// Cuts a shrink at each write: in one of four ways in a check, in all of them in a soak and where the
/// volume is guarded.
fn cut_everywhere(device: Arc<dyn BlockDevice>, to: u64) -> Judge {
    let open = |device: &Arc<dyn BlockDevice>| Volume::open(Arc::clone(device)).unwrap();
    let old = open(&device);
    let (before, blocks) = (contents(&old), old.superblock().blocks);
    drop(old);
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let recorded: Arc<dyn BlockDevice> = Arc::clone(&recorder) as _;
    shrink(&recorded, to);
    let after = open(&recorded);
    assert!(contents(&after) == before);
    let blocks = [blocks, after.superblock().blocks];
    assert!(blocks[1] < blocks[0] && blocks[1] <= to / 4096);
    drop(after);
    let mut judge = Judge { before, blocks, to, seen: 0, guarded: 0 };
    let mut recording = recorder.recording().unwrap();
    while recording.step().is_some() {
        let position = recording.position() as u64;
        let torn = Unflushed::TornInUnits { seed: position, sectors: 8 };
        let by_sectors = Unflushed::Torn { seed: position };
        let mut ways = [Unflushed::Dropped, Unflushed::Kept, torn, by_sectors];
        ways.rotate_left(position as usize % 4);
        for unflushed in ways {
            let what = format!("event {position}, {unflushed:?}");
            let cut = Cut { disk: recording.disk(unflushed), durable: 0, what };
            let guarded = judge.guarded;
            judge.look(&cut, !matches!(unflushed, Unflushed::Torn { .. }));
            if judge.guarded == guarded && rounds(true, false) {
                break;
            }
        }
    }
    judge
}
