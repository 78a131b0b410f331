//! Devices that fail: waiters are told, and the volume is read-only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use undercroft_block::Operation;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_testkit::xfs::fsync::work::{contents, memory, open, try_create, write};

/// Tickets on a device with this fault; returns how many were answered with an error.
fn failed(fault: Fault) -> usize {
    let device = Arc::new(FaultyDevice::new(memory(256 << 20), [fault]));
    let volume = open(Arc::clone(&device) as _, 8 << 20);
    let answers = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let mut drawn = 0;
    for number in 0..2000 {
        // The thread of the journal may meet the failure at any moment.
        let Ok(file) = try_create(&volume, &format!("file-{number}")) else { break };
        if write(&file, 0, &contents(number, 4096)).is_err() {
            break;
        }
        let answers = Arc::clone(&answers);
        drawn += 1;
        file.fsync().on_complete(move |result| {
            answers[usize::from(result.is_err())].fetch_add(1, Ordering::AcqRel);
        });
        if number % 50 == 0 {
            std::thread::yield_now();
        }
    }
    let last = volume.sync_all().wait();
    assert!(device.injected() > 0);
    let error = last.unwrap_err().to_string();
    assert!(error.contains("fail"), "{error}");
    let count = |index: usize| answers[index].load(Ordering::Acquire);
    // The thread that tells of the failure may have told the last ticket first.
    let patience = Instant::now() + Duration::from_secs(60);
    while count(0) + count(1) < drawn && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(count(0) + count(1), drawn, "every ticket is answered once");
    // Poisoned: a later success cannot hide the failure.
    assert!(volume.begin().is_err());
    assert!(volume.sync_all_and_wait().is_err() && volume.close().is_err());
    count(1)
}

#[test]
fn a_failed_flush_is_told_to_all_and_poisons() {
    assert!(failed(Fault::new().on(Operation::Flush).from_nth(2)) > 0);
}

#[test]
fn a_failed_write_is_told_to_all_and_poisons() {
    assert!(failed(Fault::new().on(Operation::Write).from_nth(5)) > 0);
}
