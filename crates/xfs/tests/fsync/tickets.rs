//! Tickets: any number, few threads, few writes of the journal.

use crate::work::{contents, create, memory, open, write};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn a_hundred_thousand_tickets_need_no_threads() {
    let files = open(memory(1 << 30), 512 << 20);
    let inodes: Vec<_> = (0..1000).map(|number| create(&files, &format!("{number}"))).collect();
    let before = threads();
    let checkpoints = files.volume().open_checkpoint().unwrap();
    let answered = Arc::new(AtomicUsize::new(0));
    let mut most = 0;
    for round in 0..100 {
        for file in &inodes {
            write(&files, file, round * 512, &contents(1, 512)).unwrap();
            let answered = Arc::clone(&answered);
            files.fsync(file).on_complete(move |result| {
                result.unwrap();
                answered.fetch_add(1, Ordering::AcqRel);
            });
        }
        // Other tests of this process may run beside it; alone, it is the same number throughout.
        most = most.max(threads());
    }
    files.sync().wait().unwrap();
    assert_eq!(answered.load(Ordering::Acquire), 100_000);
    assert!(most <= before + 64, "{most} threads, {before} before");
    let written = files.volume().open_checkpoint().unwrap() - checkpoints;
    assert!(written * 50 <= 100_000, "{written} writes of the journal");
    files.close().unwrap();
}

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn a_ticket_is_a_future_and_can_be_dropped() {
    let files = open(memory(256 << 20), 8 << 20);
    let (one, other) = (create(&files, "one"), create(&files, "other"));
    for round in 0..50 {
        write(&files, &one, round * 100, &contents(1, 100)).unwrap();
        write(&files, &other, round * 100, &contents(2, 100)).unwrap();
        drop(files.fsync(&other));
        let mut ticket = Box::pin(files.fsync(&one));
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        loop {
            if let Poll::Ready(result) = ticket.as_mut().poll(&mut Context::from_waker(&waker)) {
                result.unwrap();
                break;
            }
            while woken.0.swap(0, Ordering::AcqRel) == 0 {
                std::thread::yield_now();
            }
        }
    }
    // Nothing is left to be made durable: answered at once.
    files.sync().wait().unwrap();
    files.fsync(&one).wait().unwrap();
    files.close().unwrap();
}
