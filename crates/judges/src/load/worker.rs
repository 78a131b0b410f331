//! One process of the load: operations at random, each in the log before it begins and when it has
//! returned, until the file system is gone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;

use super::history::History;
use super::noise::Noise;
use super::operation::{Name, Operation, Way};
use super::sector::{SECTOR, sectors};
use crate::random::Random;

/// The log says this behind an operation that has returned.
pub(super) const DONE: &str = "done";
/// The log ends with this and an error when the file system did not do an operation.
pub(super) const ENDED: &str = "ended: ";

/// Files that a worker has at a time, and sectors of the longest.
const MOST_FILES: usize = 40;
const MOST_SECTORS: u64 = 512;
/// Blocks of O_DIRECT start and end at these many sectors.
const DIRECT: u64 = 8;

/// The directories of a worker below the root of the load; the last is that of all workers.
pub(super) fn directories(root: &Path, worker: u64) -> [PathBuf; 3] {
    let own = root.join(format!("w{worker}"));
    [own.clone(), own.join("inner"), root.join("shared")]
}

/// A worker at work.
struct Worker {
    directories: [PathBuf; 3],
    /// Of the next file, and of the next version.
    next: u64,
    random: Random,
    history: History,
    log: File,
    noise: Noise,
}

/// Works below `root`, which has the directories, and writes to `log`, until an operation fails.
/// The numbers of files say of which worker they are.
///
/// # Errors
/// The log cannot be written.
pub(super) fn work(root: &Path, log: &Path, worker: u64, seed: u64) -> io::Result<()> {
    let directories = directories(root, worker);
    let noise = Noise::new(directories[0].join("noise"), seed);
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let random = Random::new(seed);
    let history = History::default();
    let mut worker = Worker { directories, next: worker << 32, random, history, log, noise };
    loop {
        if worker.random.one_in(4)
            && let Err(error) = worker.noise.step()
        {
            return writeln!(worker.log, "{ENDED}{error}");
        }
        let operation = worker.choose();
        // One write call a line: what was begun is known even when this process is killed.
        worker.log.write_all(format!("{operation}\n").as_bytes())?;
        worker.history.begin(&operation);
        if let Err(error) = worker.perform(&operation) {
            return writeln!(worker.log, "{ENDED}{error}");
        }
        worker.history.acknowledge(&operation);
        worker.log.write_all(format!("{DONE}\n").as_bytes())?;
    }
}

impl Worker {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn fresh_name(&mut self, file: u64) -> Name {
        let directory = usize::try_from(self.random.below(3)).unwrap_or(0);
        Name { directory, name: format!("f{file}-{}", self.number()) }
    }

    /// A file that is there.
    fn pick(&mut self) -> Option<u64> {
        let there = |(number, file): (&u64, &super::history::File)| file.name().map(|_| *number);
        let all: Vec<u64> = self.history.files.iter().filter_map(there).collect();
        let index = usize::try_from(self.random.below(all.len().max(1) as u64)).unwrap_or(0);
        all.get(index).copied()
    }

    fn choose(&mut self) -> Operation {
        let create = |worker: &mut Self| {
            let file = worker.number();
            Operation::Create { file, name: worker.fresh_name(file) }
        };
        let Some(file) = self.pick() else { return create(self) };
        let there = self.history.files.values().filter(|file| file.name().is_some()).count();
        let size = self.history.files.get(&file).map_or(0, |file| file.size);
        match self.random.below(20) {
            0..=2 if there < MOST_FILES => create(self),
            0..=8 => self.choose_write(file, size),
            9 => Operation::Truncate { file, count: self.random.below(MOST_SECTORS) },
            10 if size > 0 => {
                let first = self.random.below(size);
                Operation::Punch { file, first, count: 1 + self.random.below(size - first) }
            }
            10 | 11 => Operation::Rename { file, name: self.fresh_name(file) },
            12 => self.choose_replace(file),
            13 => Operation::Unlink { file },
            14..=16 => Operation::Sync { file },
            17 => Operation::DataSync { file },
            _ => Operation::DirectorySync {
                directory: usize::try_from(self.random.below(3)).unwrap_or(0),
            },
        }
    }

    fn choose_write(&mut self, file: u64, size: u64) -> Operation {
        let way = if self.random.one_in(3) {
            Way::ALL[usize::try_from(self.random.below(3)).unwrap_or(0)]
        } else {
            Way::Cached
        };
        // At the end as often as anywhere.
        let mut first = if self.random.one_in(2) { size } else { self.random.below(size + 1) };
        first = first.min(MOST_SECTORS);
        let mut count = 1 + self.random.magnitude(6);
        if way == Way::Direct {
            first -= first % DIRECT;
            count = count.next_multiple_of(DIRECT);
        }
        Operation::Write { file, first, count, version: self.number(), way }
    }

    /// As an editor saves: a file whose data is durable takes the name of another one. Both have
    /// data, by which they can be told apart.
    fn choose_replace(&mut self, file: u64) -> Operation {
        let settled = |file: &super::history::File| {
            let first = file.sectors.first().map_or(&[][..], Vec::as_slice);
            file.name().is_some() && file.sizes.0 > 0 && first.len() == 1 && first[0] != 0
        };
        let victim =
            self.history.files.iter().find(|(number, other)| {
                **number != file && other.names.len() == 1 && settled(other)
            });
        match (victim, self.history.files.get(&file)) {
            (Some((victim, _)), Some(own)) if settled(own) => {
                Operation::Replace { file, victim: *victim }
            }
            _ => Operation::Sync { file },
        }
    }

    fn path(&self, file: u64) -> io::Result<PathBuf> {
        let name = self.history.files.get(&file).and_then(|file| file.name());
        name.map(|at| self.path_of(at)).ok_or_else(|| io::Error::from(Errno::NOENT))
    }

    fn path_of(&self, name: &Name) -> PathBuf {
        self.directories[name.directory].join(&name.name)
    }

    /// The history has it begun: names are those behind it, so the ones before are asked for.
    fn perform(&self, operation: &Operation) -> io::Result<()> {
        let open = |file: u64| OpenOptions::new().write(true).open(self.path(file)?);
        let before = |file: &u64| {
            let names = self.history.files.get(file).map_or(&[][..], |file| &file.names);
            let name = names.len().checked_sub(2).and_then(|index| names[index].as_ref());
            name.map(|at| self.path_of(at)).ok_or_else(|| io::Error::from(Errno::NOENT))
        };
        match operation {
            Operation::Create { name, .. } => File::create_new(self.path_of(name)).map(drop),
            Operation::Write { file, first, count, version, way } => {
                let bytes = sectors(*file, *first, *count, *version);
                write(&self.path(*file)?, &bytes, first * SECTOR as u64, *way)
            }
            Operation::Truncate { file, count } => open(*file)?.set_len(count * SECTOR as u64),
            Operation::Punch { file, first, count } => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let (first, count) = (first * SECTOR as u64, count * SECTOR as u64);
                Ok(fallocate(open(*file)?, flags, first, count)?)
            }
            Operation::Rename { file, .. } | Operation::Replace { file, .. } => {
                fs::rename(before(file)?, self.path(*file)?)
            }
            Operation::Unlink { file } => fs::remove_file(before(file)?),
            Operation::Sync { file } => open(*file)?.sync_all(),
            Operation::DataSync { file } => open(*file)?.sync_data(),
            Operation::DirectorySync { directory } => {
                File::open(&self.directories[*directory])?.sync_all()
            }
        }
    }
}

fn write(path: &Path, bytes: &[u8], offset: u64, way: Way) -> io::Result<()> {
    const ALIGNED: usize = 4096;
    let flags = match way {
        Way::Cached => OFlags::empty(),
        Way::Durable => OFlags::DSYNC,
        Way::Direct => OFlags::DSYNC | OFlags::DIRECT,
    };
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    // O_DIRECT takes memory at certain addresses alone.
    let mut memory = vec![0; bytes.len() + ALIGNED];
    let start = memory.as_ptr().align_offset(ALIGNED).min(ALIGNED);
    let aligned = &mut memory[start..start + bytes.len()];
    aligned.copy_from_slice(bytes);
    file.write_all_at(aligned, offset)
}
