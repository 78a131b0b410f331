//! What happened on a volume, in order: by the inodes in use, by those that are free, and by the journal.
//!
//! Inodes say when a file was made and changed last, free ones when it was removed. What came between, the
//! journal tells, as far back as it goes: each of its copies of an inode is held against the one before.

mod history;
mod places;

use undercroft_xfs_format::{FileType, InodeCore, Timestamp};

use crate::disk::Disk;
use crate::error::RecoverError;
use crate::file_id::FileId;
use crate::found::{FoundFile, Path};
use crate::journal::{Span, Told};
use crate::progress::Step;
use crate::removed::{Removed, Witness};
use history::{Copied, History};
use places::Places;

/// Who may do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was made.
    Created,
    /// Its size changed.
    Resized {
        /// Bytes before.
        from: u64,
        /// Bytes from then on.
        to: u64,
    },
    /// Its content was changed; for the last time, where it is not the journal that tells.
    Modified,
    /// Others may do other things with it.
    Rights {
        /// Before.
        from: Rights,
        /// From then on.
        to: Rights,
    },
    /// A name was replaced.
    Renamed {
        /// The old one.
        from: Path,
    },
    /// It got one more name.
    Linked,
    /// It lost this name, and has others.
    Unlinked,
    /// Its last name was taken away.
    Removed,
}

/// Something that happened to a file.
#[derive(Clone, Debug)]
pub struct Event {
    /// When.
    pub time: Timestamp,
    /// What.
    pub change: Change,
    /// The file.
    pub id: FileId,
    /// Its name then, as far as it is known; else its last one. None where nothing tells.
    pub path: Option<Path>,
    /// What it is; `None` where nothing tells.
    pub kind: Option<FileType>,
    /// Its size then, as far as it is known; else its last one.
    pub size: u64,
    /// Permission bits, where a copy of the inode says so.
    pub mode: Option<u16>,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What happened on a volume.
#[derive(Debug)]
pub struct Timeline {
    /// In order of time.
    pub events: Vec<Event>,
    /// The part of time that the journal covers, if it holds anything.
    pub journal: Option<Span>,
}

impl Timeline {
    /// Puts the events of a volume in order. Nothing is written.
    ///
    /// `report` is told the step, and how many bytes of how many were read in it; 0 of 0 where the
    /// whole is not known.
    ///
    /// # Errors
    /// The trees that say what is in use are damaged, or the device failed at them.
    pub fn find(disk: &Disk, report: &mut dyn FnMut(Step, u64, u64)) -> Result<Self, RecoverError> {
        let mut seen = Seen { disk, present: Vec::new(), history: History::default() };
        let removed = Removed::find_before(disk, &mut seen, report)?;
        let Seen { present, mut history, .. } = seen;
        history.end();
        let places = Places::new(disk, &removed.files);
        let mut events = Vec::new();
        for last in present {
            events.extend(of_present(last, &places, &history));
        }
        for file in removed.files.iter() {
            events.extend(of_removed(file, &places, &history));
        }
        events.extend(history.copied.iter().filter_map(|copied| of_copied(copied, &places)));
        events.sort_by_key(|event| (event.time, rank(&event.change)));
        Ok(Self { events, journal: removed.journal })
    }
}

/// What the search for removed files reads.
struct Seen<'d> {
    disk: &'d Disk,
    /// The last change of each file that is there, and when it was made.
    present: Vec<(Event, Timestamp)>,
    history: History,
}

impl Witness for Seen<'_> {
    fn present(&mut self, core: &InodeCore) {
        let id = FileId { number: core.number, generation: core.generation };
        self.present.push((of_core(id, core, core.mtime, Change::Modified), core.crtime));
    }

    fn told(&mut self, told: &Told) {
        self.history.take(self.disk, told);
    }

    fn wants_entries(&self) -> bool {
        true
    }
}

/// What comes first of what happened at one time.
const fn rank(change: &Change) -> u8 {
    match change {
        Change::Created => 0,
        Change::Removed => 2,
        _ => 1,
    }
}

/// The events of a file that is there.
fn of_present((last, birth): (Event, Timestamp), places: &Places, history: &History) -> Vec<Event> {
    // What has no name is no file of people, or was removed while it was open.
    let Some(path) = places.present(last.id.number) else { return Vec::new() };
    since_birth(Event { path: Some(path), ..last }, birth, places, history)
}

/// The events of a file that was removed.
fn of_removed(file: &FoundFile, places: &Places, history: &History) -> Vec<Event> {
    let last = Event {
        time: file.mtime,
        change: Change::Modified,
        id: file.id,
        path: file.paths.first().cloned(),
        kind: file.kind,
        size: file.size,
        mode: file.mode,
        uid: file.uid,
        gid: file.gid,
    };
    let end = file.removed_at.map(|time| Event { time, change: Change::Removed, ..last.clone() });
    let mut events = since_birth(last, file.crtime, places, history);
    events.extend(end);
    events
}

/// The creation of a file, with its first name, and its last change, which `last` is. The journal may have
/// told of the latter; directories change with what is in them.
fn since_birth(last: Event, birth: Timestamp, places: &Places, history: &History) -> Vec<Event> {
    let mut events = Vec::new();
    // Older inodes do not say when they were made.
    if birth != Timestamp::default() {
        let first = history.first_name(last.id).map(|name| places.path(name));
        let path = first.or_else(|| last.path.clone());
        events.push(Event { time: birth, change: Change::Created, path, ..last.clone() });
    }
    let is_told = last.time == birth || history.tells_of(last.id, last.time);
    if !is_told && last.kind != Some(FileType::Directory) {
        events.push(last);
    }
    events
}

/// An event that the journal tells of.
fn of_copied(copied: &Copied, places: &Places) -> Option<Event> {
    let (change, path) = match &copied.change {
        history::Change::Resized { from } => {
            let to = copied.core.size;
            (Change::Resized { from: *from, to }, copied.name.as_ref())
        }
        history::Change::Modified => (Change::Modified, copied.name.as_ref()),
        history::Change::Rights { from } => {
            let to = rights(&copied.core);
            (Change::Rights { from: *from, to }, copied.name.as_ref())
        }
        history::Change::Renamed { from, to } => {
            (Change::Renamed { from: places.path(from) }, Some(to))
        }
        history::Change::Linked(name) => (Change::Linked, Some(name)),
        history::Change::Unlinked(name) => (Change::Unlinked, Some(name)),
    };
    let path = path.map(|name| places.path(name)).or_else(|| places.of(copied.id))?;
    let event = of_core(copied.id, &copied.core, copied.time, change);
    Some(Event { path: Some(path), ..event })
}

fn of_core(id: FileId, core: &InodeCore, time: Timestamp, change: Change) -> Event {
    Event {
        time,
        change,
        id,
        path: None,
        kind: core.file_type(),
        size: core.size,
        mode: Some(core.mode & 0o7777),
        uid: core.uid,
        gid: core.gid,
    }
}

/// The rights of a core.
const fn rights(core: &InodeCore) -> Rights {
    Rights { mode: core.mode & 0o7777, uid: core.uid, gid: core.gid }
}
