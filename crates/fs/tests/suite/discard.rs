//! Free space of an open volume given back, with the power cut at every write: no file that a crash brings
//! back has lost its blocks.

use std::sync::Arc;

use undercroft_block::testing::recorder::{Event, Recorder, Recording, Unflushed};
use undercroft_block::{BlockDevice, MemoryDevice};
use undercroft_fs::{FileSystem, NewFile};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

const SIZE: u64 = 64 << 20;
const ROUNDS: usize = 8;
const BYTES: usize = 60_000;

fn contents(round: usize, stays: bool) -> Vec<u8> {
    vec![(2 * round + usize::from(stays) + 1) as u8; BYTES]
}

fn write(fs: &FileSystem, path: &str, bytes: &[u8]) {
    let file = fs.create_file(path, &NewFile::new(0o644)).unwrap();
    file.write_at(0, bytes).unwrap();
    file.close().unwrap();
}

/// Rounds of two files that are written and made durable, of which one is removed. Space is given back
/// before the removal is durable, and behind that.
fn record() -> Recording {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    let plan = mkfs::plan(&MkfsOptions::new(SIZE, Uuid::from_u128(63))).unwrap();
    let root = NewInode::new(FileType::Directory, 0o755);
    mkfs::finish(&mkfs::begin(&device, plan, &root).unwrap(), true).unwrap();
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let device: Arc<dyn BlockDevice> = recorder.clone();
    let volume = Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap());
    let fs = FileSystem::from_volume(Arc::clone(&volume));
    volume.discard_freed().unwrap();
    let mut bytes = 0;
    for round in 0..ROUNDS {
        // It takes the blocks of the one that was removed before.
        write(&fs, &format!("gone-{round}"), &contents(round, false));
        write(&fs, &format!("stays-{round}"), &contents(round, true));
        fs.sync_and_wait().unwrap();
        recorder.mark("durable");
        fs.remove_file(format!("gone-{round}")).unwrap();
        if round % 2 == 0 {
            fs.sync_and_wait().unwrap();
        } else {
            // What was free for good is busy again.
            bytes += volume.discard_freed().unwrap();
        }
        if round % 4 == 0 {
            bytes += volume.discard_freed().unwrap();
        }
    }
    assert!(bytes >= BYTES as u64, "{bytes}");
    let trimmed = volume.discard_free(0..u64::MAX, 0, &mut |_| {}).unwrap();
    assert!(trimmed.bytes > SIZE / 4);
    // Not closed: that writes in place, which is not cut here.
    drop((fs, volume));
    recorder.recording().unwrap()
}

#[test]
fn what_a_crash_brings_back_has_its_blocks() {
    let mut recording = record();
    let (mut durable, mut cuts) = (0, 0);
    while let Some(event) = recording.step() {
        durable += usize::from(matches!(event, Event::Mark(_)));
        if !recording.has_changed() {
            continue;
        }
        let torn = (0..2).map(|seed| Unflushed::Torn { seed });
        for unflushed in torn.chain([Unflushed::Kept, Unflushed::Dropped]) {
            let place = format!("cut behind event {}, {unflushed:?}", recording.position());
            let disk = recording.disk(unflushed);
            let options = CheckOptions::default();
            let mut faults = Vec::new();
            let report = check(Arc::clone(&disk), &options, &mut |finding| faults.push(finding));
            assert!(report.unwrap().is_clean(), "{place}: {faults:?}");
            let fs = FileSystem::from_volume(Arc::new(Volume::open(disk).unwrap()));
            for round in 0..durable {
                let stays = fs.read(format!("stays-{round}")).unwrap();
                assert!(stays == contents(round, true), "{place}, round {round}");
                if fs.exists(format!("gone-{round}")).unwrap() {
                    let gone = fs.read(format!("gone-{round}")).unwrap();
                    assert!(gone == contents(round, false), "{place}, round {round}: removed");
                }
            }
            cuts += 1;
        }
    }
    assert!(cuts > 50, "{cuts} cuts");
}
