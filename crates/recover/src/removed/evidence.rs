//! All that the volume says, gathered in one pass over each place.

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{Extent, FileType, ForkFormat, InodeCore, InodeFlags2, Timestamp};

use super::Witness;
use super::literal;
use super::passing::{Passage, Passing};
use crate::directory::{self, OldEntry};
use crate::disk::Disk;
use crate::error::RecoverError;
use crate::file_id::FileId;
use crate::journal::{self, Span, Told};
use crate::live;
use crate::map;
use crate::names;
use crate::present::{self, Present};
use crate::progress::Progress;
use crate::remains::{self, OldInode, Remains};
use crate::space::FreeSpace;
use crate::trail::MapFork;
use crate::trail::{Fork, InodeCopy, Trail};

/// What is known of all files that are not there any more.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) present: Present,
    pub(super) space: FreeSpace,
    pub(super) remains: Remains,
    pub(super) trails: FxHashMap<FileId, Trail>,
    /// Extents that files had at a time, by the journal.
    pub(super) had: Vec<(InodeNumber, Extent, Lsn)>,
    /// Entries that directories had.
    pub(super) entries: Vec<OldEntry>,
    pub(super) journal: Option<Span>,
    /// Blocks that files in passing may have had.
    pub(super) passages: Vec<Passage>,
    /// Latest times of changes up to positions in the journal, both ascending.
    times: Vec<(Lsn, Timestamp)>,
    /// Positions at which the volume was unmounted, ascending.
    unmounts: Vec<Lsn>,
}

impl Evidence {
    pub(super) fn gather(
        disk: &Disk,
        witness: &mut dyn Witness,
        progress: &mut Progress<'_>,
    ) -> Result<Self, RecoverError> {
        let mut trails: FxHashMap<FileId, Trail> = FxHashMap::default();
        let set_end = |file, end| trails.entry(file).or_default().set_end(end);
        let present = present::read(disk, progress, set_end, |core| witness.present(core))?;
        let space = FreeSpace::read(disk)?;
        let mut had = Vec::new();
        let mut entries = removed_entries(disk, &present);
        let (mut times, mut unmounts) = (Vec::new(), Vec::new());
        // Elsewhere files say their names themselves.
        let needs_entries = !disk.geometry.features.parent_pointers();
        let has_entries = needs_entries || witness.wants_entries();
        let mut passing = Passing::new(disk);
        let journal = journal::read(disk, has_entries, progress, |told| {
            witness.told(&told);
            match told {
                // An entry that was removed was told of before.
                Told::Entry(entry) if entry.entry.is_removed || !needs_entries => {}
                Told::Entry(entry) => entries.push(entry),
                Told::Free(lsn, extents) => passing.free(lsn, extents),
                Told::Unmount(lsn) => {
                    passing.unmount(lsn);
                    unmounts.push(lsn);
                }
                Told::Extents(file, lsn, extents) => {
                    had.extend(extents.into_iter().map(|extent| (file, extent, lsn)));
                }
                Told::Inode(number, copy) => {
                    add_time(&mut times, copy.lsn, copy.core.ctime);
                    passing.inode(number, &copy, || {
                        let end = trails.get(&FileId::freed(&copy.core))?.end.as_ref()?;
                        literal::kind_left(disk, number, end.literal.as_deref()?)
                    });
                    entries.extend(short_entries(disk, number, &copy));
                    take(disk, &present, number, copy, &mut trails, &mut had);
                }
            }
        });
        let mut remains = remains::read(disk, &space, progress, |number, inode| match inode {
            OldInode::Freed(file, end) if !present.has(file) => {
                trails.entry(file).or_default().set_end(end);
            }
            OldInode::Used(copy) => {
                take(disk, &present, number, copy, &mut trails, &mut had);
            }
            OldInode::Freed(..) => {}
        });
        entries.append(&mut remains.entries);
        trails.retain(|file, trail| is_of_interest(disk, &present, *file, trail));
        let mut passages = passing.finish();
        // Blocks that groups keep were free before, and had their records then.
        if let Some(lsn) = passages.iter().map(|passage| passage.lsn).max_by_key(|lsn| lsn.0) {
            let kept = space.kept.iter().map(|block| *block..block + 1);
            passages.extend(kept.map(|blocks| Passage { blocks, lsn }));
        }
        Ok(Self {
            present,
            space,
            remains,
            trails,
            had,
            entries,
            journal,
            passages,
            times,
            unmounts,
        })
    }

    /// The time of the last change before the volume was last unmounted before a position.
    pub(super) fn unmounted_before(&self, lsn: Lsn) -> Option<Timestamp> {
        let behind = self.unmounts.partition_point(|at| at.0 < lsn.0);
        self.time_at(self.unmounts[behind.checked_sub(1)?])
    }

    /// Whether a file was made in the part of time that the journal covers.
    pub(super) fn saw_made(&self, core: &InodeCore) -> bool {
        self.times.first().is_some_and(|(_, oldest)| core.crtime > *oldest)
    }

    /// Whether the volume was unmounted behind a position and before another.
    pub(super) fn was_unmounted_between(&self, start: Lsn, end: Lsn) -> bool {
        let behind = self.unmounts.partition_point(|at| at.0 < start.0);
        self.unmounts.get(behind).is_some_and(|at| at.0 < end.0)
    }

    /// The time at a position of the journal; `None` before all that it has.
    pub(super) fn time_at(&self, lsn: Lsn) -> Option<Timestamp> {
        let behind = self.times.partition_point(|(at, _)| at.0 <= lsn.0);
        behind.checked_sub(1).map(|place| self.times[place].1)
    }
}

/// Notes that it was `time` at a position.
fn add_time(times: &mut Vec<(Lsn, Timestamp)>, lsn: Lsn, time: Timestamp) {
    match times.last_mut() {
        Some((last, latest)) if *last == lsn => *latest = time.max(*latest),
        Some((last, latest)) if *last < lsn => {
            let latest = time.max(*latest);
            times.push((lsn, latest));
        }
        Some(_) => {}
        None => times.push((lsn, time)),
    }
}

/// The removed entries of all directories that are there.
fn removed_entries(disk: &Disk, present: &Present) -> Vec<OldEntry> {
    let mut old = Vec::new();
    for parent in &present.directories {
        live::entries(disk, *parent, |found| {
            let removed = found.entries.iter().filter(|entry| entry.is_removed).cloned();
            let generation = present.generation(*parent);
            old.extend(removed.map(|entry| OldEntry {
                parent: *parent,
                generation,
                lsn: Lsn(0),
                entry,
            }));
            true
        });
    }
    old
}

/// The entries of a directory inside its inode, as the journal has it. Where files say their names
/// themselves they are not needed.
fn short_entries(disk: &Disk, parent: InodeNumber, copy: &InodeCopy) -> Vec<OldEntry> {
    let geometry = &disk.geometry;
    let is_short = copy.core.file_type() == Some(FileType::Directory)
        && copy.core.data_format == ForkFormat::Local
        && !geometry.features.parent_pointers();
    let fork = copy.data.as_deref().filter(|_| is_short);
    let found = fork.and_then(|fork| directory::of_shortform(geometry, fork));
    let (lsn, generation) = (copy.lsn, Some(copy.core.generation));
    let old = |entry| OldEntry { parent, generation, lsn, entry };
    found.map_or(Vec::new(), |found| found.entries.into_iter().map(old).collect())
}

/// Takes a copy of an inode: the extents that the file had then, and a part of the trail of one that is
/// gone.
fn take(
    disk: &Disk,
    present: &Present,
    number: InodeNumber,
    copy: InodeCopy,
    trails: &mut FxHashMap<FileId, Trail>,
    had: &mut Vec<(InodeNumber, Extent, Lsn)>,
) {
    let geometry = &disk.geometry;
    if copy.core.mode == 0 {
        let (lsn, time) = (copy.lsn, copy.core.ctime);
        let file = FileId::freed(&copy.core);
        let end = crate::trail::End { lsn, time, core: copy.core, literal: None };
        trails.entry(file).or_default().set_end(end);
        return;
    }
    if let Some(bytes) = &copy.data
        && copy.core.data_format == ForkFormat::Extents
    {
        let map = map::of_fork(disk, number, MapFork::data(&copy.core, bytes)).unwrap_or_default();
        had.extend(map.extents.into_iter().map(|extent| (number, extent, copy.lsn)));
    }
    let file = FileId { number, generation: copy.core.generation };
    if !present.has(file) {
        let has_name = |fork: &Fork| {
            fork.format == ForkFormat::Local
                && !names::of_shortform(geometry, &fork.bytes).is_empty()
        };
        trails.entry(file).or_default().add(copy, has_name);
    }
}

/// Whether a trail is that of a file of people.
fn is_of_interest(disk: &Disk, present: &Present, file: FileId, trail: &Trail) -> bool {
    let core = trail.core.as_ref().map(|seen| &seen.value);
    let core = core.or(trail.end.as_ref().map(|end| &end.core));
    let is_metadata =
        |core: &InodeCore| core.metatype != 0 || core.flags2.contains(InodeFlags2::METADATA);
    !present.has(file)
        && file.number != disk.geometry.root_inode
        && core.is_some_and(|core| !is_metadata(core))
}
