//! Random trees for property tests: one seed, one tree.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, chownat, lsetxattr,
    makedev, mknodat, utimensat,
};

use crate::Error;

/// A small generator (SplitMix64, Steele, Lea and Flood 2014): a fixed sequence for each seed on
/// every machine.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// A number below `2^k` for a random `k` up to `bits`: small ones are as likely as large ones.
    pub fn magnitude(&mut self, bits: u32) -> u64 {
        let bound = 1_u64 << self.below(u64::from(bits) + 1);
        self.below(bound)
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// How a random tree is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of entries below the root.
    pub entries: usize,
    /// Sizes of files are below two to the power of this.
    pub size_bits: u32,
    /// Owners, devices and privileged attributes as well; needs root.
    pub privileged: bool,
}

impl Default for Options {
    fn default() -> Self {
        let privileged = rustix::process::geteuid().is_root();
        Self { entries: 200, size_bits: 20, privileged }
    }
}

/// Makes the tree of `seed` in the existing, empty directory `root`.
///
/// # Errors
/// The file system refuses something, such as attributes above its limit.
pub fn random_tree(root: &Path, seed: u64, options: &Options) -> Result<(), Error> {
    let mut maker = Maker {
        random: Random::new(seed),
        options,
        directories: vec![root.to_owned()],
        files: Vec::new(),
        made: vec![root.to_owned()],
    };
    for number in 0..options.entries {
        maker.entry(number)?;
    }
    // Times last: making an entry changes those of its directory.
    let Maker { mut random, made, .. } = maker;
    for path in &made {
        set_times(&mut random, path)?;
    }
    Ok(())
}

struct Maker<'a> {
    random: Random,
    options: &'a Options,
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    made: Vec<PathBuf>,
}

impl Maker<'_> {
    fn entry(&mut self, number: usize) -> Result<(), Error> {
        let path = self.fresh_path(number);
        let failed = || Error::io("cannot create", &path);
        match self.random.below(20) {
            0..=3 => {
                fs::create_dir(&path).map_err(failed())?;
                self.directories.push(path.clone());
            }
            4 | 5 => {
                let length = 1 + usize::try_from(self.random.below(1_023)).unwrap_or(0);
                symlink("t".repeat(length), &path).map_err(failed())?;
            }
            6 | 7 if !self.files.is_empty() => {
                let first = self.pick_file();
                fs::hard_link(first, &path).map_err(failed())?;
                // Its metadata is that of the first name.
                return Ok(());
            }
            8 => self.special(&path)?,
            _ => {
                self.contents(&path)?;
                self.files.push(path.clone());
            }
        }
        self.metadata(&path)?;
        self.made.push(path);
        Ok(())
    }

    /// A new name in one of the directories; the number makes it unique.
    fn fresh_path(&mut self, number: usize) -> PathBuf {
        let length = usize::try_from(self.random.magnitude(7)).unwrap_or(0);
        let letter = char::from(b'a' + u8::try_from(self.random.below(26)).unwrap_or(0));
        let name = format!("{number}{}", letter.to_string().repeat(length));
        // The last directory more often than the others: some grow large, some chains grow deep.
        let index = if self.random.one_in(2) {
            self.directories.len() - 1
        } else {
            usize::try_from(self.random.below(self.directories.len() as u64)).unwrap_or(0)
        };
        self.directories[index].join(name)
    }

    fn pick_file(&mut self) -> PathBuf {
        let index = self.random.below(self.files.len() as u64);
        self.files[usize::try_from(index).unwrap_or(0)].clone()
    }

    fn special(&mut self, path: &Path) -> Result<(), Error> {
        let kinds = if self.options.privileged { 4 } else { 2 };
        let (kind, device) = match self.random.below(kinds) {
            0 => (FileType::Fifo, 0),
            1 => (FileType::Socket, 0),
            other => {
                let major = u32::try_from(self.random.below(512)).unwrap_or(0);
                let minor = u32::try_from(self.random.below(1 << 18)).unwrap_or(0);
                let block = other == 2;
                let kind = if block { FileType::BlockDevice } else { FileType::CharacterDevice };
                (kind, makedev(major, minor))
            }
        };
        mknodat(CWD, path, kind, Mode::from_raw_mode(0o600), device)
            .map_err(Error::io("cannot create", path))
    }

    /// A file of random size with up to eight pieces of data, mostly one that fills it.
    fn contents(&mut self, path: &Path) -> Result<(), Error> {
        let file = File::create(path).map_err(Error::io("cannot create", path))?;
        let size = self.random.magnitude(self.options.size_bits);
        file.set_len(size).map_err(Error::io("cannot resize", path))?;
        if size == 0 {
            return Ok(());
        }
        let pieces = if self.random.one_in(4) { self.random.below(8) } else { 0 };
        let mut write = |start: u64, length: u64| {
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < length {
                bytes.extend(self.random.bits().to_le_bytes());
            }
            bytes.truncate(usize::try_from(length).unwrap_or(0));
            file.write_all_at(&bytes, start).map_err(Error::io("cannot write", path))
        };
        if pieces == 0 {
            return write(0, size);
        }
        let step = size / pieces + 1;
        (0..pieces).try_for_each(|piece| {
            let start = (piece * step).min(size);
            write(start, (step / 2).min(size - start))
        })
    }

    fn metadata(&mut self, path: &Path) -> Result<(), Error> {
        let kind = fs::symlink_metadata(path).map_err(Error::io("cannot stat", path))?.file_type();
        if self.options.privileged && self.random.one_in(2) {
            let uid = u32::try_from(self.random.magnitude(31)).unwrap_or(0);
            let gid = u32::try_from(self.random.magnitude(31)).unwrap_or(0);
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(Error::io("cannot set the owner of", path))?;
        }
        if kind.is_symlink() {
            return Ok(());
        }
        let mut mode = u32::try_from(self.random.below(0o10_000)).unwrap_or(0);
        if !self.options.privileged {
            // Its owner must be able to read it back.
            mode |= if kind.is_dir() { 0o700 } else { 0o600 };
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(Error::io("cannot set the mode of", path))?;
        // Only files and directories take attributes of users.
        if (kind.is_file() || kind.is_dir()) && self.random.one_in(3) {
            self.attributes(path)?;
        }
        Ok(())
    }

    /// Up to eight attributes that together fit into the smallest limit, one block of 4 KiB.
    fn attributes(&mut self, path: &Path) -> Result<(), Error> {
        for number in 0..=self.random.below(8) {
            let privileged = self.options.privileged && self.random.one_in(3);
            let space = if privileged { "trusted" } else { "user" };
            let length = usize::try_from(self.random.magnitude(8)).unwrap_or(0);
            let value = vec![self.random.bits() as u8; length];
            let name = format!("{space}.{number}-{}", "x".repeat(length / 4));
            lsetxattr(path, name.as_str(), &value, XattrFlags::empty())
                .map_err(Error::io("cannot set an attribute of", path))?;
        }
        Ok(())
    }
}

/// Sets times between 1901 and 2446, which every file system of today can hold. Not in the first
/// second: some keep its nanoseconds, some do not.
fn set_times(random: &mut Random, path: &Path) -> Result<(), Error> {
    let mut time = || Timespec {
        tv_sec: i64::try_from(random.magnitude(33)).unwrap_or(0) - (1 << 31) + 1,
        tv_nsec: i64::try_from(random.below(1_000_000_000)).unwrap_or(0),
    };
    let times = Timestamps { last_access: time(), last_modification: time() };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(Error::io("cannot set the times of", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Options as Compared, compare};

    #[test]
    fn a_seed_is_a_tree() {
        let trees = [7, 7, 8].map(|seed| {
            let directory = tempfile::tempdir().unwrap();
            random_tree(directory.path(), seed, &Options::default()).unwrap();
            directory
        });
        let compared = |other: usize| {
            compare(trees[0].path(), trees[other].path(), &Compared::default()).unwrap()
        };
        compared(1).assert_same();
        assert!(compared(1).entries > 150);
        assert!(!compared(2).same());
    }
}
