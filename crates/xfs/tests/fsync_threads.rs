//! Tickets in flight and the threads that there are meanwhile. Alone in its process, which it counts
//! the threads of.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{FileDevice, FileOptions, Operation, QueueOptions};
use undercroft_testkit::xfs::fsync::work::{
    contents, create, make, open, read, repair_is_content, write,
};

const FILES: usize = 1000;
const ROUNDS: usize = 100;
const HARDWARE_QUEUES: usize = 4;

/// What flushes wait for.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut closed = self.closed.lock();
        self.opened.wait_while(&mut closed, |closed| *closed);
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn a_hundred_thousand_tickets_in_flight_need_no_threads() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 512 << 20);
    let without = threads();
    let queue = QueueOptions { hardware_queues: HARDWARE_QUEUES, ..QueueOptions::default() };
    let options = FileOptions { queue, threads: 1, ..FileOptions::default() };
    let file = FileDevice::open_with(&image, &options);
    let gate = Arc::new(Gate::default());
    let passer = Arc::clone(&gate);
    let stalled = Fault::new().on(Operation::Flush).when(move |_| {
        passer.pass();
        false
    });
    let device = Arc::new(FaultyDevice::new(Arc::new(file.unwrap()), [stalled]));
    let volume = open(device, 512 << 20);
    let files: Vec<_> = (0..FILES).map(|number| create(&volume, &format!("{number}"))).collect();
    volume.sync_all().wait().unwrap();
    let checkpoints = volume.open_checkpoint().unwrap();
    let answered = Arc::new(AtomicUsize::new(0));
    *gate.closed.lock() = true;
    for round in 0..ROUNDS {
        for (number, file) in files.iter().enumerate() {
            let bytes = contents(number + round, 64);
            write(file, round as u64 * 64, &bytes).unwrap();
            let answered = Arc::clone(&answered);
            file.fsync().on_complete(move |result| {
                result.unwrap();
                answered.fetch_add(1, Ordering::AcqRel);
            });
        }
    }
    // No flush has passed, so no ticket can be answered.
    assert_eq!(answered.load(Ordering::Acquire), 0);
    // Of these, one drives the journal; the submitter was there before.
    let more = threads() - without;
    assert!(more <= HARDWARE_QUEUES + 1, "{more} threads");
    *gate.closed.lock() = false;
    gate.opened.notify_all();
    volume.sync_all().wait().unwrap();
    // Callbacks come from a thread of their own, behind the answers.
    while answered.load(Ordering::Acquire) < FILES * ROUNDS {
        std::thread::yield_now();
    }
    // One was on its way; all the other tickets are those of the next, and `sync` may need another.
    let written = volume.open_checkpoint().unwrap() - checkpoints;
    assert!(written <= 4, "{written} writes of the journal");
    let expected: Vec<u8> = (0..ROUNDS).flat_map(|round| contents(7 + round, 64)).collect();
    assert!(read(&files[7]) == expected);
    volume.close().unwrap();
    drop((volume, files));
    repair_is_content(&image);
}
