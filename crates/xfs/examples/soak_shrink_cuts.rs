//! Makes random volumes smaller, cuts that at every flush and at random points, and has the judges look
//! at what each crash left.
//!
//! `cargo run --release -p undercroft-xfs --example soak_shrink_cuts -- VOLUMES CUTS SEED`

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use undercroft_block::Operation;
use undercroft_block::testing::recorder::{Event, Recording, Unflushed};
use undercroft_judges::random::Random;
use undercroft_testkit::disk::in_memory;
use undercroft_testkit::xfs::journal::crash::Cut;
use undercroft_testkit::xfs::volume::random;
use undercroft_testkit::xfs::volume::shrink_judge::Judge;
use undercroft_xfs::Volume;

/// Every how many cuts the kernel judges one, and every how many the shrink goes on.
const EVERY: [u32; 2] = [1, 3];

fn main() -> ExitCode {
    let numbers: Vec<Option<u64>> =
        std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let [Some(volumes), Some(cuts), Some(mut seed)] = numbers[..] else {
        eprintln!("usage: soak_shrink_cuts VOLUMES CUTS SEED");
        return ExitCode::FAILURE;
    };
    let (mut done, mut looked, begun) = (0, 0, Instant::now());
    let cuts = cuts.div_ceil(volumes.max(1));
    while done < volumes {
        if let Some(judge) = volume(seed, cuts) {
            looked += judge.seen + judge.guarded;
            done += 1;
        }
        seed += 1;
    }
    let seconds = begun.elapsed().as_secs();
    println!("{volumes} volumes, {looked} cuts in {seconds} s: all sound");
    ExitCode::SUCCESS
}

/// Cuts the shrink of the volume of a seed; `None` if it cannot shrink.
fn volume(seed: u64, cuts: u64) -> Option<Judge> {
    let directory = tempfile::tempdir().unwrap();
    let (image, mut random) = (directory.path().join("image"), Random::new(seed));
    let format = random::aged(&image, &mut random, seed);
    let to = random::bytes_to(&image, &mut random)?;
    let memory = in_memory(&image);
    let units = Units::of(&Volume::open(Arc::clone(&memory)).unwrap());
    let (mut judge, recording) = Judge::record(memory, to, EVERY);
    std::fs::remove_file(&image).unwrap();
    println!("{seed}: {format}: {} events", recording.events().len());
    for_each_cut(recording, cuts, &mut random, units, &mut |cut, by_kernel| {
        judge.look(cut, by_kernel);
    });
    println!("{seed}: {} cuts sound, {} more guarded", judge.seen, judge.guarded);
    Some(judge)
}

/// The units of a disk that writes each as a whole.
#[derive(Clone, Copy)]
struct Units {
    /// At least a block, so that none is torn.
    sectors: u64,
    /// The kernel recovers from tears between them: it does not where one checksum is over several.
    by_kernel: bool,
}

impl Units {
    fn of(volume: &Volume) -> Self {
        let geometry = volume.geometry();
        let sectors = geometry.block_size().max(4096) as u64 / 512;
        Self { sectors, by_kernel: geometry.dir_block_size() == geometry.block_size() }
    }
}

/// Cuts a recording at every flush, and at `cuts` random events.
fn for_each_cut(
    mut recording: Recording,
    cuts: u64,
    random: &mut Random,
    units: Units,
    look: &mut dyn FnMut(&Cut, bool),
) {
    let events = recording.events().len() as u64;
    while let Some(event) = recording.step() {
        let change = if let Event::Submitted { change, .. } = event { Some(change) } else { None };
        let at_flush = change.is_some_and(|change| change.operation == Operation::Flush);
        let here = cuts / events + u64::from(random.below(events) < cuts % events);
        for _ in 0..here + u64::from(at_flush) {
            let seed = random.bits();
            let unflushed = match random.below(4) {
                0 => Unflushed::Dropped,
                1 => Unflushed::Kept,
                2 => Unflushed::Torn { seed },
                _ => Unflushed::TornInUnits { seed, sectors: units.sectors },
            };
            let what = format!("event {} of {events}, {unflushed:?}", recording.position());
            let cut = Cut { disk: recording.disk(unflushed), durable: 0, what };
            let by_kernel = match unflushed {
                Unflushed::Torn { .. } => false,
                Unflushed::TornInUnits { .. } => units.by_kernel,
                Unflushed::Dropped | Unflushed::Kept => true,
            };
            look(&cut, by_kernel);
        }
    }
}
