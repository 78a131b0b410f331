//! Tickets as futures.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use undercroft_testkit::xfs::fsync::work::{contents, create, memory, open, try_create, write};
use undercroft_xfs::{SyncTicket, Volume};

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn a_ticket_is_a_future_and_can_be_dropped() {
    let volume = open(memory(256 << 20), 8 << 20);
    let (one, other) = (create(&volume, "one"), create(&volume, "other"));
    for round in 0..50 {
        write(&one, round * 100, &contents(1, 100)).unwrap();
        write(&other, round * 100, &contents(2, 100)).unwrap();
        drop(other.fsync());
        let mut ticket = Box::pin(one.fsync());
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
    volume.sync_all().wait().unwrap();
    one.fsync().wait().unwrap();
    volume.close().unwrap();
}

/// Draws a ticket for each of some new files.
fn draw(volume: &Arc<Volume>, count: usize) -> Vec<SyncTicket> {
    let one = |number: usize| {
        let file = create(volume, &format!("file-{number}"));
        write(&file, 0, &contents(number, 5000)).unwrap();
        file.fsync()
    };
    (0..count).map(one).collect()
}

#[test]
fn tickets_that_wait_when_the_volume_is_closed_are_kept() {
    for round in 0..20 {
        let volume = open(memory(256 << 20), 8 << 20);
        let tickets = draw(&volume, 10 * round);
        volume.close().unwrap();
        // No thread is left that could answer them later.
        assert!(tickets.iter().all(|ticket| matches!(ticket.try_result(), Some(Ok(())))));
        assert!(try_create(&volume, "late").is_err() && volume.sync_all().wait().is_err());
    }
}

#[test]
fn tickets_that_wait_when_the_volume_is_dropped_are_answered() {
    let mut broken = 0;
    for round in 0..20 {
        let volume = open(memory(256 << 20), 8 << 20);
        let tickets = draw(&volume, 10 * round);
        drop(volume);
        // Each is answered, the one way or the other: this would sleep forever.
        broken += tickets.into_iter().filter_map(|ticket| ticket.wait().err()).count();
    }
    assert!(broken > 0);
}
