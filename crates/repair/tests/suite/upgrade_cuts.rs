//! Upgrades that are cut: the volume is the old one, or the new one, for the kernel as well.

use std::sync::Arc;

use undercroft_block::testing::recorder::{Event, Recorder, Recording, Unflushed};
use undercroft_block::{BlockDevice, FileDevice, Operation};
use undercroft_judges::mount::{Access, LoopMount};
use undercroft_judges::random::Random;
use undercroft_judges::{Xfsprogs, kernel, rounds};
use undercroft_repair::{RepairError, UndoFile, Upgrade, Wanted};
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::Features;
use undercroft_xfs::mkfs::{Feature, Preset};
use undercroft_xfs::recovery::recover;

use crate::files::{self, Files};
use crate::upgrade::{OLD, features, volume, volume_with, write};

/// An upgrade that was recorded.
struct Recorded {
    recorder: Arc<Recorder>,
    files: Files,
    /// Of the old volume, and of the new one.
    features: [Features; 2],
}

impl Recorded {
    fn of(wanted: &Wanted) -> Self {
        let device = volume(OLD);
        let (old, files) = (features(&device), files::of(Arc::clone(&device)));
        assert!(files.len() > 400, "{}", files.len());
        let recorder = Arc::new(Recorder::with_contents(device).unwrap());
        let device = Arc::clone(&recorder) as Arc<dyn BlockDevice>;
        Upgrade::find(Arc::clone(&device), wanted).unwrap().commit(None).unwrap();
        let features = [old, features(&device)];
        Self { recorder, files, features }
    }

    /// Cuts it at flushes, at every so many events, and at the end; counts old and new volumes.
    fn cut(&self, every: usize, mut judge: impl FnMut(&Recording, &str) -> Features) {
        let mut recording = self.recorder.recording().unwrap();
        let total = recording.events().len();
        let mut random = Random::new(0x5eed);
        let mut seen = [0; 2];
        for event in 0.. {
            let step = recording.step();
            let (is_end, is_flush) = (step.is_none(), step.is_some_and(is_flush));
            if is_end || is_flush || random.below(every as u64) == 0 {
                let when = format!("event {event} of {total}");
                let found = judge(&recording, &when);
                let which = self.features.iter().position(|features| *features == found);
                seen[which.unwrap_or_else(|| panic!("{when}: features {found:?}"))] += 1;
            }
            if is_end {
                break;
            }
        }
        assert!(seen[0] > 1 && seen[1] > 1, "{seen:?}");
    }

    /// Recovers it with the engine, whatever was torn.
    fn recovered(&self, recording: &Recording, when: &str) -> Features {
        let mut found = None;
        let seed = recording.position() as u64;
        for unflushed in [Unflushed::Dropped, Unflushed::Kept, Unflushed::Torn { seed }] {
            let disk: Arc<dyn BlockDevice> = recording.disk(unflushed);
            recover(&disk, &mut |_| {}).unwrap_or_else(|error| panic!("{when}: {error}"));
            let mut findings = Vec::new();
            let report = check(Arc::clone(&disk), &CheckOptions::default(), &mut |finding| {
                findings.push(finding.to_string());
            });
            assert!(report.unwrap().is_clean(), "{when}, {unflushed:?}: {findings:?}");
            assert_eq!(files::of(Arc::clone(&disk)), self.files, "{when}, {unflushed:?}");
            found = Some(features(&disk));
        }
        found.unwrap()
    }
}

fn is_flush(event: &Event) -> bool {
    matches!(event, Event::Submitted { change, .. } if change.operation == Operation::Flush)
}

/// All features, and those that are only in the superblock.
fn choices() -> [Wanted; 2] {
    let all = Wanted { preset: Some(Preset::Default), features: Vec::new() };
    let features = [Feature::Bigtime, Feature::Nrext64, Feature::Exchange].map(|it| (it, true));
    [all, Wanted { preset: None, features: features.to_vec() }]
}

#[test]
fn an_upgrade_that_is_cut_is_done_or_not_begun() {
    if !kernel::available_or_report() {
        return;
    }
    for wanted in choices() {
        let recorded = Recorded::of(&wanted);
        recorded.cut(rounds(40, 2), |recording, when| recorded.recovered(recording, when));
    }
}

#[test]
fn the_kernel_mounts_what_an_upgrade_left_that_was_cut() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("cut");
    for wanted in choices() {
        let recorded = Recorded::of(&wanted);
        recorded.cut(rounds(150, 4), |recording, when| {
            let is_kept = recording.position() % 2 == 0;
            let unflushed = if is_kept { Unflushed::Kept } else { Unflushed::Dropped };
            write(&recording.disk(unflushed), &image);
            let mount = LoopMount::new(&image, Access::ReadWrite, &[]);
            let mount = mount.unwrap_or_else(|error| panic!("{when}: {error}"));
            std::fs::write(mount.join("written"), "by the kernel").unwrap();
            std::fs::remove_file(mount.join("written")).unwrap();
            mount.unmount().unwrap();
            let clean = Xfsprogs::newest().unwrap().repair_check(&image);
            clean.unwrap_or_else(|error| panic!("{when}: {error}"));
            let left: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, true).unwrap());
            assert_eq!(files::of(Arc::clone(&left)), recorded.files, "{when}");
            features(&left)
        });
    }
}

/// More than the journal takes: the undo file makes the old volume again, wherever it was cut.
#[test]
fn an_upgrade_that_does_not_fit_the_journal_is_taken_back() {
    if !kernel::available_or_report() {
        return;
    }
    let format = [OLD, &["-i", "size=2048", "-l", "size=2048b"]].concat();
    let script = "mkdir d; cd d; for i in $(seq 4500); do : > $i; done";
    let device = volume_with(320 << 20, &format, script);
    let (old, files) = (features(&device), files::of(Arc::clone(&device)));
    let wanted = Wanted { preset: None, features: vec![(Feature::Parent, true)] };
    let directory = tempfile::tempdir().unwrap();
    let undo = directory.path().join("undo");
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let device = Arc::clone(&recorder) as Arc<dyn BlockDevice>;
    let upgrade = Upgrade::find(Arc::clone(&device), &wanted).unwrap();
    assert!(!upgrade.fits_journal());
    assert!(matches!(upgrade.commit(None), Err(RepairError::NeedsUndo { .. })));
    upgrade.commit(Some(&undo)).unwrap();
    assert!(features(&device).parent_pointers());
    let image = directory.path().join("image");
    write(&device, &image);
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
    assert_eq!(files::of(device), files);
    let undo = UndoFile::open(&undo).unwrap();
    let mut recording = recorder.recording().unwrap();
    let step = recording.events().len() / rounds(6, 100);
    for event in 0.. {
        let is_end = recording.step().is_none();
        if event % step == 0 || is_end {
            let disk: Arc<dyn BlockDevice> = recording.disk(Unflushed::Torn { seed: event as u64 });
            undo.take_back(&disk).unwrap();
            assert!(features(&disk) == old, "event {event}");
            let report = check(Arc::clone(&disk), &CheckOptions::default(), &mut |_| {}).unwrap();
            assert!(report.is_clean(), "event {event}");
            assert_eq!(files::of(disk), files, "event {event}");
        }
        if is_end {
            break;
        }
    }
}
