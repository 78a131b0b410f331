//! A tree written down, to be compared with another view of it later: the volume that our mount
//! showed and the kernel's mount of the same image cannot be there at a time.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::attributes::Reader;
use crate::{Error, sparse};

/// Blocks of this size are left out of the sum over the contents when they hold zeros: whether they
/// are stored is no property of the contents.
const BLOCK: usize = 4096;
static ZEROES: [u8; BLOCK] = [0; BLOCK];

/// One line for each entry: kind, mode, links, owner, size, times but for that of the last access,
/// number of the inode, target, sums over attributes and contents.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing(BTreeMap<PathBuf, String>);

impl Listing {
    /// The tree below `root`, with the root itself.
    ///
    /// # Errors
    /// Something cannot be read.
    pub fn of(root: &Path) -> Result<Self, Error> {
        let mut entries = BTreeMap::new();
        let mut attributes = Reader::new();
        let mut pending = vec![root.to_owned()];
        while let Some(path) = pending.pop() {
            let metadata = fs::symlink_metadata(&path).map_err(Error::io("cannot stat", &path))?;
            if metadata.is_dir() {
                for entry in fs::read_dir(&path).map_err(Error::io("cannot list", &path))? {
                    pending.push(entry.map_err(Error::io("cannot list", &path))?.path());
                }
            }
            let line = describe(&path, &metadata, &mut attributes)?;
            let below = path.strip_prefix(root).map_or_else(|_| path.clone(), Path::to_owned);
            entries.insert(below, line);
        }
        Ok(Self(entries))
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry, not even a root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Entries that are not the same in `other`, with both lines.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = Vec::new();
        for (path, line) in &self.0 {
            match other.0.get(path) {
                Some(same) if same == line => {}
                Some(others) => all.push(format!("{path:?}: {line} / {others}")),
                None => all.push(format!("{path:?}: {line} / missing")),
            }
        }
        let more = other.0.iter().filter(|(path, _)| !self.0.contains_key(*path));
        all.extend(more.map(|(path, line)| format!("{path:?}: missing / {line}")));
        all
    }
}

fn describe(path: &Path, metadata: &Metadata, attributes: &mut Reader) -> Result<String, Error> {
    let kind = metadata.file_type();
    let mut line = format!(
        "mode {:o} links {} owner {}:{} size {} mtime {}.{:09} ctime {}.{:09} inode {}",
        metadata.mode(),
        metadata.nlink(),
        metadata.uid(),
        metadata.gid(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
        metadata.ino(),
    );
    // Writing to a string does not fail.
    if kind.is_symlink() {
        let target = fs::read_link(path).map_err(Error::io("cannot read", path))?;
        let _ = write!(line, " target {target:?}");
    } else if kind.is_file() {
        let _ = write!(line, " contents {:016x}", contents(path, metadata.size())?);
    } else if metadata.rdev() != 0 {
        let _ = write!(line, " device {:x}", metadata.rdev());
    }
    let found = attributes.read(path).map_err(Error::io("cannot read attributes of", path))?;
    for (name, value) in found {
        let sum = Sha256::new_with_prefix(value);
        let _ = write!(line, " {}={:016x}", name.escape_ascii(), number(sum));
    }
    Ok(line)
}

/// A sum over the blocks of a file that are not zeros, with their places.
fn contents(path: &Path, size: u64) -> Result<u64, Error> {
    const CHUNK: usize = 64 * BLOCK;
    let file = File::open(path).map_err(Error::io("cannot open", path))?;
    let map = sparse::map(file.as_fd(), size).map_err(Error::io("cannot map", path))?;
    let mut sum = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    for (start, end) in sparse::round(&map, BLOCK as u64, size) {
        let mut at = start;
        while at < end {
            let length = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            let part = &mut buffer[..length];
            file.read_exact_at(part, at).map_err(Error::io("cannot read", path))?;
            for (index, block) in part.chunks(BLOCK).enumerate() {
                if *block != ZEROES[..block.len()] {
                    sum.update((at + (index * BLOCK) as u64).to_le_bytes());
                    sum.update(block);
                }
            }
            at += length as u64;
        }
    }
    Ok(number(sum))
}

/// As much of a digest as lines need to differ.
fn number(sum: Sha256) -> u64 {
    sum.finalize()[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_a_difference() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        fs::write(&file, vec![1; 10_000]).unwrap();
        std::os::unix::fs::symlink("target", scratch.path().join("link")).unwrap();
        let before = Listing::of(scratch.path()).unwrap();
        assert_eq!(before.len(), 3);
        assert_eq!(before, Listing::of(scratch.path()).unwrap());
        let opened = File::options().write(true).open(&file).unwrap();
        opened.write_all_at(&[2], 9_999).unwrap();
        let changed = before.differences(&Listing::of(scratch.path()).unwrap());
        assert!(changed.len() == 1 && changed[0].contains("file"), "{changed:?}");
        fs::remove_file(&file).unwrap();
        let gone = before.differences(&Listing::of(scratch.path()).unwrap());
        // The directory's times, and the file.
        assert!(gone.len() == 2 && gone[1].ends_with("missing"), "{gone:?}");
    }
}
