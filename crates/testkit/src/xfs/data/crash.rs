//! Operations on data cut off at random: what a crash left is replayed by the kernel and, a copy, by
//! us; every operation that was synced is there whole.

use crate::disk;
use crate::xfs::data::history::{self, Format, History, prepare, same};
use crate::xfs::data::operation::Operation;
use crate::xfs::judged;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::testing::recorder::{Event, Recorder, Unflushed};
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::LoopMount;
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_xfs::Volume;
use undercroft_xfs::volume::LiveOptions;

pub const FILES: usize = 4;

/// Runs a history with a sync behind each operation, and cuts it in `cuts` places.
pub fn run(format: &Format, seed: u64, operations: usize, cuts: usize) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("recorded.img");
    prepare(&image, format, format.small_volume(), FILES);
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let device: Arc<dyn BlockDevice> = Arc::clone(&recorder) as _;
    let volume = Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap());
    let files: Vec<usize> = (0..FILES).collect();
    let mut history = History::of(Arc::clone(&volume), format, &files, (seed, true));
    let mut done = Vec::new();
    for _ in 0..operations {
        done.push(history.step());
        volume.sync().unwrap();
        recorder.mark("synced");
    }
    // A refused operation may have been done in part: its result would not be known.
    assert_eq!(history.refused, 0, "{}: there is space for all", format.name);
    drop(history);
    drop(volume);
    let mut random = Random::new(seed);
    let events = recorder.recording().unwrap().events().len() as u64;
    let mut places: Vec<u64> = (0..cuts).map(|_| random.below(events)).collect();
    places.sort_unstable();
    let mut recording = recorder.recording().unwrap();
    // The files after the operations that were synced: a copy for each would not fit in memory.
    let mut files = vec![Vec::new(); FILES];
    let mut left = done.iter();
    for place in places {
        while (recording.position() as u64) < place
            && let Some(event) = recording.step()
        {
            if matches!(event, Event::Mark(_)) {
                left.next().unwrap().apply(&mut files);
            }
        }
        let unflushed = match random.below(4) {
            0 => Unflushed::Dropped,
            1 => Unflushed::Kept,
            _ => Unflushed::Torn { seed: random.bits() },
        };
        let disk = recording.disk(unflushed);
        let (ours, its) = (directory.path().join("ours.img"), directory.path().join("its.img"));
        disk::save(disk.as_ref(), &ours);
        disk::save(disk.as_ref(), &its);
        let when = format!("{}, seed {seed}, event {place}, {unflushed:?}", format.name);
        let changing = left.as_slice().first().map(Operation::file);
        let expected: Vec<_> = (files.iter().enumerate())
            .map(|(file, bytes)| (changing != Some(file)).then_some(&bytes[..]))
            .collect();
        let kernels = replayed_by_the_kernel(&its, &expected, &when);
        assert!(replayed_by_us(&ours, format, &expected, &when) == kernels, "{when}: replays");
    }
}

/// Compares the files of known content.
fn compare(found: &[Vec<u8>], expected: &[Option<&[u8]>], when: &str) {
    for (file, (found, expected)) in found.iter().zip(expected).enumerate() {
        if let Some(expected) = expected {
            same(found, expected, &format!("{when}: file {file}"));
        }
    }
}

pub fn replayed_by_the_kernel(
    image: &Path,
    expected: &[Option<&[u8]>],
    when: &str,
) -> Vec<Vec<u8>> {
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    let read = |file| std::fs::read(mount.join(history::name(file))).unwrap();
    let found: Vec<_> = (0..FILES).map(read).collect();
    mount.unmount().unwrap();
    compare(&found, expected, &format!("{when}, replayed by the kernel"));
    judged::sound(image, when);
    found
}

pub fn replayed_by_us(
    image: &Path,
    format: &Format,
    expected: &[Option<&[u8]>],
    when: &str,
) -> Vec<Vec<u8>> {
    let history = History::start(image, format, FILES, (0, true));
    let found: Vec<_> = (0..FILES).map(|file| history.content(file)).collect();
    history.finish(image);
    compare(&found, expected, &format!("{when}, replayed by us"));
    judged::sound(image, when);
    found
}
