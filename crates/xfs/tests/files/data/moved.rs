//! Ranges taken out of a file and put into it, cut off at random: the file is as it was or as it
//! becomes, or, where one checkpoint has no room for all that moves, in a state between them that a
//! kernel's would be in, too.

use std::sync::Arc;
use undercroft_block::testing::recorder::{Event, Recorder, Unflushed};
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::random::Random;
use undercroft_testkit::disk;
use undercroft_testkit::xfs::data::crash::{FILES, replayed_by_the_kernel, replayed_by_us};
use undercroft_testkit::xfs::data::history::{Format, History, prepare};
use undercroft_testkit::xfs::data::operation::Operation;
use undercroft_xfs::Volume;
use undercroft_xfs::volume::LiveOptions;

const OPERATIONS: usize = 8;

/// In how many cuts the file was found in which state.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) before: u32,
    pub(crate) after: u32,
    pub(crate) between: u32,
}

/// The file before an operation, in whole blocks: which are mapped, and their content.
struct State {
    bytes: Vec<u8>,
    /// Ranges of bytes that are mapped, ascending.
    extents: Vec<(u64, u64)>,
    /// The next operation on it.
    next: Option<Operation>,
}

impl State {
    fn of(history: &History, next: Option<Operation>) -> Self {
        let extents = (history.map(0).iter())
            .map(|mapped| (mapped.offset * 512, (mapped.offset + mapped.len) * 512))
            .collect();
        Self { bytes: history.files[0].clone(), extents, next }
    }

    /// Whether the file may hold `found` while the next operation is under way.
    fn allows(&self, found: &[u8]) -> bool {
        match self.next {
            Some(Operation::Collapse { range: (offset, len), .. }) => {
                self.collapsing(offset, offset + len).any(|state| state == found)
            }
            Some(Operation::Insert { range: (offset, len), .. }) => {
                self.inserting(offset, len).any(|state| state == found)
            }
            _ => false,
        }
    }

    /// Extents behind `from`, the first one cut.
    fn behind(&self, from: u64) -> Vec<(u64, u64)> {
        let extents = self.extents.iter().filter(|(_, end)| *end > from);
        extents.map(|(start, end)| ((*start).max(from), *end)).collect()
    }

    /// First the extents of the range go, the last ones first; then those behind it move, the first
    /// ones first; then the file becomes shorter.
    fn collapsing(&self, start: u64, end: u64) -> impl Iterator<Item = Vec<u8>> {
        let mut state = self.bytes.clone();
        let gone: Vec<_> = self.behind(start).into_iter().filter(|(from, _)| *from < end).collect();
        let mut states = Vec::new();
        for (from, to) in gone.into_iter().rev() {
            state[from as usize..to.min(end) as usize].fill(0);
            states.push(state.clone());
        }
        for (from, to) in self.behind(end) {
            let (from, to) = (from as usize, to.min(state.len() as u64) as usize);
            state.copy_within(from..to, from - (end - start) as usize);
            // Its old place is a hole, as far as the next does not come to lie there.
            state[to - ((end - start) as usize).min(to - from)..to].fill(0);
            states.push(state.clone());
        }
        states.into_iter()
    }

    /// First the file becomes larger; then extents move, the last ones first.
    fn inserting(&self, offset: u64, len: u64) -> impl Iterator<Item = Vec<u8>> {
        let mut state = self.bytes.clone();
        let size = state.len();
        state.resize(size + len as usize, 0);
        let mut states = vec![state.clone()];
        for (from, to) in self.behind(offset).into_iter().rev() {
            let (from, to) = (from as usize, to.min(size as u64) as usize);
            state.copy_within(from..to, from + len as usize);
            state[from..to.min(from + len as usize)].fill(0);
            states.push(state.clone());
        }
        states.into_iter()
    }
}

/// Makes the first file one of `extents` extents, moves parts of it `OPERATIONS` times, each synced,
/// and recovers from `cuts` cuts.
pub(crate) fn run(format: &Format, seed: u64, extents: u64, cuts: usize) -> Seen {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("moved.img");
    prepare(&image, format, format.small_volume(), FILES);
    scatter(&image, format, seed, extents);
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let volume = Volume::open_live(Arc::clone(&recorder) as _, &LiveOptions::default()).unwrap();
    let files: Vec<usize> = (0..FILES).collect();
    let volume = Arc::new(volume);
    let mut history = History::of(Arc::clone(&volume), format, &files, (seed, true));
    for file in 0..FILES {
        history.files[file] = history.content(file);
    }
    let mut random = Random::new(seed);
    let mut states = Vec::new();
    std::thread::scope(|scope| {
        let mover =
            scope.spawn(|| move_ranges(&mut history, format, &mut random, &recorder, &mut states));
        // Another thread asks for checkpoints all the time.
        while !mover.is_finished() {
            volume.sync().unwrap();
        }
    });
    states.push(State::of(&history, None));
    let others = history.files.clone();
    drop((history, volume));
    cut(format, &recorder, (&states, &others), (random, cuts))
}

fn move_ranges(
    history: &mut History,
    format: &Format,
    random: &mut Random,
    recorder: &Recorder,
    states: &mut Vec<State>,
) {
    for number in 0..OPERATIONS {
        let blocks = history.files[0].len() as u64 / format.block_size;
        let (start, len) = (random.below(blocks / 2), 1 + random.below(blocks / 8));
        let range = (start * format.block_size, len * format.block_size);
        let operation = match number % 2 {
            0 => Operation::Insert { file: 0, range },
            _ => Operation::Collapse { file: 0, range },
        };
        states.push(State::of(history, Some(operation.clone())));
        assert!(history.perform_on_both(&operation), "{operation:?}");
        history.volume.sync().unwrap();
        recorder.mark("synced");
    }
}

/// Fills two files with one block each in turn, so that none has two blocks side by side.
fn scatter(image: &std::path::Path, format: &Format, seed: u64, extents: u64) {
    let mut history = History::start(image, format, FILES, (seed, true));
    for number in 0..extents {
        for file in 0..2 {
            let (offset, len) = (number * format.block_size, format.block_size);
            let write = Operation::Write { file, offset, len, seed: seed + 2 * number };
            assert!(history.perform_on_both(&write));
        }
    }
    // The tail of the file ends inside a block.
    let size = extents * format.block_size - 100;
    assert!(history.perform_on_both(&Operation::Truncate { file: 0, size }));
    assert!(history.map(0).len() as u64 >= extents / 2, "not scattered");
    history.finish(image);
}

fn cut(
    format: &Format,
    recorder: &Recorder,
    (states, others): (&[State], &[Vec<u8>]),
    (mut random, cuts): (Random, usize),
) -> Seen {
    let directory = tempfile::tempdir().unwrap();
    let (ours, its) = (directory.path().join("ours.img"), directory.path().join("its.img"));
    let mut recording = recorder.recording().unwrap();
    let events = recording.events().len() as u64;
    let mut places: Vec<u64> = (0..cuts).map(|_| random.below(events)).collect();
    places.sort_unstable();
    let (mut synced, mut seen) = (0, Seen::default());
    for (number, place) in places.into_iter().enumerate() {
        while (recording.position() as u64) < place
            && let Some(event) = recording.step()
        {
            synced += usize::from(matches!(event, Event::Mark(_)));
        }
        let unflushed = match random.below(4) {
            0 => Unflushed::Dropped,
            1 => Unflushed::Kept,
            _ => Unflushed::Torn { seed: random.bits() },
        };
        let disk = recording.disk(unflushed);
        disk::save(disk.as_ref(), &ours);
        let when = format!("{}, event {place}, {unflushed:?}", format.name);
        let mut expected: Vec<_> = others.iter().map(|bytes| Some(&bytes[..])).collect();
        expected[0] = None;
        let found = replayed_by_us(&ours, format, &expected, &when);
        if number.is_multiple_of(3) {
            disk::save(disk.as_ref(), &its);
            let kernels = replayed_by_the_kernel(&its, &expected, &when);
            assert!(kernels == found, "{when}: replays");
        }
        let (before, after) = (&states[synced], states.get(synced + 1));
        if found[0] == before.bytes {
            seen.before += 1;
        } else if after.is_some_and(|after| found[0] == after.bytes) {
            seen.after += 1;
        } else {
            assert!(before.allows(&found[0]), "{when}: in no order of {:?}", before.next);
            seen.between += 1;
        }
    }
    seen
}
