//! A tree of files on a volume of the kernel's XFS, of which each piece of data can be told again; and
//! what damage leaves of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use undercroft_judges::Xfsprogs;
use undercroft_judges::mount::{Access, LoopMount};
use undercroft_judges::random::Random;

/// Length of the volumes: the shortest that is made.
pub(crate) const BYTES: u64 = 320 << 20;

/// Bytes of data that are told by their start: a block of most volumes.
const PIECE: usize = 4096;

/// What a piece begins with, before the number of the file and that of the piece.
const MARK: &[u8; 8] = b"A PIECE:";

/// A file of the tree.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) digest: [u8; 32],
    inode: u64,
    /// Inodes of the directories on its path, but for the root.
    above: Vec<u64>,
    number: u64,
    len: u64,
}

impl File {
    const fn pieces(&self) -> u64 {
        self.len.div_ceil(PIECE as u64)
    }
}

/// A volume with a tree on it.
pub(crate) struct Tree {
    pub(crate) image: PathBuf,
    pub(crate) files: BTreeMap<String, File>,
    inodes: BTreeMap<String, u64>,
    random: Random,
    /// Files name their parents.
    has_parents: bool,
    /// Of version 4: the first bytes and the inodes of all blocks of directories, which do not name them.
    old: Option<BTreeMap<u64, u64>>,
    /// The volume as it was.
    sound: Vec<u8>,
}

impl Tree {
    /// Makes a volume with some directories of files on it.
    pub(crate) fn new(home: &Path, seed: u64, options: &[&str]) -> Self {
        let image = home.join(format!("tree-{seed}"));
        let random = Random::new(seed);
        let (files, inodes) = (BTreeMap::new(), BTreeMap::new());
        let old = options.contains(&"crc=0").then(BTreeMap::new);
        let has_parents = old.is_none() && !options.contains(&"parent=0");
        let mut tree = Self { image, files, inodes, random, has_parents, old, sound: Vec::new() };
        let newest = Xfsprogs::newest().unwrap();
        if tree.old.is_some() {
            // No kernel mounts these: mkfs.xfs copies a directory.
            let stage = home.join(format!("stage-{seed}"));
            fs::create_dir(&stage).unwrap();
            tree.fill(&stage);
            let copied = [options, &["-p", stage.to_str().unwrap()]].concat();
            newest.mkfs(&tree.image, BYTES, &copied).unwrap();
            tree.sound = fs::read(&tree.image).unwrap();
            tree.take_numbers();
            tree.old = Some(tree.directory_blocks());
            return tree;
        }
        newest.mkfs(&tree.image, BYTES, options).unwrap();
        let mount = LoopMount::new(&tree.image, Access::ReadWrite, &[]).unwrap();
        tree.fill(mount.path());
        mount.unmount().unwrap();
        tree.sound = fs::read(&tree.image).unwrap();
        tree
    }

    /// Makes the files below a directory.
    fn fill(&mut self, at: &Path) {
        let mut directories = vec![String::new()];
        for number in 0..80 {
            let above = &directories[self.random.below(directories.len() as u64) as usize];
            let directory = format!("{above}directory-{number}/");
            fs::create_dir(at.join(&directory)).unwrap();
            let inode = fs::metadata(at.join(&directory)).unwrap().ino();
            self.inodes.insert(directory.clone(), inode);
            // Some directories have blocks of their own, some many.
            let files = if number % 9 == 0 { 150 } else { self.random.below(30) };
            for file in 0..files {
                self.write(at, &format!("{directory}file-{file}-of-directory-{number}"));
            }
            directories.push(directory);
        }
        self.fragment(at);
    }

    /// Puts the numbers of inodes on the volume in the place of those in the directory that was copied.
    fn take_numbers(&mut self) {
        let files = self.files.iter().map(|(path, file)| (path.as_str(), file.inode));
        let directories =
            self.inodes.iter().map(|(path, inode)| (path.trim_end_matches('/'), *inode));
        let all: Vec<_> = files.chain(directories).collect();
        let asked = all.chunks(500).flat_map(|part| {
            let paths = part.iter().map(|(path, _)| format!("ls -i /{path}"));
            let commands: Vec<String> = paths.collect();
            let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
            let answer = Xfsprogs::newest().unwrap().db(&self.image, &commands).unwrap();
            answer.lines().map(|line| line.trim().parse().unwrap()).collect::<Vec<u64>>()
        });
        let numbers: BTreeMap<u64, u64> = all.iter().map(|(_, inode)| *inode).zip(asked).collect();
        assert_eq!(numbers.len(), all.len());
        self.inodes.values_mut().for_each(|inode| *inode = numbers[inode]);
        for file in self.files.values_mut() {
            file.inode = numbers[&file.inode];
            file.above.iter_mut().for_each(|inode| *inode = numbers[inode]);
        }
    }

    /// Where the blocks of directories begin, with their inodes, by xfs_db.
    fn directory_blocks(&self) -> BTreeMap<u64, u64> {
        let newest = Xfsprogs::newest().unwrap();
        let root = u64::from_be_bytes(self.sound[56..64].try_into().unwrap());
        let mut blocks = BTreeMap::new();
        for inode in self.inodes.values().copied().chain([root]) {
            let go = format!("inode {inode}");
            for line in newest.db(&self.image, &[&go, "bmap -d"]).unwrap().lines() {
                // data offset 0 startblock 23 (0/23) count 1 flag 0
                let words: Vec<_> = line.split_whitespace().collect();
                let ["data", "offset", offset, "startblock", _, place, "count", count, ..] =
                    words[..]
                else {
                    continue;
                };
                let place = place.trim_matches(['(', ')']).split_once('/').unwrap();
                let number = |text: &str| text.parse::<u64>().unwrap();
                let start = number(place.0) * self.group() + (number(place.1) << self.sound[120]);
                // What is behind are hashes.
                if number(offset) < (32 << 30) >> self.sound[120] {
                    let all = (0..number(count)).map(|index| start + (index << self.sound[120]));
                    blocks.extend(all.map(|at| (at, inode)));
                }
            }
        }
        blocks
    }

    fn write(&mut self, at: &Path, path: &str) {
        const SIZES: [usize; 8] = [0, 10, 600, 4_096, 5_000, 20_000, 40_000, 300_000];
        let len = SIZES[self.random.below(SIZES.len() as u64) as usize];
        let number = self.files.len() as u64;
        let bytes = contents(number, len);
        fs::write(at.join(path), &bytes).unwrap();
        self.add(at, path, number, &bytes);
    }

    fn add(&mut self, at: &Path, path: &str, number: u64, bytes: &[u8]) {
        let above = path.match_indices('/').map(|(at, _)| self.inodes[&path[..=at]]).collect();
        let file = File {
            digest: Sha256::digest(bytes).into(),
            inode: fs::metadata(at.join(path)).unwrap().ino(),
            above,
            number,
            len: bytes.len() as u64,
        };
        self.files.insert(path.to_owned(), file);
    }

    /// Two files whose blocks alternate, so that their maps are trees.
    fn fragment(&mut self, home: &Path) {
        let names = ["in-pieces", "in-pieces-too"];
        let first = self.files.len() as u64;
        let contents = [contents(first, 1_600_000), contents(first + 1, 1_600_000)];
        let open = |name| fs::File::create(home.join(name)).unwrap();
        let files = names.map(open);
        for at in (0..contents[0].len()).step_by(PIECE) {
            for (file, bytes) in files.iter().zip(&contents) {
                let end = bytes.len().min(at + PIECE);
                file.write_all_at(&bytes[at..end], at as u64).unwrap();
                file.sync_data().unwrap();
            }
        }
        for (index, name) in names.into_iter().enumerate() {
            self.add(home, name, first + index as u64, &contents[index]);
        }
    }

    /// Damages the volume, and says which files can be put together from what is left: those whose own
    /// inode, those of whose directories, and all of whose data are there.
    pub(crate) fn damage(&mut self, hurt: impl FnOnce(&Path, &mut Random)) -> BTreeSet<String> {
        fs::write(&self.image, &self.sound).unwrap();
        hurt(&self.image, &mut self.random);
        let left = fs::read(&self.image).unwrap();
        // Where the volume is a part of a disk, it is the end of it.
        let left = left[left.len().saturating_sub(self.sound.len())..].to_vec();
        let data = data(&left, &self.lens());
        let inodes = self.inodes(&left);
        // Without parent pointers all names are in directories, those of the first in the root.
        let gone = self.gone_names(&left);
        let root = u64::from_be_bytes(self.sound[56..64].try_into().unwrap());
        let has_names = |file: &File| {
            let mut above = file.above.iter().chain([&root]);
            self.has_parents || above.all(|inode| inodes.contains(inode) && !gone.contains(inode))
        };
        let is_left = |file: &File| {
            inodes.contains(&file.inode)
                && has_names(file)
                && file.above.iter().all(|inode| inodes.contains(inode))
                && data.get(&file.number).copied().unwrap_or(0) >= file.pieces()
        };
        let left = self.files.iter().filter(|(_, file)| is_left(file));
        left.map(|(path, _)| path.clone()).collect()
    }

    fn lens(&self) -> BTreeMap<u64, u64> {
        self.files.values().map(|file| (file.number, file.len)).collect()
    }

    /// Files of which all data are left, wherever their names are.
    pub(crate) fn with_data(&self) -> BTreeSet<String> {
        let data = data(&fs::read(&self.image).unwrap(), &self.lens());
        let has_data = |file: &File| data.get(&file.number).copied().unwrap_or(0) >= file.pieces();
        let left = self.files.iter().filter(|(_, file)| has_data(file));
        left.map(|(path, _)| path.clone()).collect()
    }

    /// Directories that lost a block of names.
    fn gone_names(&self, left: &[u8]) -> BTreeSet<u64> {
        if let Some(blocks) = &self.old {
            let len = 1 << self.sound[120];
            let part = |bytes: &[u8], at: u64| {
                bytes.get(at as usize..at as usize + len).map(<[_]>::to_vec)
            };
            let gone = blocks.iter().filter(|(at, _)| part(left, **at) != part(&self.sound, **at));
            return gone.map(|(_, inode)| *inode).collect();
        }
        let len = 1 << (self.sound[120] + self.sound[192]);
        let starts = (0..self.sound.len()).step_by(512);
        let is_names = |at: &usize| {
            [b"XDB3", b"XDD3"].iter().any(|magic| self.sound[*at..].starts_with(*magic))
        };
        let changed = |at: &usize| left.get(*at..*at + len) != self.sound.get(*at..*at + len);
        let gone = starts.filter(is_names).filter(changed);
        gone.map(|at| u64::from_be_bytes(self.sound[at + 40..at + 48].try_into().unwrap()))
            .collect()
    }

    /// Numbers of inodes that are as they were.
    fn inodes(&self, left: &[u8]) -> BTreeSet<u64> {
        let log = self.sound[122];
        let per_group = self.group() >> log;
        let number = |index: u64| {
            let (ag, in_group) = (index / per_group, index % per_group);
            ag << (self.sound[124] + self.sound[123]) | in_group
        };
        let pairs = self.sound.chunks_exact(1 << log).zip(left.chunks_exact(1 << log)).enumerate();
        let same = pairs.filter(|(_, (was, is))| was.starts_with(b"IN") && was == is);
        same.map(|(index, _)| number(index as u64)).collect()
    }

    /// The first byte of the root directory's inode.
    pub(crate) fn root(&self) -> u64 {
        let root = u64::from_be_bytes(self.sound[56..64].try_into().unwrap());
        root << self.sound[122]
    }

    /// Bytes of a group.
    pub(crate) fn group(&self) -> u64 {
        let blocks = u32::from_be_bytes(self.sound[84..88].try_into().unwrap());
        u64::from(blocks) << self.sound[120]
    }
}

/// The contents of a file: each piece says what it is.
fn contents(number: u64, len: usize) -> Vec<u8> {
    let starts = (0..len).step_by(PIECE).enumerate();
    starts.flat_map(|(index, start)| piece(number, index as u64, PIECE.min(len - start))).collect()
}

fn piece(number: u64, index: u64, len: usize) -> Vec<u8> {
    let mut piece = Vec::with_capacity(len + 24);
    for turn in (0..=u8::MAX).cycle().take(len.div_ceil(24)) {
        let turn = u64::from_le_bytes([turn; 8]);
        for word in [u64::from_le_bytes(*MARK), number, index] {
            piece.extend_from_slice(&(word ^ turn).to_le_bytes());
        }
    }
    piece.truncate(len);
    piece
}

/// Pieces of files that are left whole, by the number of the file.
fn data(image: &[u8], lens: &BTreeMap<u64, u64>) -> BTreeMap<u64, u64> {
    let mut found: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let starts = (0..image.len().saturating_sub(24)).step_by(1024);
    for at in starts.filter(|at| image[*at..].starts_with(MARK)) {
        let word = |place| u64::from_le_bytes(image[place..place + 8].try_into().unwrap());
        let (number, index) = (word(at + 8), word(at + 16));
        let Some(len) = lens.get(&number) else { continue };
        let start = index.saturating_mul(PIECE as u64);
        let own = piece(number, index, len.saturating_sub(start).min(PIECE as u64) as usize);
        if image[at..].starts_with(&own) {
            found.entry(number).or_default().insert(index);
        }
    }
    found.into_iter().map(|(number, pieces)| (number, pieces.len() as u64)).collect()
}
