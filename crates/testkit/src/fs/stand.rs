//! Verbs of a file system on a volume with mutated metadata: each ends, with or without an error, and
//! writes over no file that it was not asked to change.

use crate::fs::verb::{Known, Refusal, Verb};
use crate::xfs::mutation::Subject;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::error::Error;
use std::ops::Range;
use std::panic::{set_hook, take_hook};
use std::process::abort;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use undercroft_block::testing::recorder::{Event, Recorder};
use undercroft_block::{BlockDevice, MemoryDevice, Operation, Sector, write_all_at};
use undercroft_fs::{FileSystem, OpenOptions};
use undercroft_judges::random::Random;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::bmap;
use undercroft_xfs::units::InodeNumber;

/// A verb that takes longer is as good as hanging.
const LONGEST: Duration = Duration::from_secs(20);

/// Memory that a verb may take, beside what the stand has.
const MEMORY: u64 = 1 << 30;

/// Most pieces of metadata that are damaged at a time, of some hundreds.
const PIECES: usize = 24;

/// The verb on its way, and since when.
type Watch = Arc<Mutex<Option<(String, Instant)>>>;

/// What came of all rounds.
#[derive(Debug, Default)]
pub struct Outcome {
    pub rounds: u64,
    /// Volumes that were not opened.
    pub unopened: u64,
    /// Verbs that ended with an error.
    pub refused: u64,
    /// Rounds in which a file lost bytes that the verb had no business with, by the damage that led
    /// there.
    pub overwritten: Vec<String>,
    pub longest: Duration,
}

/// A volume, its contents, and the mutations.
pub struct Stand {
    device: Arc<dyn BlockDevice>,
    pristine: Vec<u8>,
    subject: Subject,
    known: Vec<Known>,
    /// Sectors of data of files, ascending, with an owner each.
    data: Vec<(Range<u64>, InodeNumber)>,
    random: Random,
    watch: Watch,
}

impl Stand {
    /// Looks at a sound volume, and has the process end when a verb hangs, panics in any thread,
    /// or takes too much memory.
    pub fn new(pristine: Vec<u8>, seed: u64) -> Result<Self, Box<dyn Error>> {
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
        let watch = Watch::default();
        watch_over(&watch);
        end_at_panic(&watch);
        let random = Random::new(seed);
        limit_memory()?;
        Ok(Self { device, pristine, subject, known, data, random, watch })
    }

    /// Damages the volume, uses a verb, and mends the volume again.
    pub fn round(&mut self, outcome: &mut Outcome) -> Result<(), Box<dyn Error>> {
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
fn watch_over(watch: &Watch) {
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

/// Ends the process when any thread panics while a verb is on its way: a volume would only tell an
/// error.
fn end_at_panic(watch: &Watch) {
    let (watch, tell) = (Arc::downgrade(watch), take_hook());
    set_hook(Box::new(move |panic| {
        tell(panic);
        let running = watch.upgrade().and_then(|watch| watch.lock().unwrap().clone());
        if let Some((what, _)) = running {
            eprintln!("{what}: panicked");
            abort();
        }
    }));
}

/// Lets memory that the process may write grow by [`MEMORY`] and no more.
fn limit_memory() -> Result<(), Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let data = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap_or_default();
    let kibibytes: u64 = data.trim().trim_end_matches(" kB").parse()?;
    let most = Some((kibibytes << 10) + MEMORY);
    setrlimit(Resource::Data, Rlimit { current: most, maximum: most })?;
    Ok(())
}
