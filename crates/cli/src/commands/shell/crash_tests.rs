//! Cuts of the power while a shell works with `--batch`: only the latest changes are lost, also
//! where a command changes a block in its place.

use super::Shell;
use crate::session::Session;
use std::fs;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::testing::recorder::{Event, Recorder, Recording, Unflushed};
use undercroft_block::{BlockDevice, MemoryDevice};
use undercroft_fs::FileSystem;
use undercroft_xfs::Volume;
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

const SIZE: u64 = 128 << 20;
/// Bytes of the file, none of them zero.
const LEN: usize = 32 << 10;
const STEPS: usize = 6;

/// A batch that turns more and more of the file to zeros.
struct Batch<'b> {
    /// The command of a step.
    command: &'b dyn Fn(usize) -> String,
    /// What its zeros are.
    zeros: fn(usize) -> Range<usize>,
}

/// Parts of two blocks, and the bytes between them.
fn middle(step: usize) -> Range<usize> {
    let start = step * 5000 + 100;
    start..start + 4900
}

/// From the end of the file on.
fn end(step: usize) -> Range<usize> {
    LEN - (step + 1) * 2500..LEN - step * 2500
}

fn memory() -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    let plan = mkfs::plan(&MkfsOptions::new(SIZE, Uuid::from_u128(20))).unwrap();
    let root = NewInode::new(FileType::Directory, 0o755);
    mkfs::finish(&mkfs::begin(&device, plan, &root).unwrap(), true).unwrap();
    device
}

/// Runs a batch with a directory made before each step.
fn record(batch: &Batch<'_>) -> Recording {
    let local = tempfile::NamedTempFile::new().unwrap();
    fs::write(local.path(), [7; LEN]).unwrap();
    let recorder = Arc::new(Recorder::with_contents(memory()).unwrap());
    let device = Arc::clone(&recorder);
    let volume = Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap());
    let mut shell = Shell { session: Session::new(&volume).unwrap(), batch: true, json: false };
    let mut run = |line: &str| shell.line(1, line.as_bytes(), &mut Vec::new()).map(drop).unwrap();
    run(&format!("put {} /file", local.path().display()));
    run("sync");
    recorder.mark("durable");
    for step in 0..STEPS {
        run(&format!("mkdir /before-{step}"));
        run(&(batch.command)(step));
    }
    run("sync");
    // Not closed: that writes in place, which is not cut here.
    drop(shell);
    drop(volume);
    recorder.recording().unwrap()
}

/// The remains of a step behind a cut.
#[derive(Debug)]
struct Found {
    directory: bool,
    some_zeros: bool,
    all_zeros: bool,
}

fn look(disk: Arc<dyn BlockDevice>, batch: &Batch<'_>) -> Vec<Found> {
    let volume = Arc::new(Volume::open(disk).unwrap());
    let fs = FileSystem::from_volume(volume);
    let mut bytes = fs.read("/file").unwrap();
    bytes.resize(LEN, 0);
    let step = |step: usize| Found {
        directory: fs.exists(format!("/before-{step}")).unwrap(),
        some_zeros: bytes[(batch.zeros)(step)].contains(&0),
        all_zeros: bytes[(batch.zeros)(step)].iter().all(|byte| *byte == 0),
    };
    (0..STEPS).map(step).collect()
}

/// Cuts a batch behind each event: of the first step that is not whole there may be the beginning,
/// of those behind it nothing.
fn cut_everywhere(batch: &Batch<'_>) {
    let mut recording = record(batch);
    let (mut is_durable, mut cuts) = (false, 0);
    while let Some(event) = recording.step() {
        is_durable |= matches!(event, Event::Mark(_));
        if !is_durable || !recording.has_changed() {
            continue;
        }
        let torn = (0..4).map(|seed| Unflushed::Torn { seed });
        for unflushed in torn.chain([Unflushed::Kept, Unflushed::Dropped]) {
            let place = format!("cut behind event {}, {unflushed:?}", recording.position());
            let found = look(recording.disk(unflushed), batch);
            let mut rest = found.iter().skip_while(|step| step.directory && step.all_zeros);
            let first_is_sound = rest.next().is_none_or(|step| step.directory || !step.some_zeros);
            let others_are_lost = rest.all(|step| !step.directory && !step.some_zeros);
            assert!(first_is_sound && others_are_lost, "{place}: {found:?}");
            cuts += 1;
        }
    }
    assert!(cuts > 10, "{cuts} cuts");
}

#[test]
fn what_was_before_a_range_of_zeros_is_there_if_they_are() {
    for option in ["--punch-hole", "--zero-range", "--zero-range --keep-size"] {
        let command = |step| {
            let Range { start, end } = middle(step);
            format!("fallocate {option} -s {start} -l {} /file", end - start)
        };
        cut_everywhere(&Batch { command: &command, zeros: middle });
    }
}

#[test]
fn what_was_before_a_file_was_cut_is_there_if_it_is() {
    let command = |step| format!("truncate /file {}", end(step).start);
    cut_everywhere(&Batch { command: &command, zeros: end });
}
