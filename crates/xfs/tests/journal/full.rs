//! A volume without space: what needs some is refused and changes nothing, what frees some works,
//! and at the end all of it is free again.

use std::path::Path;
use std::sync::Arc;
use undercroft_judges::random::Random;
use undercroft_judges::{Xfsprogs, rounds};
use undercroft_testkit::xfs::journal::tree::tree;
use undercroft_testkit::xfs::journal::work::open;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::ops::Position;
use undercroft_xfs::ops::SetMode;
use undercroft_xfs::ops::{self, CloneRange, Name, NewInode, RenameMode};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, Volume};

const NOW: Timestamp = Timestamp { seconds: 7, nanoseconds: 0 };

const FORMATS: [&[&str]; 5] = [
    &[],
    &["-b", "size=1024", "-n", "size=4096"],
    &["-m", "rmapbt=0,reflink=0"],
    &["-m", "reflink=0,rmapbt=0,finobt=0,inobtcount=0", "-i", "nrext64=0,sparse=0"],
    &["-n", "parent=1", "-b", "size=1024"],
];

/// Whether there was space; other errors end the test.
fn had_space<T>(result: Result<T, Error>) -> bool {
    match result {
        Ok(_) => true,
        Err(Error::NoSpace { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

fn write(volume: &Arc<Volume>, file: InodeNumber, offset: u64, len: usize) -> bool {
    let bytes = Arc::new(vec![file.0 as u8 | 1; len]);
    had_space(OpenFile::open(volume, file).unwrap().write_direct(offset, &bytes, 0..len, NOW))
}

/// A tree with directories and attributes of all forms, and names in it.
struct Filled {
    volume: Arc<Volume>,
    random: Random,
    directories: Vec<InodeNumber>,
    names: Vec<(InodeNumber, String)>,
    made: u64,
    /// A file of most of the volume.
    large: InodeNumber,
}

impl Filled {
    fn make(image: &Path, seed: u64) -> Self {
        let volume = Arc::new(open(image));
        let directories = vec![volume.geometry().root_inode];
        let (random, names) = (Random::new(seed), Vec::new());
        let large = directories[0];
        let mut filled = Self { volume, random, directories, names, made: 0, large };
        for names in [0, 3, 3, 40, 40, 300, 600] {
            let root = filled.directories[0];
            let directory = filled.create(root, FileType::Directory).unwrap();
            filled.directories.push(directory);
            for _ in 0..names {
                filled.create(directory, FileType::Regular);
            }
        }
        for _ in 0..200 {
            filled.set_attribute();
        }
        filled.fill();
        filled
    }

    /// Takes all space, in smaller and smaller pieces. Files of many extents and shared blocks are
    /// among what takes it.
    fn fill(&mut self) {
        let root = self.directories[0];
        let files: Vec<_> = (0..4).filter_map(|_| self.create(root, FileType::Regular)).collect();
        let block = self.volume.geometry().block_size();
        for number in 0..400 {
            for file in &files {
                write(&self.volume, *file, 2 * number * block as u64, block);
            }
        }
        if self.volume.geometry().features.reflink() {
            let range = CloneRange { source: 0, target: 0, len: 300 * block as u64 };
            let [source, target] = [0, 1].map(|file| self.open(files[file]));
            had_space(target.clone_range(&source, &range, NOW));
        }
        self.large = files[3];
        for len in [8 << 20, 256 << 10, 16 << 10, block] {
            let mut offset = self.volume.inode(self.large).unwrap().read().core.size;
            while write(&self.volume, self.large, offset, len) {
                offset += len as u64;
            }
        }
        while let Some(directory) = self.create(root, FileType::Directory) {
            self.directories.push(directory);
        }
        while self.create(root, FileType::Regular).is_some() {}
    }

    fn open(&self, number: InodeNumber) -> OpenFile {
        OpenFile::open(&self.volume, number).unwrap()
    }

    fn name(&mut self) -> String {
        self.made += 1;
        format!("{}-{}", "n".repeat(self.random.below(200) as usize), self.made)
    }

    fn create(&mut self, parent: InodeNumber, kind: FileType) -> Option<InodeNumber> {
        let name = self.name();
        match ops::make(&self.volume, parent, name.as_bytes(), &NewInode::new(kind, 0o755)) {
            Ok(number) => {
                if kind != FileType::Directory {
                    self.names.push((parent, name));
                }
                Some(number)
            }
            Err(Error::NoSpace { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn pick(&mut self) -> usize {
        self.random.below(self.names.len() as u64) as usize
    }

    fn number_of(&self, at: usize) -> InodeNumber {
        let (parent, name) = &self.names[at];
        let parent = self.volume.inode(*parent).unwrap();
        ops::lookup(&self.volume, &parent.read(), name.as_bytes()).unwrap().unwrap()
    }

    fn set_attribute(&mut self) -> bool {
        let at = self.pick();
        let name = format!("user.{}", self.random.below(5));
        let most = if self.random.one_in(3) { 5000 } else { 90 };
        let value = vec![b'v'; self.random.below(most) as usize];
        let attribute = (name.as_bytes(), &value[..]);
        let number = self.number_of(at);
        had_space(ops::set_xattr(&self.volume, number, attribute, SetMode::Either, NOW))
    }

    /// Moves a name to another one, perhaps over one; whether there was space.
    fn rename(&mut self) -> bool {
        let (from, over) = (self.pick(), self.pick());
        let mode = match self.random.below(3) {
            0 => RenameMode::Exchange,
            1 => RenameMode::Replace,
            _ => RenameMode::NoReplace,
        };
        let (parent, name) = self.names[from].clone();
        let target = if mode == RenameMode::NoReplace {
            let directory = self.random.below(self.directories.len() as u64) as usize;
            (self.directories[directory], self.name())
        } else {
            self.names[over].clone()
        };
        let (from_name, to_name) = (
            Name { parent, name: name.as_bytes() },
            Name { parent: target.0, name: target.1.as_bytes() },
        );
        if !had_space(ops::rename(&self.volume, from_name, to_name, mode, NOW)) {
            return false;
        }
        match mode {
            RenameMode::NoReplace => self.names[from] = target,
            RenameMode::Replace if from != over => drop(self.names.swap_remove(from)),
            _ => {}
        }
        true
    }

    /// Operations that may need space, while a little of it becomes free now and then: each is done
    /// as a whole, or the volume is as it was. Counts those refused and those done.
    fn change_without_space(&mut self) -> [u32; 2] {
        let mut counts = [0; 2];
        let mut before = tree(&self.volume).unwrap();
        for number in 0..rounds(40, 80) {
            let had = match self.random.below(3) {
                0 => self.set_attribute(),
                _ => self.rename(),
            };
            counts[usize::from(had)] += 1;
            if !had && number % 4 == 0 {
                let now = tree(&self.volume).unwrap();
                assert!(now == before, "what was refused left something");
            }
            if number % 10 == 9 {
                let file = self.open(self.large);
                let less = 150 * self.volume.geometry().block_size() as u64;
                file.truncate(file.size() - less, NOW).unwrap();
                // Until then the blocks may not be allocated.
                self.volume.sync().unwrap();
            }
            if had || number % 10 == 9 {
                before = tree(&self.volume).unwrap();
            }
        }
        counts
    }

    /// Removes everything below a directory; no step may ask for space.
    fn remove_all(&mut self, directory: InodeNumber) {
        let mut entries = Vec::new();
        let inode = self.volume.inode(directory).unwrap();
        ops::entries(&self.volume, &inode.read(), Position::START, |entry| {
            if entry.name != b"." && entry.name != b".." {
                entries.push((entry.name.to_vec(), entry.inode));
            }
            true
        })
        .unwrap();
        drop(inode);
        for (name, number) in entries {
            let inode = self.volume.inode(number).unwrap();
            let kind = inode.read().file_type();
            if kind == FileType::Directory {
                self.remove_all(number);
                ops::rmdir(&self.volume, directory, &name, NOW).unwrap();
                continue;
            }
            if self.random.one_in(3) {
                let file = self.open(number);
                file.truncate(self.random.below(file.size() + 1), NOW).unwrap();
            }
            if self.random.one_in(3) {
                let names = ops::attributes(&self.volume, &inode.read()).unwrap();
                for (name, _) in names {
                    ops::remove_xattr(&self.volume, number, &name, NOW).unwrap();
                }
            }
            drop(inode);
            ops::unlink(&self.volume, directory, &name, NOW).unwrap();
        }
    }
}

/// Formats with and without parent pointers, which new volumes have unless told otherwise.
const PARENTS: [&[&str]; 4] = [
    &["-n", "parent=1"],
    &["-n", "parent=0"],
    &["-n", "parent=0,size=4096", "-b", "size=1024"],
    &[
        "-m",
        "reflink=0,rmapbt=0,finobt=0,inobtcount=0",
        "-i",
        "nrext64=0,sparse=0",
        "-n",
        "parent=0",
    ],
];

/// A name that fits the blocks of its directory moves although nothing can be reserved; one that
/// does not is refused, and so is any where parent pointers might grow.
#[test]
fn names_that_need_no_block_move_on_a_full_volume() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("full.img");
    for (seed, format) in (0..).zip(PARENTS) {
        let has_parents = format.contains(&"parent=1");
        Xfsprogs::newest().unwrap().mkfs(&image, 64 << 20, format).unwrap();
        let filled = Filled::make(&image, seed);
        let volume = &filled.volume;
        let move_one = |from: (InodeNumber, &str), to: (InodeNumber, &str), mode| {
            let (from, to) = (
                Name { parent: from.0, name: from.1.as_bytes() },
                Name { parent: to.0, name: to.1.as_bytes() },
            );
            had_space(ops::rename(volume, from, to, mode, NOW))
        };
        let mut moved = 0;
        for (number, (parent, name)) in filled.names.iter().enumerate().step_by(9) {
            // As long as before, to where the old one is; over another; and to another place.
            let same = format!("{}Z", &name[..name.len() - 1]);
            let here = move_one((*parent, name), (*parent, &same), RenameMode::NoReplace);
            let name = if here { &same } else { name };
            let (other, other_name) = &filled.names[number + 1];
            let swapped = move_one((*parent, name), (*other, other_name), RenameMode::Exchange);
            assert_eq!(swapped, !has_parents, "{format:?}: {name} and {other_name}");
            moved += u32::from(here);
            assert!(!here || !has_parents, "{format:?}: {name}");
        }
        assert_eq!(moved > 0, !has_parents, "{format:?}");
        // Sooner or later a directory of long names needs a block.
        let others = filled.names.iter().enumerate().filter(|(number, _)| number % 9 == 4);
        let refused = others.filter(|(number, (parent, name))| {
            let long = format!("{number:0>255}");
            !move_one((*parent, name), (filled.directories[1], &long), RenameMode::NoReplace)
        });
        assert!(refused.count() > 0, "{format:?}");
        filled.volume.close().unwrap();
        Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
    }
}

#[test]
fn what_needs_no_space_works_without_and_what_does_is_refused_whole() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("full.img");
    let judge = |what: &str| {
        Xfsprogs::newest().unwrap().repair_check(&image).unwrap_or_else(|e| panic!("{what}: {e}"));
    };
    let free = || open(&image).superblock().free_blocks;
    for (seed, format) in (0..).zip(FORMATS) {
        Xfsprogs::newest().unwrap().mkfs(&image, 64 << 20, format).unwrap();
        let before = free();
        let mut filled = Filled::make(&image, seed);
        let [refused, done] = filled.change_without_space();
        println!("{format:?}: {refused} refused, {done} done");
        assert!(refused > 0 && done > 0, "{format:?}: {refused} refused, {done} done");
        filled.volume.close().unwrap();
        judge(&format!("{format:?}, full"));
        let device = Arc::clone(filled.volume.cache().device());
        filled.volume = Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap());
        let root = filled.directories[0];
        filled.remove_all(root);
        filled.volume.close().unwrap();
        drop(filled);
        judge(&format!("{format:?}, emptied"));
        assert!(free().abs_diff(before) < 64, "{format:?}: {} of {before} free", free());
    }
}
