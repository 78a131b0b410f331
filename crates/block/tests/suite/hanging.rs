//! Requests that a real ring and real threads have in flight and that nothing ends: on a file whose
//! file system takes every transfer and never answers.

use std::sync::Arc;
use std::time::Duration;

use crate::silent::{Manners, SilentFile};
use undercroft_block::{
    Bio, BlockDevice, BlockError, Buffer, CompletionQueue, Engine, FileDevice, FileOptions,
    Operation, Plug, PlugThreshold, QueueOptions, Reason, Sector,
};
use undercroft_judges::kernel::available_or_report;

const READS: u64 = 3;
/// One write, and one flush that waits for it.
const ALL: usize = READS as usize + 2;

fn open(file: &SilentFile, time_limit: Option<Duration>) -> Arc<dyn BlockDevice> {
    let queue = QueueOptions { time_limit, ..QueueOptions::default() };
    let options = FileOptions { engine: Engine::Uring, queue, ..FileOptions::default() };
    Arc::new(FileDevice::open_with(&file.path(), &options).unwrap())
}

/// Submits reads, a write and a flush, each in a request of its own.
fn submit(device: &Arc<dyn BlockDevice>, queue: &CompletionQueue) {
    let plug = Plug::with_threshold(device, PlugThreshold { bios: 1, bytes: 0 });
    let reads = (0..READS).map(|number| Bio::read(Sector(number * 8), Buffer::zeroed(4096)));
    let others = [Bio::write(Sector(800), Buffer::zeroed(1024)), Bio::flush()];
    for (bio, number) in reads.chain(others).zip(0..) {
        plug.submit(bio.in_queue(queue, number));
    }
}

/// Takes the answers of all bios submitted; each must come once, name its operation and sectors,
/// and have a reason that `expected` accepts.
fn assert_failed(file: &SilentFile, queue: &CompletionQueue, expected: fn(&BlockError) -> bool) {
    let mut missing = [true; ALL];
    for _ in 0..ALL {
        let finished = queue.wait();
        let error = finished.completion.result.unwrap_err();
        let about = match finished.cookie {
            number @ 0..READS => (Operation::Read, Sector(number * 8), 4096),
            READS => (Operation::Write, Sector(800), 1024),
            _ => (Operation::Flush, Sector(0), 0),
        };
        assert_eq!((error.operation, error.sector, error.length), about);
        assert_eq!(*error.device, *file.path().display().to_string());
        assert!(expected(&error), "{error:?}");
        assert!(std::mem::take(&mut missing[finished.cookie as usize]), "answered twice");
    }
    assert!(queue.poll().is_none(), "each is answered once");
}

fn errno(error: &BlockError) -> Option<i32> {
    error.io_error().and_then(std::io::Error::raw_os_error)
}

#[test]
fn a_time_limit_ends_what_hangs_in_a_ring() {
    if !available_or_report() {
        return;
    }
    for claimed in [false, true] {
        let file = SilentFile::new(1 << 20, Manners::Yielding);
        let device = open(&file, Some(Duration::from_millis(20)));
        let claim = claimed.then(|| device.claim().unwrap());
        let queue = CompletionQueue::new();
        submit(&device, &queue);
        assert_failed(&file, &queue, |error| matches!(error.reason, Reason::TimedOut));
        assert_eq!(device.statistics().errors, ALL as u64);
        drop(claim);
    }
}

#[test]
fn closing_ends_what_hangs_in_a_ring() {
    if !available_or_report() {
        return;
    }
    for claimed in [false, true] {
        let file = SilentFile::new(1 << 20, Manners::Yielding);
        let device = open(&file, None);
        let claim = claimed.then(|| device.claim().unwrap());
        let queue = CompletionQueue::new();
        submit(&device, &queue);
        file.wait_for(READS as usize + 1);
        std::thread::scope(|scope| {
            scope.spawn(|| device.close());
            // The flush waited for the write.
            assert_failed(&file, &queue, |error| match error.operation {
                Operation::Flush => matches!(error.reason, Reason::Closed),
                _ => errno(error) == Some(libc::ECANCELED),
            });
        });
        drop(claim);
    }
}

/// A server that does not hear that no thread waits any more: nothing can be done but to wait,
/// until it is gone.
#[test]
fn what_cannot_be_cancelled_ends_with_its_file_system() {
    if !available_or_report() {
        return;
    }
    let file = SilentFile::new(1 << 20, Manners::Deaf);
    let device = open(&file, Some(Duration::from_millis(200)));
    let queue = CompletionQueue::new();
    submit(&device, &queue);
    file.wait_for(READS as usize + 1);
    std::thread::scope(|scope| {
        scope.spawn(|| device.close());
        file.remove();
        assert_failed(&file, &queue, |error| {
            let gone = [libc::ENOTCONN, libc::ECONNABORTED, libc::ECANCELED].map(Some);
            matches!(error.reason, Reason::TimedOut | Reason::Closed)
                || gone.contains(&errno(error))
        });
    });
}
