//! The files and names of one thread, and its knowledge of them.

use crate::xfs::serve_crash::model::{Entry, Names, Past, Version, Way};
use crate::xfs::serve_crash::notes::{Covers, Note, Notes};
use std::ops::Range;
use std::sync::Arc;
use undercroft_judges::random::Random;
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::ops::Name;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, OpenFile, Volume};

/// Names of a thread: this many in the root, which all threads change, and as many in a directory
/// of its own.
pub const SLOTS: usize = 3;

/// A file that is open.
pub struct File {
    /// Its place among all that the thread ever made.
    pub index: usize,
    pub open: OpenFile,
    pub bytes: Arc<Vec<u8>>,
}

/// What a thread works with.
pub struct Files {
    pub volume: Arc<Volume>,
    pub notes: Arc<Notes>,
    pub thread: usize,
    pub random: Random,
    /// The thread's own directory.
    pub directory: InodeNumber,
    /// Files with names, and some that lost them.
    pub open: Vec<File>,
    pub names: Arc<Names>,
    pub past: Past,
}

/// The path of a slot of a thread.
pub fn path(thread: usize, slot: usize) -> String {
    if slot < SLOTS { format!("{thread}-{slot}") } else { format!("d{thread}/{slot}") }
}

/// The thread whose path this is.
pub fn owner(path: &str) -> usize {
    let digits = path.trim_start_matches('d').split(['-', '/']).next();
    digits.and_then(|digits| digits.parse().ok()).expect("a path of a thread")
}

impl Files {
    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    /// The number of the operation that comes next, or runs.
    pub fn operation(&self) -> usize {
        self.past.names.len()
    }

    pub fn now(&self) -> Timestamp {
        Timestamp { seconds: 1_700_000_000 + self.operation() as i64, nanoseconds: 0 }
    }

    /// Does an operation, which others see the beginning and the end of.
    pub fn run(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        self.notes.add(Note::Begun { thread: self.thread });
        work(self)?;
        self.past.names.push(Arc::clone(&self.names));
        self.notes.add(Note::Done { thread: self.thread });
        Ok(())
    }

    /// A slot with a name, or without one.
    pub fn slot(&mut self, has_name: bool) -> Option<String> {
        let paths = (0..2 * SLOTS).map(|slot| path(self.thread, slot));
        let mut paths: Vec<_> =
            paths.filter(|path| self.names.contains_key(path) == has_name).collect();
        if paths.is_empty() { None } else { Some(paths.swap_remove(self.below(paths.len()))) }
    }

    /// Where a path is.
    pub fn name<'p>(&self, path: &'p str) -> Name<'p> {
        match path.split_once('/') {
            Some((_, name)) => Name { parent: self.directory, name: name.as_bytes() },
            None => {
                let root = self.volume.geometry().root_inode;
                Name { parent: root, name: path.as_bytes() }
            }
        }
    }

    /// The place in [`open`](Self::open) of the file with this index.
    pub fn place(&self, index: usize) -> usize {
        self.open.iter().position(|file| file.index == index).expect("files with names are open")
    }

    /// A file with a name: where it is, and what the name stands for.
    pub fn pick(&mut self) -> Option<(usize, Entry)> {
        let path = self.slot(true)?;
        let entry = self.names[&path];
        Some((self.place(entry.file), entry))
    }

    /// Notes a new version of the file at `place`.
    pub fn changed(&mut self, place: usize, way: Way, range: Range<usize>, bytes: Vec<u8>) {
        let operation = self.operation();
        let file = &mut self.open[place];
        file.bytes = Arc::new(bytes);
        let bytes = Arc::clone(&file.bytes);
        self.past.files[file.index].push(Version { operation, way, changed: range, bytes });
    }

    /// Changes what all names of a file say of it.
    pub fn each_name(&mut self, index: usize, change: impl Fn(&mut Entry)) {
        let names = Arc::make_mut(&mut self.names);
        names.values_mut().filter(|entry| entry.file == index).for_each(change);
    }

    /// Takes a name away, which the file it stood for loses.
    pub fn forget(&mut self, path: &str) -> Option<Entry> {
        let entry = Arc::make_mut(&mut self.names).remove(path)?;
        self.each_name(entry.file, |entry| entry.links -= 1);
        Some(entry)
    }

    /// Waits for a ticket in this thread, in one of all ways.
    pub fn wait(&mut self, place: usize) -> Result<(), Error> {
        let file = Covers::File { thread: self.thread, file: self.open[place].index };
        let way = self.below(7);
        let covers = [file, file, file, file, Covers::All, Covers::All, Covers::Journal][way];
        let ticket = self.notes.draw(covers);
        let open = &self.open[place].open;
        match way {
            0 => open.fsync_and_wait()?,
            1 => open.fdatasync_and_wait()?,
            2 => open.fsync().wait()?,
            3 => open.fdatasync().wait()?,
            4 => self.volume.sync_all().wait()?,
            5 => self.volume.sync_all_and_wait()?,
            _ => self.volume.sync()?,
        }
        self.notes.add(Note::Answered { ticket });
        Ok(())
    }

    /// Draws a ticket, and goes on.
    pub fn draw(&mut self, place: usize) -> Result<(), Error> {
        let file = Covers::File { thread: self.thread, file: self.open[place].index };
        let way = self.below(6);
        let covers = [file, file, file, file, Covers::All, Covers::Journal][way];
        let number = self.notes.draw(covers);
        let open = &self.open[place].open;
        let ticket = match way {
            0..3 => open.fsync(),
            3 => open.fdatasync(),
            4 => self.volume.sync_all(),
            _ => self.volume.force()?,
        };
        let notes = Arc::clone(&self.notes);
        ticket.on_complete(move |result| {
            // Without an answer the history fails at its end.
            if result.is_ok() {
                notes.add(Note::Answered { ticket: number });
            }
        });
        Ok(())
    }
}
