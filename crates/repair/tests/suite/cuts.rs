//! Repairs that are cut: the volume is the damaged one, or the repaired one.

use std::sync::Arc;

use undercroft_block::testing::recorder::{Recorder, Unflushed};
use undercroft_block::{BlockDevice, MemoryDevice, Sector, read_exact_at, write_all_at};
use undercroft_fs::{FileSystem, OpenOptions};
use undercroft_judges::rounds;
use undercroft_repair::Plan;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use undercroft_xfs::recovery::recover;
use uuid::Uuid;

use crate::files;

const SIZE: u64 = 96 << 20;

fn volume() -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    let plan = mkfs::plan(&MkfsOptions::new(SIZE, Uuid::from_u128(7))).unwrap();
    let volume = mkfs::begin(&device, plan, &NewInode::new(FileType::Directory, 0o755)).unwrap();
    mkfs::finish(&volume, false).unwrap();
    drop(volume);
    let fs = FileSystem::open(Arc::clone(&device), &OpenOptions::writable()).unwrap();
    for directory in 0..8 {
        fs.create_dir(format!("/d{directory}")).unwrap();
        for file in 0..40 {
            let content = vec![file as u8; 1000 * (file % 7) + directory];
            fs.write(format!("/d{directory}/file-with-a-name-{file}"), content).unwrap();
        }
    }
    fs.close().unwrap();
    device
}

fn bytes_of(device: &Arc<dyn BlockDevice>) -> Vec<u8> {
    let mut bytes = vec![0; device.capacity().0 as usize * 512];
    read_exact_at(device.as_ref(), Sector(0), &mut bytes).unwrap();
    bytes
}

fn is_clean(device: &Arc<dyn BlockDevice>) -> bool {
    let options = CheckOptions::default();
    check(Arc::clone(device), &options, &mut |_| {}).is_ok_and(|report| report.is_clean())
}

/// Zeroes, by first sector and sectors.
fn cut_everywhere(name: &str, zeroes: &[(u64, usize)], from_superblock: bool) {
    let device = volume();
    let before = files::of(Arc::clone(&device));
    assert_eq!(before.len(), 8 * 41);
    for (sector, count) in zeroes {
        write_all_at(device.as_ref(), Sector(*sector), &vec![0; count * 512]).unwrap();
    }
    let damaged = bytes_of(&device);
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let plan = Plan::find(Arc::clone(&recorder) as Arc<dyn BlockDevice>).unwrap();
    assert!(!plan.is_sound() && plan.fits_journal());
    plan.commit(None).unwrap();
    let full = files::of(Arc::clone(&recorder) as Arc<dyn BlockDevice>);
    let right = files::right(&before, &full);
    assert!(right * 100 >= before.len() * 95, "{name}: {right} of {}", before.len());
    let mut recording = recorder.recording().unwrap();
    let (mut repaired, mut as_before, step) = (0, 0, rounds(3, 1));
    let mut event = 0;
    loop {
        let is_end = recording.step().is_none();
        event += 1;
        if !is_end && event % step != 0 {
            continue;
        }
        for unflushed in
            [Unflushed::Dropped, Unflushed::Kept, Unflushed::Torn { seed: event as u64 }]
        {
            let disk: Arc<dyn BlockDevice> = recording.disk(unflushed);
            let when = format!("{name}, event {event}, {unflushed:?}");
            // Anybody's replay completes it, if there is a superblock to begin with.
            let replayed = recover(&disk, &mut |_| {});
            if !from_superblock {
                replayed.as_ref().unwrap_or_else(|error| panic!("{when}: {error}"));
            }
            if is_clean(&disk) {
                assert_eq!(files::of(Arc::clone(&disk)), full, "{when}");
                repaired += 1;
                continue;
            }
            as_before += 1;
            if replayed.is_ok() {
                let now = bytes_of(&disk);
                let differs =
                    |(index, (old, new)): (usize, (&[u8], &[u8]))| (old != new).then_some(index);
                let blocks = damaged.chunks(4096).zip(now.chunks(4096)).enumerate();
                let changed: Vec<_> = blocks.filter_map(differs).collect();
                let journal = undercroft_journal(&damaged);
                let outside: Vec<_> =
                    changed.iter().filter(|block| !journal.contains(*block)).collect();
                assert!(outside.is_empty(), "{when}: blocks {outside:?} changed");
            }
            let again = Plan::find(Arc::clone(&disk)).unwrap();
            again.commit(None).unwrap();
            assert!(is_clean(&disk), "{when}");
            assert_eq!(files::of(disk), full, "{when}");
        }
        if is_end {
            break;
        }
    }
    assert!(repaired > 0 && as_before > 0, "{name}: {repaired} and {as_before}");
}

/// The blocks of the journal, as the superblock says.
fn undercroft_journal(volume: &[u8]) -> std::ops::Range<usize> {
    use undercroft_xfs::format::Superblock;
    let geometry = Superblock::decode(&volume[..4096]).unwrap().geometry();
    let start = (geometry.sector(geometry.log_start).0 / 8) as usize;
    start..start + geometry.log_blocks as usize
}

#[test]
fn a_repair_that_is_cut_is_done_or_not_begun() {
    // Headers of the first group without the superblock, and inodes of the second half of the first chunk.
    cut_everywhere("headers", &[(1, 3)], false);
    cut_everywhere("inodes", &[(160, 16)], false);
}

#[test]
fn a_repair_of_the_superblock_that_is_cut_can_be_run_again() {
    cut_everywhere("superblock", &[(0, 1)], true);
}
