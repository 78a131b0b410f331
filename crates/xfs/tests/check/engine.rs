//! Random histories of operations on the engine in bulk mode, judged by our own check and by the
//! newest `xfs_repair -n`.
//!
//! Builds of images only ever add; here extents are punched out again, so that trees shrink, free
//! extents merge and mapping trees turn back into lists.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::Xfsprogs;
use undercroft_judges::random::Random;
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::bmap;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, DataPlacement, NewInode};
use undercroft_xfs::units::{FileBlock, InodeNumber};
use uuid::Uuid;

fn new(kind: FileType) -> NewInode<'static> {
    NewInode { uid: 1, gid: 2, ..NewInode::new(kind, 0o755) }
}

/// A volume under test and its expected content.
struct History {
    volume: Volume,
    placement: DataPlacement,
    random: Random,
    directories: Vec<InodeNumber>,
    files: Vec<InodeNumber>,
    names: u64,
}

impl History {
    fn start(image: &Path, options: &MkfsOptions, seed: u64) -> Self {
        let file = std::fs::File::create(image).unwrap();
        file.set_len(options.size).unwrap();
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
        let plan = mkfs::plan(options).unwrap();
        let volume = mkfs::begin(&device, plan, &new(FileType::Directory)).unwrap();
        let root = volume.geometry().root_inode;
        let random = Random::new(seed);
        let placement = DataPlacement::new(volume.geometry());
        Self { volume, placement, random, directories: vec![root], files: Vec::new(), names: 0 }
    }

    fn pick(random: &mut Random, from: &[InodeNumber]) -> InodeNumber {
        from[random.below(from.len() as u64) as usize]
    }

    fn create(&mut self, kind: FileType) {
        self.names += 1;
        let name = format!("{}-{}", "n".repeat(self.random.below(60) as usize), self.names);
        let parent = Self::pick(&mut self.random, &self.directories);
        let value = vec![b'v'; self.random.below(5000) as usize];
        let with_attributes = self.random.one_in(8);
        let ranges = self.ranges();
        let mut trans = self.volume.begin().unwrap();
        let mut parent = self.volume.lock_inode(parent).unwrap();
        let mut inode = ops::create(&mut trans, &mut parent, name.as_bytes(), &new(kind)).unwrap();
        if with_attributes {
            let attributes = [(&b"user.large"[..], &value[..]), (b"security.x", b"label")];
            ops::set_attributes(&mut trans, &mut inode, attributes).unwrap();
        }
        if kind == FileType::Regular {
            let size = ranges.last().map_or(0, |range: &Range<u64>| range.end);
            ops::allocate_file(&mut trans, &mut inode, size, ranges, &mut self.placement).unwrap();
        }
        let number = inode.number;
        trans.commit(&mut [&mut parent, &mut inode]).unwrap();
        match kind {
            FileType::Directory => self.directories.push(number),
            _ => self.files.push(number),
        }
    }

    /// Data ranges of a new file: most often one, now and then very many.
    fn ranges(&mut self) -> Vec<Range<u64>> {
        let count = if self.random.below(40) == 0 { self.random.below(600) } else { 1 };
        let mut at = 0;
        (0..count)
            .map(|_| {
                at += self.random.below(200_000);
                let start = at;
                at += 1 + self.random.below(if count > 1 { 9000 } else { 300_000 });
                start..at
            })
            .collect()
    }

    fn link(&mut self) {
        let target = Self::pick(&mut self.random, &self.files);
        let parent = Self::pick(&mut self.random, &self.directories);
        self.names += 1;
        let name = format!("link-{}", self.names);
        let mut trans = self.volume.begin().unwrap();
        let mut parent = self.volume.lock_inode(parent).unwrap();
        let mut inode = self.volume.lock_inode(target).unwrap();
        ops::add_link(&mut trans, &mut parent, name.as_bytes(), &mut inode).unwrap();
        trans.commit(&mut [&mut parent, &mut inode]).unwrap();
    }

    /// Punches a range of blocks out of a file.
    fn punch(&mut self) {
        let file = Self::pick(&mut self.random, &self.files);
        let mut inode = self.volume.lock_inode(file).unwrap();
        let end = bmap::extents(&self.volume, &inode, ForkKind::Data).unwrap().end().0;
        let from = self.random.below(end + 1);
        let to = from + 1 + self.random.below(end + 1);
        loop {
            let mut trans = self.volume.begin().unwrap();
            let (from, to) = (FileBlock(from), FileBlock(to));
            let more = bmap::remove(&mut trans, &mut inode, ForkKind::Data, from, to).unwrap();
            trans.commit(&mut [&mut inode]).unwrap();
            if !more {
                break;
            }
        }
    }

    fn run(&mut self, steps: u32) {
        for _ in 0..steps {
            match self.random.below(20) {
                0 => self.create(FileType::Directory),
                1..=9 => self.create(FileType::Regular),
                10 | 11 if !self.files.is_empty() => self.link(),
                12.. if !self.files.is_empty() => self.punch(),
                _ => {}
            }
        }
    }
}

/// Runs a history on a fresh volume and has it judged.
fn judged(options: &MkfsOptions, seed: u64, steps: u32) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("engine.img");
    let mut history = History::start(&image, options, seed);
    history.run(steps);
    mkfs::finish(&history.volume, false).unwrap();
    drop(history);
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, true).unwrap());
    let mut findings = Vec::new();
    let report =
        check(device, &CheckOptions::default(), &mut |finding| findings.push(finding)).unwrap();
    let first: Vec<String> = findings.iter().take(10).map(|found| format!("{found:?}")).collect();
    assert!(report.is_clean(), "seed {seed}: {report:?}\n{}", first.join("\n"));
    if let Err(complaint) = Xfsprogs::newest().unwrap().repair_check(&image) {
        panic!("seed {seed}: {complaint}");
    }
}

fn options(size: u64, block_size: u32) -> MkfsOptions {
    MkfsOptions { block_size, ..MkfsOptions::new(size, Uuid::from_u128(0x5eed)) }
}

#[test]
fn histories_on_four_kibibyte_blocks() {
    for seed in 0..6 {
        judged(&options(1 << 30, 4096), seed, 3000);
    }
}

#[test]
fn histories_on_one_kibibyte_blocks() {
    for seed in 10..14 {
        judged(&options(1 << 30, 1024), seed, 3000);
    }
}

#[test]
fn histories_on_large_blocks_and_many_groups() {
    for seed in 20..23 {
        let many = MkfsOptions { ag_count: Some(11), ..options(2 << 30, 16384) };
        judged(&many, seed, 2000);
    }
    judged(&options(4 << 30, 65536), 30, 1500);
}

/// Threads that fill directories of their own meet in groups, trees and shared inode clusters.
#[test]
fn threads_share_a_volume() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("threads.img");
    let options = MkfsOptions { ag_count: Some(3), ..options(1 << 30, 4096) };
    let mut history = History::start(&image, &options, 1);
    for _ in 0..4 {
        history.create(FileType::Directory);
    }
    let (volume, homes) = (&history.volume, &history.directories[1..]);
    std::thread::scope(|scope| {
        for home in homes {
            scope.spawn(move || {
                let mut placement = DataPlacement::new(volume.geometry());
                for number in 0..1500_u32 {
                    let name = format!("file-{number}");
                    let mut trans = volume.begin().unwrap();
                    let mut parent = volume.lock_inode(*home).unwrap();
                    let mut inode = ops::create(
                        &mut trans,
                        &mut parent,
                        name.as_bytes(),
                        &new(FileType::Regular),
                    )
                    .unwrap();
                    let size = u64::from(number) * 37 % 60_000;
                    let data = std::iter::once(0..size);
                    ops::allocate_file(&mut trans, &mut inode, size, data, &mut placement).unwrap();
                    trans.commit(&mut [&mut parent, &mut inode]).unwrap();
                }
            });
        }
    });
    mkfs::finish(&history.volume, false).unwrap();
    drop(history);
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, true).unwrap());
    let report = check(device, &CheckOptions::default(), &mut |finding| {
        panic!("{finding:?}");
    })
    .unwrap();
    assert!(report.is_clean(), "{report:?}");
    // The root, the two realtime files and the homes beside the files.
    assert_eq!(report.inodes, 4 * 1500 + 4 + 3);
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
}
