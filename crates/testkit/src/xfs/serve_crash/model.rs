//! What a thread did to its files, operation by operation, and what a crash may leave of it.
//!
//! A thread's operations are numbered from 1, in the order in which it did them. Names, modes and
//! links are changed by transactions in that order, so behind a crash they are as they were behind
//! one of its operations, none before the last that was durable. Data reaches the device file by
//! file: every byte is that of some version of the file, none before the last that was durable.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// What a name of a thread stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which of the thread's files it is. Inodes are used again, these numbers are not.
    pub file: usize,
    pub inode: u64,
    pub mode: u32,
    pub links: u32,
}

/// All names of a thread, by path.
pub type Names = BTreeMap<String, Entry>;

/// How durable a change of data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In memory, until the file is written back: only a ticket for the file covers it.
    Memory,
    /// On the device, or in a transaction: any ticket covers it.
    Device,
    /// As [`Device`](Self::Device); and the size is set, whatever it was before.
    Size,
}

/// The content of a file behind an operation on it.
#[derive(Debug)]
pub struct Version {
    pub operation: usize,
    pub way: Way,
    /// What the operation changed, in bytes.
    pub changed: Range<usize>,
    pub bytes: Arc<Vec<u8>>,
}

/// A thread's past.
#[derive(Debug, Default)]
pub struct Past {
    /// The names behind each operation; the first are those before any.
    pub names: Vec<Arc<Names>>,
    /// The versions of each file.
    pub files: Vec<Vec<Version>>,
}

/// How far a thread was at a crash.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The last operation that began.
    pub begun: usize,
    /// The last one covered by some answered ticket.
    pub committed: usize,
    /// For each file the last one behind which an answered ticket covers its data.
    pub written: Vec<usize>,
}

/// A file as it was found behind a crash.
#[derive(Clone, Debug)]
pub struct Found {
    pub inode: u64,
    pub mode: u32,
    pub links: u32,
    pub bytes: Vec<u8>,
}

/// The files found of one thread, by path.
pub type Tree = BTreeMap<String, Found>;

impl Past {
    /// Whether a crash may leave `tree`.
    ///
    /// # Errors
    /// Why not: for each state that names could be in.
    pub fn judge(&self, reached: &Reached, tree: &Tree) -> Result<(), String> {
        let mut reasons = Vec::new();
        for operation in (reached.committed..=reached.begun).rev() {
            let names = &self.names[operation];
            if reasons.last().is_some_and(|(of, _)| Arc::ptr_eq(names, &self.names[*of])) {
                continue;
            }
            match self.judge_state(names, reached, tree) {
                Ok(()) => return Ok(()),
                Err(reason) => reasons.push((operation, reason)),
            }
        }
        let list = reasons.iter().map(|(operation, reason)| format!("not {operation}: {reason}"));
        Err(list.collect::<Vec<_>>().join("\n"))
    }

    /// Whether the data of a file was not changed since it was covered.
    pub fn is_unchanged(&self, file: usize, reached: &Reached) -> bool {
        let later = reached.written[file] + 1..=reached.begun;
        reached.written[file] > 0
            && !self.files[file].iter().any(|version| later.contains(&version.operation))
    }

    /// Compares with one state of the names.
    fn judge_state(&self, names: &Names, reached: &Reached, tree: &Tree) -> Result<(), String> {
        if !names.keys().eq(tree.keys()) {
            let (expected, found) = (names.keys(), tree.keys());
            return Err(format!("names {expected:?}, found {found:?}"));
        }
        for ((path, entry), found) in names.iter().zip(tree.values()) {
            let is_same =
                (entry.inode, entry.mode, entry.links) == (found.inode, found.mode, found.links);
            if !is_same {
                let (inode, mode, links) = (found.inode, found.mode, found.links);
                return Err(format!(
                    "{path} is {entry:?}, found inode {inode}, mode {mode}, links {links}"
                ));
            }
            let limits = (reached.written.get(entry.file).copied().unwrap_or(0), reached);
            judge_bytes(&self.files[entry.file], limits, &found.bytes)
                .map_err(|reason| format!("{path}, {entry:?}: {reason}"))?;
        }
        Ok(())
    }
}

/// Whether a crash may leave `found` of a file.
fn judge_bytes(
    versions: &[Version],
    (written, reached): (usize, &Reached),
    found: &[u8],
) -> Result<(), String> {
    let begun = versions.iter().take_while(|version| version.operation <= reached.begun).count();
    let first = versions[..begun].iter().rposition(|version| version.operation <= written);
    let first = first.unwrap_or(0);
    let mut allowed = Allowed::only(&versions[first], found);
    for (before, version) in versions[first..begun].iter().zip(&versions[first + 1..begun]) {
        allowed.add(before, version, version.operation <= reached.committed, found);
    }
    let of = || {
        let list = versions[..begun].iter().map(|version| {
            let Version { operation, way, changed, bytes } = version;
            format!("{operation} ({way:?}, {changed:?}, size {})", bytes.len())
        });
        let (all, last) = (list.collect::<Vec<_>>().join(", "), versions[first].operation);
        format!("versions {all}; durable is {last}")
    };
    if !allowed.sizes.iter().any(|sizes| sizes.contains(&found.len())) {
        return Err(format!("size {}, allowed {:?}; {}", found.len(), allowed.sizes, of()));
    }
    match allowed.bytes.iter().position(|is_allowed| !is_allowed) {
        Some(at) => {
            let count = allowed.bytes.iter().filter(|is_allowed| !**is_allowed).count();
            let byte = found[at];
            Err(format!("{count} wrong bytes, the first is {byte:#x} at {at}; {}", of()))
        }
        None => Ok(()),
    }
}

/// Which sizes are allowed, and which of the bytes that were found.
struct Allowed {
    sizes: Vec<RangeInclusive<usize>>,
    bytes: Vec<bool>,
}

impl Allowed {
    fn only(version: &Version, found: &[u8]) -> Self {
        let size = version.bytes.len();
        let bytes = (0..found.len()).map(|at| version.has(at, found)).collect();
        Self { sizes: vec![size..=size], bytes }
    }

    /// Allows `version`, which follows `before`; if it is durable, nothing else where it changed
    /// something.
    fn add(&mut self, before: &Version, version: &Version, is_committed: bool, found: &[u8]) {
        let (old, size) = (before.bytes.len(), version.bytes.len());
        let is_alone = is_committed && version.way != Way::Memory;
        if is_alone && version.way == Way::Size && old != size {
            self.sizes.clear();
        }
        // Of a change in steps, some may be durable. A size that shrinks is set by the first one.
        let is_step = size > old && version.way != Way::Size;
        self.sizes.push(if is_step { old..=size } else { size..=size });
        if is_alone && version.way == Way::Device {
            let least = version.changed.end.min(size);
            let sizes = self.sizes.drain(..).filter(|sizes| *sizes.end() >= least);
            self.sizes = sizes.map(|sizes| least.max(*sizes.start())..=*sizes.end()).collect();
        }
        for (at, is_allowed) in self.bytes.iter_mut().enumerate() {
            let is_kept = *is_allowed && !(is_alone && version.changed.contains(&at));
            *is_allowed = is_kept || version.has(at, found);
        }
    }
}

impl Version {
    /// Whether the bytes found at `at` are those of this: zeros behind its end.
    fn has(&self, at: usize, found: &[u8]) -> bool {
        self.bytes.get(at).copied().unwrap_or(0) == found[at]
    }
}
