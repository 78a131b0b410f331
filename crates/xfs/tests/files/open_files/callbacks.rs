//! Code of others that the volume calls.

use super::stand::{BLOCK, NOW, close, make, open, unlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, Operation};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume};

/// Longer than anything takes that does not hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// A callback draws tickets and waits for them, writes, opens and drops files, and takes the locks
/// of inodes.
#[test]
fn a_callback_may_use_the_volume() {
    let (device, volume) = open(64 << 20);
    let file = make(&volume, "file").unwrap();
    file.write(0, &[1; BLOCK], NOW).unwrap();
    let (sender, answers) = channel();
    let inside = Arc::clone(&volume);
    file.fsync().on_complete(move |result| {
        result.unwrap();
        let other = make(&inside, "other").unwrap();
        other.write(0, &[2; 3 * BLOCK], NOW).unwrap();
        let waited = other.fsync().wait();
        other.fsync().on_complete(move |result| sender.send((waited, result)).unwrap());
        unlink(&inside, "other").unwrap();
        drop(other);
    });
    let (waited, answered) = answers.recv_timeout(PATIENCE).unwrap();
    waited.unwrap();
    answered.unwrap();
    drop(file);
    close(&device, &volume);
}

#[test]
fn a_panic_in_a_callback_is_its_own() {
    let (device, volume) = open(64 << 20);
    let (sender, answers) = channel();
    for round in 0..3 {
        let file = make(&volume, &format!("file-{round}")).unwrap();
        file.write(0, &[1; BLOCK], NOW).unwrap();
        let sender = sender.clone();
        let ticket = file.fsync();
        let callback = move |_| {
            sender.send(round).unwrap();
            // Not by `panic!`, whose message would be in the output of the tests.
            std::panic::resume_unwind(Box::new(round));
        };
        // It is called here if the answer is there already.
        let _ = catch_unwind(AssertUnwindSafe(|| ticket.on_complete(callback)));
        assert_eq!(answers.recv_timeout(PATIENCE), Ok(round));
    }
    close(&device, &volume);
}

/// A failure that a thread meets while it has an inode locked is told by another.
#[test]
fn a_failure_is_told_without_a_lock() {
    let below = super::stand::device(32 << 20);
    let faults = [Fault::new().on(Operation::Write).from_nth(30)];
    let device: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(below, faults));
    let volume = Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap());
    let (sender, answers) = channel();
    let mut drawn = 0;
    for round in 0..10_000 {
        let Ok(file) = make(&volume, &format!("file-{round}")) else { break };
        if file.write(0, &[1; 2 * BLOCK], NOW).is_err() {
            break;
        }
        let (sender, file, inside) = (sender.clone(), Arc::new(file), Arc::clone(&volume));
        let kept = Arc::clone(&file);
        drawn += 1;
        file.fsync().on_complete(move |result| {
            // Takes the lock of the inode, and asks for another ticket.
            let size = kept.size();
            drop(inside.sync_all());
            sender.send(result.map(|()| size)).unwrap();
        });
    }
    let results: Vec<_> = (0..drawn).map(|_| answers.recv_timeout(PATIENCE).unwrap()).collect();
    assert!(results.iter().any(|result| matches!(result, Err(Error::Poisoned(_)))), "{drawn}");
}

#[test]
fn a_dropped_volume_answers_its_tickets() {
    let (_device, volume) = open(64 << 20);
    let file = make(&volume, "file").unwrap();
    file.write(0, &[1; BLOCK], NOW).unwrap();
    let tickets: Vec<_> = (0..100).map(|_| file.fsync()).collect();
    drop((file, volume));
    for ticket in tickets {
        match ticket.wait() {
            Ok(()) | Err(Error::Poisoned(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// After a volume is closed all callbacks are done, slow ones as well.
#[test]
fn a_volume_that_is_closed_has_made_all_callbacks() {
    let (_device, volume) = open(64 << 20);
    let file = make(&volume, "file").unwrap();
    let called = Arc::new(AtomicUsize::new(0));
    for _ in 0..50 {
        file.write(0, &[1; BLOCK], NOW).unwrap();
        let called = Arc::clone(&called);
        file.fsync().on_complete(move |_| {
            std::thread::sleep(Duration::from_millis(1));
            called.fetch_add(1, Ordering::Relaxed);
        });
    }
    drop(file);
    volume.close().unwrap();
    assert_eq!(called.load(Ordering::Relaxed), 50);
}
