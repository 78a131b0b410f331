//! Repairs that are cut: the volume is the damaged one, or the repaired one.

use std::path::Path;
use std::sync::Arc;

use undercroft_block::testing::recorder::{Event, Recorder, Unflushed};
use undercroft_block::{BlockDevice, MemoryDevice, Operation, Sector, read_exact_at, write_all_at};
use undercroft_fs::{FileSystem, OpenOptions};
use undercroft_judges::random::Random;
use undercroft_judges::rounds;
use undercroft_repair::{Plan, RepairError, UndoFile};
use undercroft_testkit::xfs::mutation::Subject;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::{FileType, Superblock};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use undercroft_xfs::recovery::recover;
use uuid::Uuid;

use crate::files;

const SIZE: u64 = 96 << 20;

pub(crate) fn volume() -> Arc<dyn BlockDevice> {
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
fn cut_zeroed(name: &str, zeroes: &[(u64, usize)], from_superblock: bool) {
    let device = volume();
    let before = files::of(Arc::clone(&device));
    assert_eq!(before.len(), 8 * 41);
    for (sector, count) in zeroes {
        write_all_at(device.as_ref(), Sector(*sector), &vec![0; count * 512]).unwrap();
    }
    let damaged = bytes_of(&device);
    let recorded = Recorded::of(device, None).unwrap().unwrap();
    let right = files::right(&before, &recorded.full);
    assert!(right * 100 >= before.len() * 95, "{name}: {right} of {}", before.len());
    let step = rounds(3, 1);
    let seen = recorded.cut(name, &damaged, !from_superblock, |event, _| event % step == 0);
    assert!(seen[0] > 0 && seen[1] > 0, "{name}: {seen:?}");
}

/// A repair that was recorded.
struct Recorded {
    recorder: Arc<Recorder>,
    /// What it leaves.
    full: files::Files,
    undo: Option<UndoFile>,
}

impl Recorded {
    /// Repairs a volume; `None` if it is sound. One whose changes do not fit the journal needs an undo file.
    fn of(device: Arc<dyn BlockDevice>, undo: Option<&Path>) -> Result<Option<Self>, RepairError> {
        let recorder = Arc::new(Recorder::with_contents(device).unwrap());
        let plan = Plan::find(Arc::clone(&recorder) as Arc<dyn BlockDevice>)?;
        if plan.is_sound() {
            return Ok(None);
        }
        let undo = undo.filter(|_| !plan.fits_journal());
        plan.commit(undo)?;
        let full = files::of(Arc::clone(&recorder) as Arc<dyn BlockDevice>);
        let undo = undo.map(|path| UndoFile::open(path).unwrap());
        Ok(Some(Self { recorder, full, undo }))
    }

    /// Cuts it at the events that are wanted and at the end; returns how often it was done, and not begun.
    fn cut(
        &self,
        name: &str,
        damaged: &[u8],
        is_replayed: bool,
        mut is_wanted: impl FnMut(usize, Option<&Event>) -> bool,
    ) -> [usize; 2] {
        let mut recording = self.recorder.recording().unwrap();
        let (mut repaired, mut as_before, mut event) = (0, 0, 0);
        loop {
            let step = recording.step();
            let is_end = step.is_none();
            event += 1;
            if !is_end && !is_wanted(event, step) {
                continue;
            }
            for unflushed in
                [Unflushed::Dropped, Unflushed::Kept, Unflushed::Torn { seed: event as u64 }]
            {
                let disk: Arc<dyn BlockDevice> = recording.disk(unflushed);
                let when = format!("{name}, event {event}, {unflushed:?}");
                let is_done = match &self.undo {
                    Some(undo) => self.taken_back(undo, damaged, &disk, &when),
                    None => self.completed(damaged, &disk, &when, is_replayed),
                };
                *(if is_done { &mut repaired } else { &mut as_before }) += 1;
            }
            if is_end {
                return [repaired, as_before];
            }
        }
    }

    /// Anybody's replay completes it, or it was not begun and can be.
    fn completed(
        &self,
        damaged: &[u8],
        disk: &Arc<dyn BlockDevice>,
        when: &str,
        is_replayed: bool,
    ) -> bool {
        let replayed = recover(disk, &mut |_| {});
        if is_replayed {
            // There is a superblock to begin with.
            replayed.as_ref().unwrap_or_else(|error| panic!("{when}: {error}"));
        }
        if is_clean(disk) {
            assert_eq!(files::of(Arc::clone(disk)), self.full, "{when}");
            return true;
        }
        if replayed.is_ok() {
            let now = bytes_of(disk);
            let differs =
                |(index, (old, new)): (usize, (&[u8], &[u8]))| (old != new).then_some(index);
            let blocks = damaged.chunks(4096).zip(now.chunks(4096)).enumerate();
            let journal = undercroft_journal(&now);
            let outside: Vec<_> =
                blocks.filter_map(differs).filter(|block| !journal.contains(block)).collect();
            assert!(outside.is_empty(), "{when}: blocks {outside:?} changed");
        }
        let again = Plan::find(Arc::clone(disk)).unwrap_or_else(|error| panic!("{when}: {error}"));
        again.commit(None).unwrap();
        assert!(is_clean(disk), "{when}");
        assert_eq!(files::of(Arc::clone(disk)), self.full, "{when}");
        false
    }

    /// The undo file makes the volume what it was; whether the repair was done.
    fn taken_back(
        &self,
        undo: &UndoFile,
        damaged: &[u8],
        disk: &Arc<dyn BlockDevice>,
        when: &str,
    ) -> bool {
        let is_done = is_clean(disk) && files::of(Arc::clone(disk)) == self.full;
        undo.take_back(disk).unwrap();
        assert!(bytes_of(disk) == damaged, "{when}: the volume is not what it was");
        is_done
    }
}

/// Repairs of volumes with several wrong fields, cut at every flush and at random points.
#[test]
fn repairs_of_mutants_that_are_cut_are_done_or_not_begun() {
    let pristine = bytes_of(&volume());
    let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    let seed = number("UNDERCROFT_SEED", 0x5eed);
    let mut subject = Subject::new(memory, &pristine, seed).unwrap();
    let (most, points) = (number("UNDERCROFT_CUTS", rounds(2, 50)), number("UNDERCROFT_POINTS", 8));
    let directory = tempfile::tempdir().unwrap();
    let (mut cut, mut seen, mut refused) = (0, [0, 0], 0);
    while cut < most {
        assert!(refused < 10 * most, "most volumes are refused");
        let undo = directory.path().join("undo");
        let _ = std::fs::remove_file(&undo);
        let mut damage = String::new();
        let done = subject.round(6, |subject| {
            damage = subject.damage().join(", ");
            let damaged = bytes_of(subject.device());
            let copy: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
            write_all_at(copy.as_ref(), Sector(0), &damaged).unwrap();
            let recorded = Recorded::of(copy, Some(&undo)).ok()??;
            let events = recorded.recorder.recording().unwrap().events().len() as u64;
            let share = (events / points).max(1);
            let mut random = Random::new(seed + cut);
            let has_superblock = Superblock::decode(&damaged[..4096]).is_ok();
            Some(recorded.cut(&damage, &damaged, has_superblock, |_, event| {
                matches!(event, Some(Event::Submitted { change, .. })
                    if change.operation == Operation::Flush)
                    || random.below(share) == 0
            }))
        });
        match done.unwrap() {
            Some(more) => {
                cut += 1;
                seen = [seen[0] + more[0], seen[1] + more[1]];
            }
            None => refused += 1,
        }
    }
    println!(
        "{cut} repairs cut, {} times done and {} not begun; {refused} sound or refused",
        seen[0], seen[1]
    );
    assert!(seen[0] > 0 && seen[1] > 0);
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The blocks of the journal, as the superblock says.
fn undercroft_journal(volume: &[u8]) -> std::ops::Range<usize> {
    let geometry = Superblock::decode(&volume[..4096]).unwrap().geometry();
    let start = (geometry.sector(geometry.log_start).0 / 8) as usize;
    start..start + geometry.log_blocks as usize
}

#[test]
fn a_repair_that_is_cut_is_done_or_not_begun() {
    // Headers of the first group without the superblock, and inodes of the second half of the first chunk.
    cut_zeroed("headers", &[(1, 3)], false);
    cut_zeroed("inodes", &[(160, 16)], false);
}

#[test]
fn a_repair_of_the_superblock_that_is_cut_can_be_run_again() {
    cut_zeroed("superblock", &[(0, 1)], true);
}
