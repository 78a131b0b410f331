//! Upgrades that are cut: the volume is the old one, or the new one, for the kernel as well.

use std::path::Path;
use std::sync::Arc;

use undercroft_block::testing::recorder::{Event, Recorder, Unflushed};
use undercroft_block::{
    BlockDevice, FileDevice, MemoryDevice, Operation, Sector, read_exact_at, write_all_at,
};
use undercroft_judges::mount::{Access, LoopMount};
use undercroft_judges::{Xfsprogs, kernel, rounds};
use undercroft_repair::{Upgrade, Wanted};
use undercroft_xfs::format::Superblock;
use undercroft_xfs::mkfs::{Feature, Preset};

use crate::files;

const SIZE: u64 = 320 << 20;

/// What the kernel puts on a volume.
const SCRIPT: &str = "for d in $(seq 8); do mkdir -p d$d/deep/deeper; \
                      for i in $(seq 60); do head -c $((i * 700)) /dev/urandom > d$d/file-$i; done; \
                      ln d$d/file-1 link-$d; ln -s $(head -c $((d * 70)) /dev/zero | tr '\\0' s) d$d/link; done; \
                      setfattr -n user.big -v $(head -c 9000 /dev/zero | tr '\\0' x) d4/file-3";

pub(crate) fn volume(directory: &Path, arguments: &[&str]) -> Arc<dyn BlockDevice> {
    let image = directory.join("made");
    Xfsprogs::newest().unwrap().mkfs(&image, SIZE, arguments).unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    let done =
        std::process::Command::new("bash").args(["-ec", SCRIPT]).current_dir(mount.path()).status();
    assert!(done.unwrap().success());
    mount.unmount().unwrap();
    let bytes = std::fs::read(&image).unwrap();
    let device = Arc::new(MemoryDevice::new(bytes.len() as u64));
    write_all_at(device.as_ref(), Sector(0), &bytes).unwrap();
    device
}

fn write(disk: &Arc<dyn BlockDevice>, image: &Path) {
    let mut bytes = vec![0; disk.capacity().0 as usize * 512];
    read_exact_at(disk.as_ref(), Sector(0), &mut bytes).unwrap();
    let _ = std::fs::remove_file(image);
    let file = std::fs::File::create(image).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    drop(file);
    let device = FileDevice::open(image, false).unwrap();
    for (index, piece) in bytes.chunks(1 << 16).enumerate() {
        if piece.iter().any(|byte| *byte != 0) {
            write_all_at(&device, Sector(index as u64 * 128), piece).unwrap();
        }
    }
}

#[test]
fn an_upgrade_that_is_cut_is_done_or_not_begun_for_the_kernel() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let old = [
        "-m",
        "finobt=1,inobtcount=0,rmapbt=0,reflink=0,bigtime=0",
        "-i",
        "nrext64=0,exchange=0",
        "-n",
        "parent=0",
    ];
    let device = volume(directory.path(), &old);
    let before = files::of(Arc::clone(&device));
    let recorder = Arc::new(Recorder::with_contents(device).unwrap());
    let wanted = Wanted { preset: Some(Preset::Default), features: vec![] };
    let upgrade = Upgrade::find(Arc::clone(&recorder) as Arc<dyn BlockDevice>, &wanted).unwrap();
    upgrade.commit(None).unwrap();
    let mut recording = recorder.recording().unwrap();
    let total = recording.events().len();
    let image = directory.path().join("cut");
    let step = (total / rounds(12, 200)).max(1);
    let mut seen = [0; 2];
    for event in 0.. {
        let next = recording.step();
        let is_end = next.is_none();
        let is_flush = matches!(next, Some(Event::Submitted { change, .. }) if change.operation == Operation::Flush);
        if !is_end && !is_flush && event % step != 0 {
            continue;
        }
        let disk: Arc<dyn BlockDevice> = recording.disk(Unflushed::Torn { seed: event as u64 });
        write(&disk, &image);
        match LoopMount::new(&image, Access::ReadWrite, &[]) {
            Ok(mount) => mount.unmount().unwrap(),
            Err(error) => {
                println!("event {event} of {total}: {error}");
                match LoopMount::new(&image, Access::ReadWrite, &[]) {
                    Ok(mount) => {
                        println!("second ok");
                        mount.unmount().unwrap()
                    }
                    Err(error) => println!("event {event} of {total} again: {error}"),
                }
            }
        }
        let clean = Xfsprogs::newest().unwrap().repair_check(&image);
        println!("event {event} of {total}: {clean:?}");
        let left: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, true).unwrap());
        let mut first = vec![0; 4096];
        read_exact_at(left.as_ref(), Sector(0), &mut first).unwrap();
        let is_new = Superblock::decode(&first).unwrap().features.rmapbt();
        println!("event {event} of {total}: new {is_new}");
        seen[usize::from(is_new)] += 1;
        assert_eq!(files::of(left), before, "event {event}");
        if is_end {
            break;
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    let _ = Feature::Rmapbt;
}
