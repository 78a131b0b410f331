//! The experiment on unplugging in its smoke size: which locks are taken does not depend on time.

use std::time::Duration;

use undercroft_lab::unplug::{self, UnplugOptions, UnplugOutcome, Variant};
use undercroft_lab::{Outcome, RunOptions, Size};

const SMOKE: RunOptions = RunOptions { size: Size::Smoke, repeat: None, duration: None, seed: 1 };

#[test]
fn locks_are_those_that_each_variant_takes() {
    let options = UnplugOptions {
        leaves: 12,
        threads: 3,
        service_times: vec![Duration::ZERO, Duration::from_micros(50)],
        ..UnplugOptions::default()
    };
    let mut outcomes: Vec<UnplugOutcome> = Vec::new();
    unplug::run(&options, &SMOKE, &mut |outcome| match outcome {
        Outcome::Unplug(of) => outcomes.push(of),
        other => panic!("{other:?} of another experiment"),
    })
    .unwrap();
    assert_eq!(outcomes.len(), 2 * Variant::ALL.len());
    for (one, variant) in outcomes.iter().zip(Variant::ALL.iter().cycle()) {
        assert_eq!((one.variant, one.leaves, one.threads), (*variant, 12, 3));
        match variant {
            Variant::Locked => {
                assert_eq!(one.locks_per_idle_unplug, 12.0);
                // Each unplugging takes the lock of every leaf, each I/O that of its own, and so
                // does the delay of each I/O that plugged its leaf, if the run lasts so long.
                let least = 1.0 + 12.0 * one.unplugs_per_io;
                let range = least - 1e-9..=least + 1.0;
                assert!(range.contains(&one.locks_per_io), "{one:?}");
            }
            Variant::TestFirst => {
                assert_eq!(one.locks_per_idle_unplug, 0.0);
                // An I/O takes the lock to be staged; the I/O and the thread that sends it on take
                // it once more at most for each thread that looked while it was there.
                let most = 1.0 + 3.0 * one.unplugs_per_io;
                assert!((1.0..=most).contains(&one.locks_per_io), "{one:?}");
            }
            Variant::ThreadPlug => {
                assert_eq!((one.locks_per_io, one.unplugs_per_io), (0.0, 0.0));
            }
        }
    }
}
