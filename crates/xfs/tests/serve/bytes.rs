//! Eight threads use one volume as a server does: a short history of each kind. `cargo xtask soak
//! serve` goes on for as long as one likes.

use std::sync::Arc;
use undercroft_block::{BlockDevice, MemoryDevice};
use undercroft_testkit::xfs::serve::device::{Manner, volume, with_manner};
use undercroft_testkit::xfs::serve::history::{Plan, run};
use undercroft_xfs::Error;

/// A device of `bytes` bytes in memory with an empty volume.
fn memory(bytes: u64, seed: u64) -> Arc<dyn BlockDevice> {
    volume(Arc::new(MemoryDevice::new(bytes)), seed)
}

fn plan(seed: u64) -> Plan {
    Plan { threads: 8, slots: 6, steps: 400, seed, dirty_bytes: 2 << 20, compares: true }
}

#[test]
fn eight_threads_lose_no_byte() {
    let device = with_manner(memory(256 << 20, 1), Manner::Prompt, 1);
    let outcome = run(&device, &plan(1)).unwrap();
    assert!(outcome.errors.is_empty(), "{outcome:?}");
    assert_eq!(outcome.operations, 8 * 400);
    println!("the longest call took {:?}", outcome.longest);
}

#[test]
fn eight_threads_on_a_device_that_answers_out_of_order() {
    let device = with_manner(memory(256 << 20, 2), Manner::Late, 2);
    let outcome = run(&device, &Plan { steps: 200, ..plan(2) }).unwrap();
    assert!(outcome.errors.is_empty(), "{outcome:?}");
}

#[test]
fn eight_threads_on_a_volume_that_is_full_now_and_then() {
    let device = memory(20 << 20, 3);
    let outcome = run(&device, &Plan { slots: 40, ..plan(3) }).unwrap();
    assert!(outcome.errors.is_empty(), "{outcome:?}");
    assert!(outcome.refused > 0, "it was never full: {outcome:?}");
}

#[test]
fn eight_threads_on_a_device_that_fails_are_all_told() {
    for seed in 0..6 {
        let device = with_manner(memory(128 << 20, seed), Manner::Failing(300), seed);
        match run(&device, &Plan { slots: 12, compares: false, ..plan(seed) }) {
            Ok(outcome) => {
                let told = |error: &Error| {
                    matches!(
                        error,
                        Error::Device(_) | Error::Poisoned(_) | Error::NotWritten { .. }
                    )
                };
                assert!(
                    !outcome.errors.is_empty() && outcome.errors.iter().all(told),
                    "{outcome:?}"
                );
            }
            Err(error) => {
                assert!(matches!(error, Error::Device(_) | Error::Poisoned(_)), "{error}");
            }
        }
    }
}
