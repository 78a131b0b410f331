//! What the journal tells of each file: its copies of an inode, held against one another.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{FileType, ForkFormat, InodeCore, Timestamp};

use super::{Rights, rights};
use crate::directory::{self, OldEntry};
use crate::disk::Disk;
use crate::file_id::FileId;
use crate::journal::Told;
use crate::names::{self, Name};
use crate::trail::InodeCopy;

/// What differs between two copies of an inode.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Resized { from: u64 },
    Modified,
    Rights { from: Rights },
    Renamed { from: Name, to: Name },
    Linked(Name),
    Unlinked(Name),
}

/// A change that a copy of an inode shows.
#[derive(Debug)]
pub(super) struct Copied {
    pub(super) time: Timestamp,
    pub(super) id: FileId,
    pub(super) change: Change,
    /// The inode behind it.
    pub(super) core: InodeCore,
    /// A name that the file had then.
    pub(super) name: Option<Name>,
}

/// A file, as far as the journal was read.
struct State {
    core: InodeCore,
    names: Vec<Name>,
}

/// Names that came and went at one position of the journal.
#[derive(Default)]
struct Moves {
    lsn: Lsn,
    come: Vec<(FileId, Name)>,
    gone: Vec<(FileId, Name)>,
    /// Entries of directories with numbers, whose files are known when the position is left.
    entries: Vec<(InodeNumber, Name)>,
    /// Entries that were removed, with the lower halves of numbers.
    halves: Vec<(InodeNumber, Name)>,
    /// Files whose inodes were logged there.
    files: Vec<FileId>,
}

/// All that the journal tells.
#[derive(Default)]
pub(super) struct History {
    pub(super) copied: Vec<Copied>,
    states: FxHashMap<FileId, State>,
    /// The file that has a number.
    files: FxHashMap<InodeNumber, FileId>,
    first: FxHashMap<FileId, Name>,
    /// Entries of directories inside their inodes.
    entries: FxHashMap<FileId, FxHashSet<(InodeNumber, Name)>>,
    moves: Moves,
    /// Changes of contents that are told of.
    told: FxHashSet<(FileId, Timestamp)>,
}

impl History {
    /// Takes what the journal tells, in the order of time; then it has to be [ended](Self::end).
    pub(super) fn take(&mut self, disk: &Disk, told: &Told) {
        match told {
            Told::Inode(number, copy) => self.add(disk, *number, copy),
            Told::Entry(entry) => self.add_entry(disk, entry),
            Told::Extents(..) | Told::Free(..) | Told::Unmount(_) => {}
        }
    }

    /// The journal is at its end.
    pub(super) fn end(&mut self) {
        self.settle_moves();
    }

    /// The first name of a file that was made while the journal was watching.
    pub(super) fn first_name(&self, id: FileId) -> Option<&Name> {
        self.first.get(&id)
    }

    /// Whether the journal tells of a change of the content at a time.
    pub(super) fn tells_of(&self, id: FileId, time: Timestamp) -> bool {
        self.told.contains(&(id, time))
    }

    fn add(&mut self, disk: &Disk, number: InodeNumber, copy: &InodeCopy) {
        self.at(copy.lsn);
        let core = &copy.core;
        // What follows on the last name is the removal, of which the free inode tells.
        if core.mode == 0 || core.nlink == 0 {
            return;
        }
        let id = FileId { number, generation: core.generation };
        self.files.insert(number, id);
        self.moves.files.push(id);
        let is_directory = core.file_type() == Some(FileType::Directory);
        if let Some(state) = self.states.get_mut(&id) {
            let before = std::mem::replace(&mut state.core, core.clone());
            let name = state.names.first().cloned();
            let told =
                |time, change| Copied { time, id, change, core: core.clone(), name: name.clone() };
            if !is_directory && before.size != core.size {
                self.copied.push(told(core.mtime, Change::Resized { from: before.size }));
            } else if !is_directory && before.mtime != core.mtime {
                self.copied.push(told(core.mtime, Change::Modified));
            }
            if !is_directory && before.mtime != core.mtime {
                self.told.insert((id, core.mtime));
            }
            if rights(&before) != rights(core) {
                self.copied.push(told(core.ctime, Change::Rights { from: rights(&before) }));
            }
        } else {
            self.states.insert(id, State { core: core.clone(), names: Vec::new() });
        }
        if disk.geometry.features.parent_pointers() {
            let fork = copy.attr.as_deref();
            let names = fork.map_or(Vec::new(), |fork| names::of_shortform(&disk.geometry, fork));
            if !names.is_empty() {
                self.set_names(id, &names);
            }
        } else if is_directory && core.data_format == ForkFormat::Local {
            self.add_short_form(disk, id, copy);
        }
    }

    /// The file has these names now.
    fn set_names(&mut self, id: FileId, names: &[Name]) {
        let Some(state) = self.states.get(&id) else { return };
        let come = names.iter().filter(|name| !state.names.contains(name));
        self.moves.come.extend(come.map(|name| (id, name.clone())));
        let gone = state.names.iter().filter(|name| !names.contains(name));
        self.moves.gone.extend(gone.map(|name| (id, name.clone())));
    }

    /// Names of a file came and went at one time. The first that are known tell of no change, if none went.
    fn change_names(&mut self, id: FileId, come: Vec<Name>, gone: Vec<Name>) {
        let Some(state) = self.states.get_mut(&id) else { return };
        if state.names.is_empty() {
            let first = gone.first().or(come.first()).cloned();
            self.first.extend(first.map(|name| (id, name)));
            state.names.clone_from(&gone);
        }
        let is_first = state.names.is_empty();
        state.names.retain(|name| !gone.contains(name));
        state.names.extend(come.iter().cloned());
        if is_first {
            return;
        }
        let (core, name) = (state.core.clone(), state.names.first().cloned());
        let mut gone = gone.into_iter();
        let mut changes: Vec<_> = come
            .into_iter()
            .map(|to| match gone.next() {
                Some(from) => Change::Renamed { from, to },
                None => Change::Linked(to),
            })
            .collect();
        changes.extend(gone.map(Change::Unlinked));
        let copied = changes.into_iter().map(|change| Copied {
            time: core.ctime,
            id,
            change,
            core: core.clone(),
            name: name.clone(),
        });
        self.copied.extend(copied);
    }

    /// Takes the entries of a directory inside its inode.
    fn add_short_form(&mut self, disk: &Disk, id: FileId, copy: &InodeCopy) {
        let fork = copy.data.as_deref();
        let Some(found) = fork.and_then(|fork| directory::of_shortform(&disk.geometry, fork))
        else {
            return;
        };
        let entries = found.entries.into_iter().map(|entry| {
            let (parent, generation) = (id.number, Some(id.generation));
            (entry.inode, Name { parent, generation, name: entry.name })
        });
        let now: FxHashSet<_> = entries.collect();
        let before = self.entries.insert(id, now.clone()).unwrap_or_default();
        self.moves.entries.extend(now.difference(&before).cloned());
        let gone = before
            .difference(&now)
            .filter_map(|(number, name)| Some((*self.files.get(number)?, name.clone())));
        self.moves.gone.extend(gone);
    }

    /// Takes an entry of a block of a directory, which it did not have before, or has no more.
    fn add_entry(&mut self, disk: &Disk, old: &OldEntry) {
        self.at(old.lsn);
        let generation = self.files.get(&old.parent).map(|id| id.generation);
        let name = Name { parent: old.parent, generation, name: old.entry.name.clone() };
        if old.entry.is_removed {
            self.moves.halves.push((old.entry.inode, name));
        } else if !disk.geometry.features.parent_pointers() {
            self.moves.entries.push((old.entry.inode, name));
        }
    }

    /// Goes on to a position of the journal.
    fn at(&mut self, lsn: Lsn) {
        if self.moves.lsn != lsn {
            self.settle_moves();
            self.moves.lsn = lsn;
        }
    }

    /// Finds out whose the names are that came and went at one position: by then its inode was logged, too.
    fn settle_moves(&mut self) {
        let Moves { mut come, gone, entries, halves, files, .. } = std::mem::take(&mut self.moves);
        let known = |(number, name)| Some((*self.files.get(&number)?, name));
        come.extend(entries.into_iter().filter_map(known));
        let mut old: FxHashMap<u32, Vec<Name>> = FxHashMap::default();
        for (half, name) in halves {
            old.entry(half.0 as u32).or_default().push(name);
        }
        let mut by_file: BTreeMap<FileId, (Vec<Name>, Vec<Name>)> = BTreeMap::new();
        for (id, name) in come {
            by_file.entry(id).or_default().0.push(name);
        }
        for (id, name) in gone {
            by_file.entry(id).or_default().1.push(name);
        }
        for (id, (mut come, mut gone)) in by_file {
            let Some(state) = self.states.get(&id) else { continue };
            come.retain(|name| !state.names.contains(name));
            if gone.is_empty() && state.core.nlink == 1 && come.len() == 1 {
                // A file with one link has its last name. Where none was known before, a directory may have
                // lost one at the same time.
                let is_alone =
                    files.iter().filter(|file| is_half(**file, id)).all(|file| *file == id);
                gone.clone_from(&state.names);
                if let Some([name]) = old.get(&(id.number.0 as u32)).map(Vec::as_slice)
                    && gone.is_empty()
                    && is_alone
                    && state.core.crtime < state.core.ctime
                {
                    gone.push(name.clone());
                }
            }
            self.change_names(id, come, gone);
        }
    }
}

/// Whether two numbers have one lower half.
const fn is_half(one: FileId, other: FileId) -> bool {
    one.number.0 as u32 == other.number.0 as u32
}
