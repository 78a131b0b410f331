//! Which inodes were met, and under which name first.

use super::UnpackError;
use rustc_hash::FxHashMap;
use undercroft_xfs::ops::path_text;
use undercroft_xfs::units::InodeNumber;

/// A set of inodes: a bit each, since numbers come in chunks of 64.
#[derive(Debug, Default)]
pub(super) struct InodeSet {
    chunks: FxHashMap<u64, u64>,
}

impl InodeSet {
    /// Adds an inode; says whether it was not there.
    pub(super) fn insert(&mut self, inode: InodeNumber) -> bool {
        let chunk = self.chunks.entry(inode.0 / 64).or_default();
        let bit = 1 << (inode.0 % 64);
        let new = *chunk & bit == 0;
        *chunk |= bit;
        new
    }

    /// Whether an inode was added.
    pub(super) fn contains(&self, inode: InodeNumber) -> bool {
        self.chunks.get(&(inode.0 / 64)).is_some_and(|chunk| chunk & 1 << (inode.0 % 64) != 0)
    }
}

/// The first name of a file that has more.
#[derive(Debug)]
struct First {
    path: Vec<u8>,
    /// Names that were not met yet.
    left: u32,
}

/// Files with several names, until the last one was met.
#[derive(Debug, Default)]
pub(super) struct Links {
    met: InodeSet,
    several: FxHashMap<InodeNumber, First>,
}

impl Links {
    /// Takes a name of a file with `count` links; returns the first name if there was one.
    pub(super) fn meet(
        &mut self,
        inode: InodeNumber,
        count: u32,
        path: &[u8],
    ) -> Result<Option<Vec<u8>>, UnpackError> {
        if self.met.insert(inode) {
            if count > 1 {
                self.several.insert(inode, First { path: path.to_vec(), left: count - 1 });
            }
            return Ok(None);
        }
        let Some(first) = self.several.get_mut(&inode) else {
            return Err(UnpackError::Links { path: path_text(path), inode });
        };
        first.left -= 1;
        let name = first.path.clone();
        if first.left == 0 {
            self.several.remove(&inode);
        }
        Ok(Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_count_are_an_error() {
        let mut links = Links::default();
        let file = InodeNumber(130);
        assert!(links.meet(file, 3, b"a").unwrap().is_none());
        assert!(links.meet(InodeNumber(131), 1, b"x").unwrap().is_none());
        assert_eq!(links.meet(file, 3, b"b").unwrap().unwrap(), b"a");
        assert_eq!(links.meet(file, 3, b"c").unwrap().unwrap(), b"a");
        assert!(matches!(links.meet(file, 3, b"d"), Err(UnpackError::Links { .. })));
        assert!(matches!(links.meet(InodeNumber(131), 1, b"y"), Err(UnpackError::Links { .. })));
    }
}
