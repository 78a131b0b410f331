//! Files that were found on a volume, removed ones or those of a damaged one, as a source of entries: to
//! be put into a directory, an archive or a new volume, as any tree; or back where they were.

mod late;
mod put_back;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use undercroft_recover::{Contents, Disk, FoundFile, Part, State};
use undercroft_source::{
    BufferPool, Data, DataRange, Device, Entry, EntryPath, Exclude, Kind, Links, Metadata, Source,
    SourceError, Timestamp, Warnings, Xattr,
};
use undercroft_xfs::format::FileType;

pub use late::{LateLoss, LateLosses, SourceGone};
pub use put_back::{PutBack, PutBackEvent, Summary as PutBackSummary};
pub use view::{ViewError, found_volume};

/// Where files go whose directory has no name.
const NAMELESS: &[u8] = b"lost+found";

/// In the place of what cannot be read: as much as is read at a time then.
static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

/// Names from the root down.
type Names = Vec<Vec<u8>>;

/// Files that were found as entries: each below its path, depth first and sorted. Directories on the
/// way that were not found are made with mode 0755 for the superuser.
///
/// A file of which parts are lost has holes there, and `.partial` behind its name; one whose size is
/// not known `.unsized`. Files without a known directory are below `lost+found`. A name that is there
/// already gets a number. Data that cannot be read any more when it is asked for is zeroes, which
/// [`late_losses`](FoundSource::late_losses) tells.
pub struct FoundSource {
    disk: Disk,
    files: Arc<[FoundFile]>,
    planned: Vec<Planned>,
    state: Pass,
    pool: BufferPool,
    is_scanned: bool,
    late: LateLosses,
}

/// An entry, and the file that it is.
struct Planned {
    entry: Entry,
    file: Option<usize>,
}

/// A pass over the entries.
struct Pass {
    next: usize,
    contents: Option<Contents>,
}

/// A pass from the start.
const START: Pass = Pass { next: 0, contents: None };

impl FoundSource {
    /// Those of `files`, found on `disk`, that `takes` accepts.
    pub fn new(disk: &Disk, files: &Arc<[FoundFile]>, takes: impl Fn(&FoundFile) -> bool) -> Self {
        Self::without(disk, files, takes, &Exclude::default())
    }

    /// As [`new`](Self::new), without the names that are left out.
    pub fn without(
        disk: &Disk,
        files: &Arc<[FoundFile]>,
        takes: impl Fn(&FoundFile) -> bool,
        exclude: &Exclude,
    ) -> Self {
        let planned = plan(disk, files, takes, exclude);
        let (disk, files) = (disk.clone(), Arc::clone(files));
        let pool = BufferPool::default();
        let late = LateLosses::default();
        Self { disk, files, planned, state: START, pool, is_scanned: false, late }
    }

    /// What could not be read of the entries since the start.
    #[must_use]
    pub fn late_losses(&self) -> &LateLosses {
        &self.late
    }

    /// Entries in all, directories on the way included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.planned.len()
    }
}

/// The entries of the files that `takes` accepts.
fn plan(
    disk: &Disk,
    files: &[FoundFile],
    takes: impl Fn(&FoundFile) -> bool,
    exclude: &Exclude,
) -> Vec<Planned> {
    let mut plan = Plan::default();
    for (index, file) in files.iter().enumerate() {
        if takes(file) {
            plan.add(index, file, exclude);
        }
    }
    plan.entries(disk, files)
}

/// The places of files.
#[derive(Default)]
struct Plan {
    /// Directories, with the file that each is.
    directories: HashMap<Names, Option<usize>>,
    /// All other files, with all their names.
    files: Vec<(usize, Vec<Names>)>,
}

impl Plan {
    fn add(&mut self, index: usize, file: &FoundFile, exclude: &Exclude) {
        let mut places: Vec<Names> = file
            .paths
            .iter()
            .map(|path| {
                let top: &[&[u8]] = if path.is_complete { &[] } else { &[NAMELESS] };
                top.iter().map(|name| name.to_vec()).chain(path.names.iter().cloned()).collect()
            })
            .collect();
        places.retain(|names| !names.is_empty() && path(names).is_some());
        if places.is_empty() {
            places.push(vec![NAMELESS.to_vec(), file.id.to_string().into_bytes()]);
        }
        if !exclude.is_empty() {
            places.retain(|names| !exclude.matches_within(&names.join(&b'/')));
        }
        for names in &places {
            for depth in 1..names.len() {
                self.directories.entry(names[..depth].to_vec()).or_default();
            }
        }
        if places.is_empty() {
            return;
        }
        if file.kind == Some(FileType::Directory) {
            // The newest of several that had one path comes last.
            self.directories.insert(places.swap_remove(0), Some(index));
        } else {
            self.files.push((index, places));
        }
    }

    /// All entries in their order.
    fn entries(self, disk: &Disk, found: &[FoundFile]) -> Vec<Planned> {
        let mut used: HashSet<Names> = self.directories.keys().cloned().collect();
        let mut placed: Vec<(Names, Planned)> = Vec::new();
        for (names, index) in self.directories {
            let Some(path) = path(&names) else { continue };
            let file = index.map(|index| &found[index]);
            placed.push((names, Planned { entry: directory(path, file), file: index }));
        }
        for (index, places) in self.files {
            let file = &found[index];
            let mut places: Vec<Names> =
                places.into_iter().map(|names| free_name(names, file, &mut used)).collect();
            places.sort();
            let paths: Vec<_> = places.iter().filter_map(|names| path(names)).collect();
            let Some(first) = paths.first().cloned() else { continue };
            for (names, path) in places.into_iter().zip(paths) {
                let is_first = path == first;
                let kind =
                    if is_first { kind(disk, file) } else { Some(Kind::HardLink(first.clone())) };
                let Some(kind) = kind else { break };
                let entry = entry(path, kind, file);
                placed.push((names, Planned { entry, file: is_first.then_some(index) }));
            }
        }
        placed.sort_by(|(one, _), (other, _)| one.cmp(other));
        placed.into_iter().map(|(_, planned)| planned).collect()
    }
}

/// The path of names, if entries can have it.
fn path(names: &[Vec<u8>]) -> Option<EntryPath> {
    EntryPath::new(names.join(&b'/'))
}

/// A name for a file that no other has.
fn free_name(mut names: Names, file: &FoundFile, used: &mut HashSet<Names>) -> Names {
    let mark: &[u8] = match file.state {
        State::Partly => b".partial",
        State::Unsized => b".unsized",
        State::Likely => b".likely",
        State::Whole | State::Shared | State::Lost => b"",
    };
    let Some(own) = names.pop() else { return names };
    for number in 0_u64.. {
        let number = if number == 0 { String::new() } else { format!(".{number}") };
        let end = [mark, number.as_bytes()].concat();
        // The longest names lose their ends to the mark.
        let mut name = own[..own.len().min(255 - end.len())].to_vec();
        name.extend(&end);
        names.push(name);
        if used.insert(names.clone()) {
            break;
        }
        names.pop();
    }
    names
}

fn metadata(mode: u16, file: &FoundFile) -> Metadata {
    let mtime = Timestamp {
        seconds: file.mtime.seconds,
        nanoseconds: file.mtime.nanoseconds.min(999_999_999),
    };
    Metadata { mode: mode & 0o7777, uid: file.uid, gid: file.gid, mtime }
}

fn directory(path: EntryPath, file: Option<&FoundFile>) -> Entry {
    let unknown = Metadata { mode: 0o755, uid: 0, gid: 0, mtime: Timestamp::default() };
    Entry {
        path,
        kind: Kind::Directory,
        metadata: file.map_or(unknown, |file| metadata(file.mode.unwrap_or(0o755), file)),
        xattrs: file.map_or(Vec::new(), xattrs),
        links: Links::Single,
        replaces: false,
    }
}

fn xattrs(file: &FoundFile) -> Vec<Xattr> {
    let attributes = file.attributes.iter();
    attributes.map(|(name, value)| Xattr { name: name.clone(), value: value.clone() }).collect()
}

fn entry(path: EntryPath, kind: Kind, file: &FoundFile) -> Entry {
    let several = file.paths.len() > 1 && !matches!(kind, Kind::HardLink(_));
    let is_link = matches!(kind, Kind::HardLink(_));
    Entry {
        path,
        kind,
        // Whom else it may be read by is not known.
        metadata: metadata(file.mode.unwrap_or(0o600), file),
        xattrs: if is_link { Vec::new() } else { xattrs(file) },
        links: if several { Links::Several } else { Links::Single },
        replaces: false,
    }
}

/// What a file is as an entry; `None` if nothing can be made of it.
fn kind(disk: &Disk, file: &FoundFile) -> Option<Kind> {
    let device = || {
        let number = file.device()?;
        Some(Device { major: number.major, minor: number.minor })
    };
    Some(match file.kind? {
        FileType::Regular => {
            let ranges = Contents::new(disk, file).ranges();
            let range = |range: std::ops::Range<u64>| DataRange {
                offset: range.start,
                length: range.end - range.start,
            };
            let data = ranges.into_iter().map(range).collect();
            let size = file.size.min(undercroft_source::entry::MAX_FILE_SIZE);
            Kind::Regular { size, data }
        }
        FileType::Symlink => {
            let target = file.target()?;
            let is_target = (1..=undercroft_source::entry::MAX_SYMLINK_TARGET)
                .contains(&target.len())
                && !target.contains(&0);
            is_target.then(|| Kind::Symlink(target.to_vec()))?
        }
        FileType::Character => Kind::CharDevice(device()?),
        FileType::Block => Kind::BlockDevice(device()?),
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::Directory => Kind::Directory,
    })
}

impl Source for FoundSource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        if self.is_scanned || self.state.next > 0 {
            return Err(SourceError::ScanTooLate);
        }
        self.planned.iter().for_each(|planned| visit(&planned.entry));
        self.is_scanned = true;
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        let Some(planned) = self.planned.get(self.state.next) else { return Ok(None) };
        self.state.next += 1;
        let is_regular = matches!(planned.entry.kind, Kind::Regular { .. });
        let file = planned.file.filter(|_| is_regular).map(|index| &self.files[index]);
        self.state.contents = file.map(|file| Contents::new(&self.disk, file));
        Ok(Some(planned.entry.clone()))
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        let part = self.state.contents.as_mut().and_then(Contents::next_part);
        let (offset, bytes) = match &part {
            None => return Ok(None),
            Some(Part::Piece(piece)) => {
                self.late.go_on();
                (piece.offset, piece.bytes())
            }
            Some(Part::Unread(range)) => {
                if let Some(planned) = self.planned.get(self.state.next.wrapping_sub(1)) {
                    let added = self.late.add(planned.entry.path.as_bytes(), range);
                    added.map_err(|gone| SourceError::Fault(Box::new(gone)))?;
                }
                (range.start, &ZEROES[..(range.end - range.start) as usize])
            }
        };
        let chunk = self.pool.piece(bytes.len() as u64, |space| {
            space.copy_from_slice(bytes);
            Ok::<_, SourceError>(bytes.len())
        })?;
        Ok(Some(Data { offset, chunk }))
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        if !self.is_scanned {
            return Err(SourceError::NotScanned);
        }
        self.state = START;
        self.late = LateLosses::default();
        Ok(())
    }

    fn warnings(&self) -> Warnings {
        Warnings { unread: self.late.sentences(), ..Warnings::default() }
    }
}
