//! Cuts of the power while tickets are under way: every file whose ticket was answered is there,
//! whole.

use crate::xfs::fsync::work::{contents, create, memory, open, read, write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use undercroft_block::BlockDevice;
use undercroft_block::testing::recorder::{Event, Recorder, Recording, Unflushed};
use undercroft_judges::random::Random;
use undercroft_xfs::{OpenFile, Volume, ops};

pub const FILES: usize = 400;

/// Length of a file: some end inside a block, some have several extents' worth of data.
pub fn len(number: usize, seed: u64) -> usize {
    let mut random = Random::new(seed << 32 | number as u64);
    match random.below(7) {
        0 => 1 + random.below(120_000) as usize,
        1 => 1 + random.below(4095) as usize,
        2 => 4097,
        _ => 4096,
    }
}

pub fn name(number: usize) -> String {
    format!("file-{number}")
}

/// A run with many tickets in flight; an answered one leaves a mark with the number of its file.
pub fn record(seed: u64) -> Recording {
    let mut random = Random::new(seed);
    let recorder = Arc::new(Recorder::with_contents(memory(128 << 20)).unwrap());
    let volume = open(Arc::clone(&recorder) as _, 1 << 20);
    let called = Arc::new(AtomicUsize::new(0));
    for number in 0..FILES {
        let file = create(&volume, &name(number));
        let bytes = contents(number, len(number, seed));
        write(&file, 0, &bytes[..bytes.len() / 2]).unwrap();
        write(&file, bytes.len() as u64 / 2, &bytes[bytes.len() / 2..]).unwrap();
        let (marks, called) = (Arc::clone(&recorder), Arc::clone(&called));
        let ticket = if random.one_in(5) { file.fdatasync() } else { file.fsync() };
        ticket.on_complete(move |result| {
            result.unwrap();
            marks.mark(&number.to_string());
            called.fetch_add(1, Ordering::Release);
        });
        if random.one_in(40) {
            volume.sync_all().wait().unwrap();
        }
    }
    volume.sync_all().wait().unwrap();
    // Callbacks come from a thread of their own, behind the answers. Closing the volume would write
    // in place, which is not cut here.
    while called.load(Ordering::Acquire) < FILES {
        std::thread::yield_now();
    }
    drop(volume);
    recorder.recording().unwrap()
}

pub fn note(event: &Event, durable: &mut Vec<usize>) {
    if let Event::Mark(text) = event {
        durable.push(text.parse().unwrap());
    }
}

fn check(disk: &Arc<dyn BlockDevice>, durable: &[usize], seed: u64, place: &str) {
    let volume = Arc::new(Volume::open(Arc::clone(disk)).unwrap());
    let root = volume.inode(volume.geometry().root_inode).unwrap();
    for number in durable {
        let found = ops::lookup(&volume, &root.read(), name(*number).as_bytes()).unwrap();
        let found = found.unwrap_or_else(|| panic!("{place}: {number}"));
        let bytes = read(&OpenFile::open(&volume, found).unwrap());
        assert!(bytes == contents(*number, len(*number, seed)), "{place}: contents of {number}");
    }
}

/// Records a run and cuts it behind one in `one_in` of its events; returns how often.
pub fn run(seed: u64, one_in: u64) -> usize {
    let mut recording = record(seed);
    let mut random = Random::new(seed);
    let (mut durable, mut cuts) = (Vec::new(), 0);
    while let Some(event) = recording.step() {
        note(event, &mut durable);
        let at = recording.position();
        if !random.one_in(one_in) {
            continue;
        }
        let unflushed = match random.below(4) {
            0 => Unflushed::Dropped,
            1 => Unflushed::Kept,
            _ => Unflushed::Torn { seed: at as u64 },
        };
        cuts += 1;
        let place = format!("seed {seed}, cut behind event {at}, {unflushed:?}");
        check(&recording.disk(unflushed), &durable, seed, &place);
    }
    assert_eq!(durable.len(), FILES);
    cuts
}
