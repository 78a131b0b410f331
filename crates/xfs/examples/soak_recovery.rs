//! Makes dirty volumes with the kernel and compares its replay with ours: volumes, seed of the first.

use std::time::Instant;
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::{LoopMount, Xfsprogs};
use undercroft_testkit::xfs::recovery::judged::Disagreement;
use undercroft_testkit::xfs::recovery::load::End;
use undercroft_testkit::xfs::recovery::{judged, load};

/// Formats, as arguments of `mkfs.xfs`.
const FORMATS: [&[&str]; 8] = [
    &[],
    &["-m", "reflink=0"],
    &["-m", "reflink=0,rmapbt=0"],
    &["-n", "parent=1", "-i", "exchange=1"],
    &["-l", "su=32k"],
    &["-s", "size=4096"],
    &["-b", "size=1024", "-n", "size=4096"],
    // A journal so small that it wraps around often.
    &["-d", "agcount=2", "-l", "size=10m"],
];

const MOUNTS: [&[&str]; 3] = [&[], &["logbsize=64k"], &["logbsize=256k"]];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse::<u64>());
    let (count, seed) = (next(200)?, next(1)?);
    let (begun, mut intents, mut unlinked, mut dirty, mut wrapped) = (Instant::now(), 0, 0, 0, 0);
    let mut refused = 0;
    for (done, seed) in (1..=count).zip(seed..) {
        let mut random = Random::new(seed);
        let format = FORMATS[random.below(FORMATS.len() as u64) as usize];
        let options = MOUNTS[random.below(MOUNTS.len() as u64) as usize];
        let scratch = tempfile::tempdir()?;
        let image = scratch.path().join("image");
        Xfsprogs::newest()?.mkfs(&image, 1 << 30, format)?;
        // Records between tail and head are of one size: Linux loses them else.
        for round in 0..=random.below(3) {
            let mount = match LoopMount::new(&image, Access::ReadWrite, options) {
                Err(error) if round > 0 => {
                    println!("seed {seed}: the kernel refuses its own volume: {error}");
                    break;
                }
                mount => mount?,
            };
            let end = if random.one_in(2) { End::Flushed } else { End::Cut };
            let operations = 1000 + random.below(8000);
            load::run(mount.path(), operations, seed * 8 + round, end);
            mount.unmount()?;
        }
        let report = match judged::judge(&image) {
            Err(what @ Disagreement::KernelFails(_)) => {
                println!("seed {seed}, {format:?} {options:?}: ours is clean, {what}");
                refused += 1;
                None
            }
            report => {
                report.map_err(|what| format!("seed {seed}, {format:?} {options:?}: {what}"))?
            }
        };
        if let Some(report) = report {
            dirty += 1;
            intents += report.intents;
            unlinked += report.unlinked;
            wrapped += u64::from(report.head.cycle() > 1);
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "seed {seed}: {done} of {count} in {seconds:.0} s; {dirty} dirty, {wrapped} wrapped, \
             {intents} intents, {unlinked} unlinked inodes: all alike; {refused} that the kernel \
             refuses"
        );
    }
    Ok(())
}
