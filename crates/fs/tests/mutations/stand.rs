//! Verbs of a file system on a volume with mutated metadata: each ends, with or without an error, and
//! writes over no file that it was not asked to change.

use crate::mutation::Subject;
use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::abort;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use undercroft_block::testing::recorder::{Event, Recorder};
use undercroft_block::{BlockDevice, MemoryDevice, Operation, Sector, write_all_at};
use undercroft_fs::{Change, FileSystem, OpenOptions, RenameFlags};
use undercroft_judges::random::Random;
use undercroft_xfs::bmap;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::units::InodeNumber;

/// A verb that takes longer is as good as hanging.
const LONGEST: Duration = Duration::from_secs(60);

/// Most pieces of metadata that are damaged at a time, of some hundreds.
const PIECES: usize = 24;

/// What came of all rounds.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) rounds: u64,
    /// Volumes that were not opened.
    pub(crate) unopened: u64,
    /// Verbs that ended with an error.
    pub(crate) refused: u64,
    /// Rounds in which a file lost bytes that the verb had no business with, by the damage that led
    /// there.
    pub(crate) overwritten: Vec<String>,
    pub(crate) longest: Duration,
}

/// A path of the volume before the damage.
struct Known {
    path: PathBuf,
    number: InodeNumber,
    kind: FileType,
}

/// A volume, what is on it, and the mutations.
pub(crate) struct Stand {
    device: Arc<dyn BlockDevice>,
    pristine: Vec<u8>,
    subject: Subject,
    known: Vec<Known>,
    /// Sectors of data of files, ascending, with an owner each.
    data: Vec<(Range<u64>, InodeNumber)>,
    random: Random,
    watch: Arc<Mutex<Option<(String, Instant)>>>,
}

impl Stand {
    /// Looks at a sound volume, and starts a thread that ends the process when a verb hangs.
    pub(crate) fn new(pristine: Vec<u8>, seed: u64) -> Result<Self, Box<dyn Error>> {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(pristine.len() as u64));
        let subject = Subject::new(Arc::clone(&device), &pristine, seed.max(1))?;
        let fs = FileSystem::open(Arc::clone(&device), &OpenOptions::read_only())?;
        let (mut known, mut data) = (Vec::new(), Vec::new());
        for entry in fs.walk("/")? {
            let entry = entry?;
            let (number, kind) = (entry.metadata().number, entry.metadata().kind);
            known.push(Known { path: entry.path().to_owned(), number, kind });
            if kind != FileType::Regular {
                continue;
            }
            let (volume, geometry) = (fs.volume(), fs.volume().geometry());
            let inode = volume.inode(number)?;
            for extent in bmap::extents(volume, &inode.read(), ForkKind::Data)?.as_slice() {
                let start = geometry.sector(extent.start).0;
                let len = (u64::from(extent.len) << geometry.block_log) / 512;
                data.push((start..start + len, number));
            }
        }
        data.sort_by_key(|(sectors, _)| sectors.start);
        let watch = Arc::default();
        watch_over(&watch);
        let random = Random::new(seed);
        Ok(Self { device, pristine, subject, known, data, random, watch })
    }

    /// Damages the volume, uses a verb, and mends the volume again.
    pub(crate) fn round(&mut self, outcome: &mut Outcome) -> Result<(), Box<dyn Error>> {
        let verb = Verb::random(&mut self.random, &self.known);
        let what = format!("round {}: {verb:?}", outcome.rounds);
        *self.watch.lock().unwrap() = Some((what.clone(), Instant::now()));
        let below = Arc::clone(&self.device);
        let start = Instant::now();
        let (result, recorder, damage) = self.subject.round(PIECES, |subject| {
            let recorder = Arc::new(Recorder::new(below));
            let device: Arc<dyn BlockDevice> = Arc::clone(&recorder) as _;
            (verb.run(device), recorder, subject.damage().join(", "))
        })?;
        outcome.longest = outcome.longest.max(start.elapsed());
        *self.watch.lock().unwrap() = None;
        outcome.rounds += 1;
        match result {
            Err(Refusal::Open) => outcome.unopened += 1,
            Err(Refusal::Verb) => outcome.refused += 1,
            Ok(()) => {}
        }
        for written in self.mend(&recorder)? {
            if let Some(owner) = self.bystander(&written, verb.target()) {
                let written = format!("sectors {written:?} of inode {owner}");
                outcome.overwritten.push(format!("{what} wrote {written}; damaged: {damage}"));
                break;
            }
        }
        Ok(())
    }

    /// Puts back all that was written; returns where that was.
    fn mend(&self, recorder: &Recorder) -> Result<Vec<Range<u64>>, Box<dyn Error>> {
        let mut ranges = Vec::new();
        for event in recorder.recording()?.events() {
            let Event::Submitted { change, .. } = event else { continue };
            if change.operation == Operation::Flush {
                continue;
            }
            let range = change.sectors().start.0..change.sectors().end.0;
            let bytes = &self.pristine[range.start as usize * 512..range.end as usize * 512];
            write_all_at(self.device.as_ref(), Sector(range.start), bytes)?;
            ranges.push(range);
        }
        Ok(ranges)
    }

    /// The owner of data in a range that was written, if it is not the verb's.
    fn bystander(&self, written: &Range<u64>, target: Option<InodeNumber>) -> Option<InodeNumber> {
        let behind = self.data.partition_point(|(sectors, _)| sectors.start < written.end);
        let overlaps = |(sectors, _): &&(Range<u64>, _)| sectors.end > written.start;
        // Shared blocks are there once for each owner: neighbours in the list.
        let (_, owner) = self.data[..behind].iter().rev().find(overlaps)?;
        (Some(*owner) != target).then_some(*owner)
    }
}

/// Ends the process when a verb takes too long: nothing else ends a thread that hangs.
fn watch_over(watch: &Arc<Mutex<Option<(String, Instant)>>>) {
    let watch = Arc::downgrade(watch);
    thread::spawn(move || {
        while let Some(watch) = watch.upgrade() {
            let hanging = watch.lock().unwrap().clone();
            if let Some((what, _)) = hanging.filter(|(_, start)| start.elapsed() > LONGEST) {
                eprintln!("{what}: still not done after {LONGEST:?}");
                abort();
            }
            drop(watch);
            thread::sleep(Duration::from_millis(200));
        }
    });
}

/// Why a verb was not done.
enum Refusal {
    Open,
    Verb,
}

/// A verb of the command, on paths that the sound volume has.
#[derive(Debug)]
enum Verb {
    Remove(PathBuf),
    RemoveAll(PathBuf),
    Move(PathBuf, PathBuf),
    Mode(PathBuf),
    Truncate(PathBuf, u64, InodeNumber),
    PutNew(PathBuf, usize),
    PutOver(PathBuf, usize, InodeNumber),
    Overwrite(PathBuf, u64, InodeNumber),
}

impl Verb {
    fn random(random: &mut Random, known: &[Known]) -> Self {
        let mut any = |wanted: Option<FileType>| loop {
            let one = &known[random.below(known.len() as u64) as usize];
            if wanted.is_none_or(|kind| kind == one.kind) && one.path != Path::new("/") {
                return (one.path.clone(), one.number);
            }
        };
        let (file, number) = any(Some(FileType::Regular));
        let (directory, _) = any(Some(FileType::Directory));
        let (path, _) = any(None);
        let size = random.magnitude(24);
        match random.below(8) {
            0 => Self::Remove(path),
            1 => Self::RemoveAll(directory),
            2 => Self::Move(path, directory.join("moved")),
            3 => Self::Mode(path),
            4 => Self::Truncate(file, size, number),
            5 => Self::PutNew(directory.join("new"), size as usize),
            6 => Self::PutOver(file, size as usize, number),
            _ => Self::Overwrite(file, size, number),
        }
    }

    /// The file whose bytes it may change.
    fn target(&self) -> Option<InodeNumber> {
        match self {
            Self::Truncate(_, _, number)
            | Self::PutOver(_, _, number)
            | Self::Overwrite(_, _, number) => Some(*number),
            _ => None,
        }
    }

    /// Opens the volume, does it, and closes the volume.
    fn run(&self, device: Arc<dyn BlockDevice>) -> Result<(), Refusal> {
        let fs = FileSystem::open(device, &OpenOptions::writable()).map_err(|_| Refusal::Open)?;
        let done = self.apply(&fs);
        let closed = fs.close();
        done.and(closed.map_err(Into::into)).map_err(|_| Refusal::Verb)
    }

    fn apply(&self, fs: &FileSystem) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Remove(path) => fs.remove_file(path)?,
            Self::RemoveAll(path) => fs.remove_dir_all(path)?,
            Self::Move(from, to) => fs.rename_path(from, to, RenameFlags::default())?,
            Self::Mode(path) => {
                let number = fs.symlink_metadata(path)?.number;
                fs.set_attributes(number, &Change { mode: Some(0o640), ..Change::default() })?;
            }
            Self::Truncate(path, size, _) => fs.open_path(path)?.set_len(*size)?,
            Self::PutNew(path, size) | Self::PutOver(path, size, _) => {
                fs.write(path, vec![0x5a; *size])?;
            }
            Self::Overwrite(path, offset, _) => {
                let file = fs.open_path(path)?;
                file.write(*offset, &[0x5a; 20_000])?;
                file.fsync_and_wait()?;
            }
        }
        Ok(())
    }
}
