//! Which paths an archive has named so far.
//!
//! Paths are kept as 128-bit hashes: an archive of two million names takes about 100 MiB, with
//! names of any length. Two different paths among them have the same hash with a probability of
//! 10^-26.

use super::error::Problem;
use crate::EntryPath;
use crate::entry::MAX_NAME;
use rustc_hash::FxBuildHasher;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// The use of a path, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Offset of the header in the archive.
    pub(super) offset: u64,
    pub(super) directory: bool,
}

/// The result of the use of a path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Admitted {
    /// The parents that have not come, from the top down.
    pub(super) missing: Vec<EntryPath>,
    /// Something that is no directory came before under the path.
    pub(super) replaces: bool,
}

/// All paths so far, without the root, which is always a directory.
#[derive(Debug, Default)]
pub(super) struct SeenPaths {
    /// By hash, which needs no further hashing with a secret.
    paths: HashMap<[u64; 2], Seen, FxBuildHasher>,
    /// With a secret: names with equal hashes cannot be chosen.
    hashes: RandomState,
    /// The parent of the last path, which is a directory: most often that of the next path too.
    parent: Vec<u8>,
    /// Where the symbolic links lead.
    links: HashMap<[u64; 2], Box<[u8]>, FxBuildHasher>,
}

/// Most symbolic links on the way to a path, as in Linux.
const MAX_LINKS: usize = 40;
/// Most bytes of a path that leads over symbolic links, as in Linux.
const MAX_LINKED_PATH: usize = 4096;

impl SeenPaths {
    fn get(&self, path: &[u8]) -> Option<Seen> {
        self.paths.get(&self.hash(path)).copied()
    }

    /// Records the use of a path, if it may be used. The parents that have not come are recorded as
    /// directories.
    pub(super) fn admit(&mut self, path: &EntryPath, seen: Seen) -> Result<Admitted, Problem> {
        let Some((parent, _)) = path.split_last() else {
            let root = Ok(Admitted::default());
            return if seen.directory { root } else { Err(Problem::RootNotDirectory) };
        };
        let hash = self.hash(path.as_bytes());
        if let Some(before) = self.paths.get_mut(&hash) {
            if before.directory != seen.directory {
                return Err(Problem::Duplicate { first: before.offset });
            }
            *before = seen;
            return Ok(Admitted { missing: Vec::new(), replaces: !seen.directory });
        }
        let mut missing = Vec::new();
        if self.parent != parent {
            missing = self.missing_directories(parent)?;
            for parent in &missing {
                let seen = Seen { offset: seen.offset, directory: true };
                self.paths.insert(self.hash(parent.as_bytes()), seen);
            }
            parent.clone_into(&mut self.parent);
        }
        self.paths.insert(hash, seen);
        Ok(Admitted { missing, replaces: false })
    }

    /// Notes that a path is a symbolic link with this target, or none.
    pub(super) fn set_link(&mut self, path: &EntryPath, target: Option<&[u8]>) {
        match target {
            Some(target) => drop(self.links.insert(self.hash(path.as_bytes()), target.into())),
            None if self.links.is_empty() => {}
            None => drop(self.links.remove(&self.hash(path.as_bytes()))),
        }
    }

    /// Where a path is when the symbolic links above it are followed, as when the archive is unpacked
    /// below its root.
    pub(super) fn resolve(&self, path: EntryPath) -> Result<EntryPath, Problem> {
        match path.split_last() {
            Some((parent, name)) if !self.links.is_empty() && parent != self.parent => {
                let real = self.resolve_parent(parent)?;
                Ok(if real == parent { path } else { EntryPath::from_checked(real).join(name) })
            }
            _ => Ok(path),
        }
    }

    fn resolve_parent(&self, parent: &[u8]) -> Result<Vec<u8>, Problem> {
        let mut real = Vec::with_capacity(parent.len());
        // From the last to the next.
        let mut names: Vec<&[u8]> = parent.rsplit(|&byte| byte == b'/').collect();
        let mut followed = 0;
        while let Some(name) = names.pop() {
            let above = real.len();
            match name {
                b"" | b"." => continue,
                b".." => {
                    real.truncate(real.iter().rposition(|&byte| byte == b'/').unwrap_or(0));
                    continue;
                }
                _ if above > 0 => real.push(b'/'),
                _ => {}
            }
            real.extend_from_slice(name);
            if let Some(target) = self.links.get(&self.hash(&real)) {
                followed += 1;
                real.truncate(if target.starts_with(b"/") { 0 } else { above });
                names.extend(target.rsplit(|&byte| byte == b'/'));
            }
            if followed > MAX_LINKS || followed > 0 && real.len() > MAX_LINKED_PATH {
                return Err(Problem::Links(MAX_LINKS));
            }
            if name.len() > MAX_NAME {
                return Err(Problem::NameLength(name.len()));
            }
        }
        Ok(real)
    }

    /// Which of the path and its parents have not come, from the top down.
    fn missing_directories(&self, path: &[u8]) -> Result<Vec<EntryPath>, Problem> {
        let mut missing = Vec::new();
        let mut path = path;
        while !path.is_empty() && path != self.parent {
            match self.get(path) {
                Some(seen) if seen.directory => break,
                Some(seen) => {
                    let (parent, first) = (path.to_vec(), seen.offset);
                    return Err(Problem::ParentNotDirectory { parent, first });
                }
                None => missing.push(EntryPath::from_checked(path.to_vec())),
            }
            let slash = path.iter().rposition(|&byte| byte == b'/');
            path = &path[..slash.unwrap_or(0)];
        }
        missing.reverse();
        Ok(missing)
    }

    /// Whether the path or one of its parents came before and is no directory.
    pub(super) fn is_below_file(&self, path: &[u8]) -> bool {
        self.missing_directories(path).is_err()
    }

    /// Checks that a hard link may name the path: it came before and is no directory.
    pub(super) fn check_link_target(&self, target: &EntryPath) -> Result<(), Problem> {
        let path = target.as_bytes();
        match self.get(path) {
            Some(seen) if !seen.directory => Ok(()),
            None if !target.is_root() => Err(Problem::LinkTargetMissing { target: path.to_vec() }),
            _ => Err(Problem::LinkTargetDirectory { target: path.to_vec() }),
        }
    }

    /// The standard hasher has 256 bits of state; two results are drawn from it.
    fn hash(&self, path: &[u8]) -> [u64; 2] {
        let mut hasher = self.hashes.build_hasher();
        hasher.write(path);
        let first = hasher.finish();
        hasher.write_u8(0xff);
        [first, hasher.finish()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> EntryPath {
        EntryPath::from_checked(text.into())
    }

    fn seen(offset: u64, directory: bool) -> Seen {
        Seen { offset, directory }
    }

    #[test]
    fn missing_parents_come_once_and_from_the_top() {
        let mut paths = SeenPaths::default();
        let mut missing = |path, seen| paths.admit(&path, seen).unwrap().missing;
        assert_eq!(missing(path("a/b/c"), seen(0, false)), [path("a"), path("a/b")]);
        assert_eq!(missing(path("a/b/d"), seen(512, false)), []);
        assert_eq!(missing(path("a/b"), seen(1024, true)), []);
        assert_eq!(missing(EntryPath::root(), seen(1536, true)), []);
    }

    #[test]
    fn links_above_a_path_are_followed_below_the_root() {
        let mut paths = SeenPaths::default();
        for (name, target) in [
            ("lib", "usr/lib"),
            ("usr/lib", "./lib64/"),
            ("out", "../../../etc"),
            ("whole", "/usr/lib/x"),
            ("loop", "loop/more"),
        ] {
            paths.set_link(&path(name), Some(target.as_bytes()));
        }
        for (name, real) in [
            ("lib/f", "usr/lib64/f"),
            ("lib", "lib"),
            ("usr/lib/d/f", "usr/lib64/d/f"),
            ("out/f", "etc/f"),
            ("whole/f", "usr/lib64/x/f"),
            ("liberty/f", "liberty/f"),
        ] {
            assert_eq!(paths.resolve(path(name)).unwrap(), path(real));
        }
        assert!(matches!(paths.resolve(path("loop/f")), Err(Problem::Links(_))));
        paths.set_link(&path("lib"), None);
        assert_eq!(paths.resolve(path("lib/f")).unwrap(), path("lib/f"));
    }

    #[test]
    fn a_path_is_used_again_only_for_the_like() {
        let mut paths = SeenPaths::default();
        paths.admit(&path("f"), seen(512, false)).unwrap();
        paths.admit(&path("d"), seen(1024, true)).unwrap();
        for (name, directory) in [("f", true), ("d", false)] {
            let result = paths.admit(&path(name), seen(2048, directory));
            assert!(matches!(result, Err(Problem::Duplicate { first: 512 | 1024 })));
        }
        for (name, directory) in [("f", false), ("d", true)] {
            let again = paths.admit(&path(name), seen(512, directory)).unwrap();
            assert_eq!(again, Admitted { missing: Vec::new(), replaces: !directory });
        }
        let below = paths.admit(&path("f/x/y"), seen(2048, false));
        assert!(matches!(below, Err(Problem::ParentNotDirectory { first: 512, .. })));
        let root = paths.admit(&EntryPath::root(), seen(2048, false));
        assert!(matches!(root, Err(Problem::RootNotDirectory)));
    }
}
