//! Tickets as futures.

use crate::work::{contents, create, memory, open, write};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

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
