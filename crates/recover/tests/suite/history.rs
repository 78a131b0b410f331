//! The history of a volume under the kernel's XFS, or under our engine as well, with all contents that were
//! ever written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use undercroft_fs::OpenOptions;
use undercroft_judges::Xfsprogs;
use undercroft_judges::mount::{Access, LoopMount};
use undercroft_judges::random::Random;

/// Length of the volumes: the shortest that is made.
const BYTES: u64 = 320 << 20;

/// Lengths of files: empty, inside of a block, some blocks, some extents.
const SIZES: [usize; 7] = [0, 10, 3_000, 4_096, 40_000, 300_000, 2_000_000];

/// A volume whose files came and went.
pub(crate) struct History {
    pub(crate) image: PathBuf,
    random: Random,
    /// Trees of new files that were made.
    fills: u64,
    /// Contents by path, from the root: all that a file there ever was.
    pub(crate) contents: BTreeMap<String, BTreeSet<[u8; 32]>>,
    /// Files that are there.
    pub(crate) present: BTreeSet<String>,
    /// Files that were removed.
    pub(crate) removed: BTreeSet<String>,
}

impl History {
    /// A new volume with some directories of files, which went to their places.
    pub(crate) fn begin(home: &Path, seed: u64, options: &[&str]) -> Self {
        let image = home.join(format!("image-{seed}"));
        Xfsprogs::newest().unwrap().mkfs(&image, BYTES, options).unwrap();
        let mut history = Self {
            image,
            random: Random::new(seed),
            fills: 0,
            contents: BTreeMap::new(),
            present: BTreeSet::new(),
            removed: BTreeSet::new(),
        };
        let mount = history.mount();
        history.fill(&mount, "old", 24, 12);
        mount.unmount().unwrap();
        history
    }

    /// The paths that ever had a content.
    pub(crate) fn with_content(&self, digest: &[u8; 32]) -> Vec<&String> {
        let paths = self.contents.iter().filter(|(_, contents)| contents.contains(digest));
        paths.map(|(path, _)| path).collect()
    }

    pub(crate) fn mount(&self) -> LoopMount {
        LoopMount::new(&self.image, Access::ReadWrite, &[]).unwrap()
    }

    /// Overwrites the journal with zeroes, as if it had gone round.
    pub(crate) fn forget_journal(&self) {
        let tools = Xfsprogs::newest().unwrap();
        let mut repair = std::process::Command::new(tools.tool("xfs_repair").unwrap());
        let done = repair.arg("-L").arg(&self.image).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// Writes `bytes` past the cache to new files, and removes each at once.
    pub(crate) fn overwrite_in_passing(&mut self, mount: &LoopMount, bytes: usize) {
        let bytes_of_file = 1 << 20;
        let mut space = vec![0xee; bytes_of_file + 4096];
        let start = space.as_ptr().align_offset(4096);
        let aligned = &mut space[start..start + bytes_of_file];
        let digest = Sha256::digest(&*aligned).into();
        for number in 0..bytes / bytes_of_file {
            let name = format!("passing-{number}");
            let path = mount.join(&name);
            self.contents.entry(name).or_default().insert(digest);
            let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
            let mut options = fs::OpenOptions::new();
            let file =
                options.write(true).create_new(true).custom_flags(direct).open(&path).unwrap();
            file.write_all_at(aligned, 0).unwrap();
            drop(file);
            fs::remove_file(path).unwrap();
        }
    }

    /// Makes `directories` directories, nested in part, with `files` files each.
    pub(crate) fn fill(&mut self, mount: &LoopMount, top: &str, directories: u64, files: u64) {
        let mut made = vec![top.to_owned()];
        fs::create_dir_all(mount.join(top)).unwrap();
        for number in 0..directories {
            let above = made[self.random.below(made.len() as u64) as usize].clone();
            let directory = format!("{above}/directory-{number}");
            fs::create_dir(mount.join(&directory)).unwrap();
            for file in 0..files {
                self.write(mount, &format!("{directory}/file-{file}-of-{number}"));
            }
            made.push(directory);
        }
    }

    /// Writes a file, in one piece or with holes.
    fn write(&mut self, mount: &LoopMount, path: &str) {
        let len = SIZES[self.random.below(SIZES.len() as u64) as usize];
        let mut bytes = vec![0; len];
        let is_sparse = self.random.one_in(5);
        for (index, chunk) in bytes.chunks_mut(8_192).enumerate() {
            if !is_sparse || index % 3 == 0 {
                let word = self.random.bits().to_le_bytes();
                let pattern: [u8; 256] = std::array::from_fn(|at| word[at % 8] ^ at as u8);
                chunk.chunks_mut(256).for_each(|part| part.copy_from_slice(&pattern[..part.len()]));
            }
        }
        let file = fs::File::create(mount.join(path)).unwrap();
        file.set_len(len as u64).unwrap();
        for (index, chunk) in bytes.chunks(8_192).enumerate() {
            if !is_sparse || index % 3 == 0 {
                file.write_all_at(chunk, index as u64 * 8_192).unwrap();
            }
        }
        let digest = Sha256::digest(&bytes).into();
        self.contents.entry(path.to_owned()).or_default().insert(digest);
        self.present.insert(path.to_owned());
        self.removed.remove(path);
    }

    /// Removes one of `times` directories below `top`, with all that is in them.
    pub(crate) fn remove(&mut self, mount: &LoopMount, top: &str, times: u64) {
        for directory in self.choose(top, times) {
            fs::remove_dir_all(mount.join(&directory)).unwrap();
        }
    }

    /// The same by our engine, while no kernel has the volume.
    pub(crate) fn remove_by_engine(&mut self, top: &str, times: u64) {
        let volume = OpenOptions::writable().open_image(&self.image).unwrap();
        for directory in self.choose(top, times) {
            volume.remove_dir_all(&directory).unwrap();
        }
        volume.close().unwrap();
    }

    /// Chooses directories to be removed, each after those in it that go before; all that is in them counts
    /// as removed.
    fn choose(&mut self, top: &str, times: u64) -> Vec<String> {
        let mut directories: Vec<_> = self
            .present
            .iter()
            .filter(|path| path.starts_with(top))
            .map(|path| parent(path))
            .collect();
        directories.dedup();
        let mut chosen = Vec::new();
        for directory in directories {
            if !self.random.one_in(times) {
                continue;
            }
            let below = format!("{directory}/");
            let gone: Vec<_> =
                self.present.iter().filter(|path| path.starts_with(&below)).cloned().collect();
            if gone.is_empty() {
                continue;
            }
            for path in gone {
                self.present.remove(&path);
                self.removed.insert(path);
            }
            chosen.push(directory);
        }
        chosen
    }

    /// Writes new files, of which some are removed again, until some are there.
    pub(crate) fn use_again(&mut self, mount: &LoopMount, rounds: u64) {
        for _ in 0..rounds {
            self.fills += 1;
            let top = format!("new-{}", self.fills);
            self.fill(mount, &top, 4, 8);
            if self.random.one_in(2) {
                self.remove(mount, &top, 2);
            }
            if self.random.one_in(3) {
                make_durable(mount);
            }
        }
    }
}

fn parent(path: &str) -> String {
    path.rsplit_once('/').map_or(String::new(), |(directory, _)| directory.to_owned())
}

/// Makes everything durable.
pub(crate) fn make_durable(mount: &LoopMount) {
    fs::File::open(mount.path()).unwrap().sync_all().unwrap();
}
