//! Operations on the data of files against files in memory, and against the kernel on a mounted
//! copy; judged by our own check and by `xfs_repair -n`.

mod moved;

use std::sync::Arc;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, kernel, rounds};
use undercroft_testkit::xfs::data::history::{self, FORMATS, Format, History, prepare};
use undercroft_testkit::xfs::data::{crash, mirror};
use undercroft_testkit::xfs::judged;

const FILES: usize = 4;

/// A history on this format: every content is compared with memory, then read by the kernel.
fn run(format: &Format, seed: u64, live: bool, steps: u64) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("data.img");
    prepare(&image, format, 512 << 20, FILES);
    let mut history = History::start(&image, format, FILES, (seed, live));
    history.run(steps);
    let files = history.files.clone();
    history.finish(&image);
    judged::sound(&image, &format!("{}, seed {seed}", format.name));
    if kernel::available_or_report() {
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        mirror::compare(&mount, &files);
        mount.unmount().unwrap();
    }
}

#[test]
fn contents_are_those_of_memory() {
    for (seed, format) in (0..).zip(&FORMATS) {
        run(format, seed, true, rounds(100, 200));
    }
}

#[test]
fn contents_are_those_of_memory_without_the_journal() {
    for (seed, format) in (20..).zip(FORMATS.iter().step_by(2)) {
        run(format, seed, false, rounds(100, 200));
    }
}

/// The same list of operations here and by the kernel: the same contents.
#[test]
fn the_kernel_does_the_same() {
    if !kernel::available_or_report() {
        return;
    }
    for (seed, format) in [&FORMATS[0], &FORMATS[5]].into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let (image, copy) = (directory.path().join("ours.img"), directory.path().join("its.img"));
        prepare(&image, format, 512 << 20, FILES);
        std::fs::copy(&image, &copy).unwrap();
        let mut history = History::start(&image, format, FILES, (100 + seed as u64, true));
        let operations = history.run(150);
        let mount = LoopMount::new(&copy, Access::ReadWrite, &[]).unwrap();
        operations.iter().for_each(|operation| mirror::perform(&mount, operation));
        mirror::compare(&mount, &history.files);
        mount.unmount().unwrap();
        history.finish(&image);
        judged::sound(&image, format.name);
    }
}

/// A volume that is full refuses, stays sound, and has all its space again once it is emptied.
#[test]
fn a_full_volume_refuses_and_an_emptied_one_has_its_space_again() {
    for (seed, format) in [&FORMATS[0], &FORMATS[3], &FORMATS[5]].into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("full.img");
        prepare(&image, format, 64 << 20, 8);
        let before = History::start(&image, format, 8, (0, false)).finish(&image);
        let mut history = History::start(&image, format, 8, (200 + seed as u64, true));
        history.set_size_max(8 << 20);
        for _ in 0..rounds(3, 8) {
            history.fill();
            history.run(20);
        }
        history.fill();
        let left = history.finish(&image);
        judged::sound(&image, &format!("{}, full, {left} blocks left", format.name));
        let mut history = History::start(&image, format, 8, (0, true));
        history.empty();
        assert_eq!(history.finish(&image), before, "{}: free blocks", format.name);
        judged::sound(&image, &format!("{}, emptied", format.name));
    }
}

/// Threads that change files of their own meet in groups and trees, while others read.
#[test]
fn threads_share_a_volume() {
    const THREADS: usize = 4;
    for (number, format) in (0..).zip([&FORMATS[0], &FORMATS[5], &FORMATS[3]]) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("threads.img");
        prepare(&image, format, 512 << 20, THREADS * 2);
        let volume = Arc::new(history::open(&image, true));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let volume = Arc::clone(&volume);
                scope.spawn(move || {
                    let seed = 300 + number * 10 + thread as u64;
                    let files = [thread * 2, thread * 2 + 1];
                    History::of(volume, format, &files, (seed, true)).run(150);
                });
            }
        });
        volume.close().unwrap();
        drop(volume);
        judged::sound(&image, &format!("{}, threads", format.name));
    }
}

/// Stored, unwritten and shared ranges are where the kernel sees them.
#[test]
fn maps_are_those_that_the_kernel_sees() {
    if !kernel::available_or_report() {
        return;
    }
    for (seed, format) in (400..).zip([&FORMATS[0], &FORMATS[5]]) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("maps.img");
        prepare(&image, format, 512 << 20, FILES);
        let mut history = History::start(&image, format, FILES, (seed, true));
        history.run(120);
        let maps: Vec<_> = (0..FILES).map(|file| history.map(file)).collect();
        assert!(maps.iter().flatten().any(|extent| extent.shared), "nothing is shared");
        history.finish(&image);
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        for (file, map) in maps.iter().enumerate() {
            assert_eq!(mirror::map(&mount, file), *map, "file {file}");
        }
        mount.unmount().unwrap();
    }
}

/// After any crash the kernel's replay and ours have all that was synced, and the same beyond that.
#[test]
fn synced_data_is_there_after_a_crash() {
    if !kernel::available_or_report() {
        return;
    }
    for (seed, format) in (500..).zip([&FORMATS[0], &FORMATS[3], &FORMATS[5]]) {
        crash::run(format, seed, 40, rounds(4, 6));
    }
}

/// A range is taken out of a file of hundreds of extents, or put into it, as a whole, at any moment
/// of a crash.
#[test]
fn ranges_are_taken_out_and_put_in_as_a_whole() {
    if !kernel::available_or_report() {
        return;
    }
    for (seed, format) in (600..).zip([&FORMATS[0], &FORMATS[3], &FORMATS[5]]) {
        let seen = moved::run(format, seed, 150, rounds(12, 24));
        assert!(seen.before > 0 && seen.after > 0, "{}: {seen:?}", format.name);
        assert_eq!(seen.between, 0, "{}: {seen:?}", format.name);
    }
}

/// What does not fit one checkpoint moves one extent at a time: a crash leaves what a kernel's may.
#[test]
fn what_is_too_much_for_one_checkpoint_moves_in_order() {
    if !kernel::available_or_report() {
        return;
    }
    let small = Format {
        name: "64 KiB blocks, small journal",
        arguments: &["-b", "size=65536", "-l", "size=73m"],
        block_size: 65536,
        reflink: true,
    };
    // Whether a checkpoint is closed while something moves is up to the threads: once is enough.
    let between = (700..712).any(|seed| moved::run(&small, seed, 300, rounds(12, 24)).between > 0);
    assert!(between, "no cut met a move under way");
}
