//! Runs long random histories of operations on the data of files, in every format, on volumes that
//! are now and then full; the kernel does the same on a copy, and replays what crashes leave, as we
//! do; the judges look at all of it. Then tickets for the durability of files, cut off at random:
//! every file whose ticket was answered is there.
//!
//! `cargo run --release -p undercroft-xfs --example soak_data -- OPERATIONS SEED [FORMAT]`

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::process::ExitCode;
use std::time::Instant;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, kernel};
use undercroft_testkit::xfs::data::history::{FORMATS, Format, History, prepare};
use undercroft_testkit::xfs::data::{crash, mirror};
use undercroft_testkit::xfs::fsync::cuts;
use undercroft_testkit::xfs::judged;

const FILES: usize = 6;

/// Operations for which there is one run of tickets.
const OPERATIONS_PER_RUN: u64 = 300;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let (Some(operations), Some(seed)) = (number(0), number(1)) else {
        eprintln!("usage: soak_data OPERATIONS SEED [FORMAT]");
        return ExitCode::FAILURE;
    };
    for (number, format) in (0..).zip(&FORMATS) {
        if words.get(2).is_some_and(|only| only != format.name) {
            continue;
        }
        roomy(format, operations, seed + number);
        full(format, operations / 4, seed + number);
        if kernel::obstacle().is_none() {
            let cuts = operations / 50;
            crash::run(format, seed + number, operations as usize / 10, cuts as usize);
            println!("{}: {cuts} crashes, all that was synced is there; sound", format.name);
        }
    }
    let runs = operations / OPERATIONS_PER_RUN;
    let count: usize = (0..runs).map(|run| cuts::run(seed + run, 12)).sum();
    println!("tickets: {count} cuts of {runs} runs; what was answered is there, whole");
    ExitCode::SUCCESS
}

/// With space for everything, beside the kernel.
fn roomy(format: &Format, operations: u64, seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let (image, copy) = (directory.path().join("ours.img"), directory.path().join("its.img"));
    prepare(&image, format, 1 << 30, FILES);
    std::fs::copy(&image, &copy).unwrap();
    let begun = Instant::now();
    let mut history = History::start(&image, format, FILES, (seed, true));
    let done = history.run(operations);
    let (files, seconds) = (history.files.clone(), begun.elapsed().as_secs_f64());
    history.finish(&image);
    judged::sound(&image, &format!("{}, seed {seed}", format.name));
    let obstacle = kernel::obstacle();
    if obstacle.is_none() {
        let mount = LoopMount::new(&copy, Access::ReadWrite, &[]).unwrap();
        done.iter().for_each(|operation| mirror::perform(&mount, operation));
        mirror::compare(&mount, &files);
        mount.unmount().unwrap();
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        mirror::compare(&mount, &files);
        mount.unmount().unwrap();
    }
    let beside = obstacle.unwrap_or("and the kernel's are the same");
    let name = format.name;
    println!("{name}: {operations} operations in {seconds:.1} s with all compared; {beside}");
}

/// On a volume that is full again and again; at the end all its space is free.
fn full(format: &Format, operations: u64, seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("full.img");
    prepare(&image, format, format.small_volume(), FILES);
    let before = History::start(&image, format, FILES, (seed, true)).finish(&image);
    let mut history = History::start(&image, format, FILES, (seed, true));
    history.set_size_max(12 << 20);
    for _ in 0..operations.div_ceil(15) {
        history.fill();
        history.run(15);
    }
    let refused = history.refused;
    history.empty();
    assert_eq!(history.finish(&image), before, "{}: free blocks", format.name);
    judged::sound(&image, &format!("{}, full, seed {seed}", format.name));
    println!("{}: full volume, {refused} refused, all space free again; sound", format.name);
}
