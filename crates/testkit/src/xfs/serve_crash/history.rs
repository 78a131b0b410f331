//! Several threads change one volume while what reaches the device is recorded.

use crate::xfs::serve::device::{Manner, with_manner};
use crate::xfs::serve_crash::files::Files;
use crate::xfs::serve_crash::model::{Names, Past};
use crate::xfs::serve_crash::notes::{Covers, Note, Notes};
use std::sync::{Arc, Barrier};
use undercroft_block::testing::recorder::{Recorder, Recording};
use undercroft_block::{BlockDevice, MemoryDevice};
use undercroft_judges::random::Random;
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions, Preset};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume};
use uuid::Uuid;

pub const THREADS: usize = 8;

/// How a history is run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Operations and tickets of each thread.
    pub steps: usize,
    pub options: MkfsOptions,
    pub manner: Manner,
    /// The volume is closed at the end.
    pub closes: bool,
}

/// A history: the writes that reached the device, and the operations of the threads.
pub struct History {
    pub recording: Recording,
    pub notes: Vec<Note>,
    pub pasts: Vec<Past>,
}

impl Plan {
    /// A plan that depends on the seed: formats and devices take turns.
    pub fn of(seed: u64, steps: usize) -> Self {
        let plain = MkfsOptions::new(64 << 20, Uuid::from_u128(seed.into()));
        let options = match seed % 5 {
            0 => MkfsOptions { preset: Preset::Linux4_19, ..plain },
            1 => plain,
            2 => MkfsOptions { block_size: 1024, ..plain },
            3 => MkfsOptions { inode_size: 1024, dir_block_size: Some(8192), ..plain },
            _ => MkfsOptions { sector_size: 4096, log_stripe_unit: Some(16 << 10), ..plain },
        };
        let manner = if seed.is_multiple_of(2) { Manner::Late } else { Manner::Prompt };
        Self { seed, steps, options, manner, closes: seed.is_multiple_of(3) }
    }
}

/// Makes a volume, and opens it on a recorder: a directory for each thread is in it.
fn start(plan: &Plan) -> (Arc<Recorder>, Arc<Volume>, Vec<InodeNumber>) {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(plan.options.size));
    let root = NewInode::new(FileType::Directory, 0o755);
    let made = mkfs::begin(&device, mkfs::plan(&plan.options).unwrap(), &root).unwrap();
    mkfs::finish(&made, false).unwrap();
    drop(made);
    let options = LiveOptions { dirty_bytes: 512 << 10, ..LiveOptions::default() };
    let volume = Volume::open_live(Arc::clone(&device), &options).unwrap();
    let make = |thread| {
        let (parent, name) = (volume.geometry().root_inode, format!("d{thread}"));
        ops::make(&volume, parent, name.as_bytes(), &root).unwrap()
    };
    let directories = (0..THREADS).map(make).collect();
    volume.close().unwrap();
    drop(volume);
    let device = with_manner(device, plan.manner, plan.seed);
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let volume = Volume::open_live(Arc::clone(&recorder) as _, &options).unwrap();
    (recorder, Arc::new(volume), directories)
}

/// Runs a history.
pub fn run(plan: &Plan) -> History {
    let (recorder, volume, directories) = start(plan);
    let notes = Notes::new(&recorder);
    let files = |thread: usize, directory: InodeNumber| Files {
        volume: Arc::clone(&volume),
        notes: Arc::clone(&notes),
        thread,
        random: Random::new(plan.seed ^ (thread as u64 + 1) << 40),
        directory,
        open: Vec::new(),
        names: Arc::default(),
        past: Past { names: vec![Arc::new(Names::new())], files: Vec::new() },
    };
    let barrier = Barrier::new(THREADS);
    let work = |mut files: Files| -> Result<Past, Error> {
        barrier.wait();
        (0..plan.steps).try_for_each(|_| files.step())?;
        Ok(files.past)
    };
    let pasts: Vec<Past> = std::thread::scope(|scope| {
        let start = |(thread, directory): (usize, &InodeNumber)| {
            let files = files(thread, *directory);
            scope.spawn(|| work(files))
        };
        let threads: Vec<_> = directories.iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    if plan.closes {
        let ticket = notes.draw(Covers::All);
        volume.close().unwrap();
        notes.add(Note::Answered { ticket });
    }
    drop(volume);
    // First the recording: no mark of it is without its note.
    let recording = recorder.recording().unwrap();
    History { recording, notes: notes.take(), pasts }
}
