//! A thread of a hardware queue: opens a driver queue and keeps it busy.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use super::RequestList;
use super::hardware::Taken;
use super::leaf::Shared;
use crate::driver::{Completions, Driver, DriverQueue, QueueContext, Wait};
use crate::drivers::OpenError;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread drives a queue for others. It never waits for room in one, because it may be
/// the thread that has to make the room (completion callbacks run in such threads).
pub(super) fn is_current() -> bool {
    IS_WORKER.get()
}

/// Starts a thread for `shared`; returns when its driver queue is open.
pub(super) fn start<D: Driver>(shared: &Arc<Shared<D>>) -> Result<JoinHandle<()>, OpenError> {
    let name = shared.driver.name().to_owned();
    let shared = Arc::clone(shared);
    let (opened, answer) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("block-queue".into())
        .spawn(move || {
            IS_WORKER.set(true);
            let context = QueueContext { index: 0, depth: shared.options.depth };
            match shared.driver.open_queue(&context) {
                Ok(queue) => {
                    // Nobody waits for the answer if the thread that opens the device is gone.
                    let _ = opened.send(Ok(()));
                    drop(opened);
                    work(&shared, queue);
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        })
        .map_err(|source| OpenError::Thread { name: name.clone(), source })?;
    match answer.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let source = std::io::Error::other("the driver panicked when it opened its queue");
            Err(OpenError::Thread { name, source })
        }
    }
}

/// The life of the thread: requests until the hardware queue is closed and all are answered.
fn work<D: Driver>(shared: &Shared<D>, mut queue: D::Queue) {
    let mut requests = RequestList::new();
    let mut completions = Completions::default();
    loop {
        if requests.is_empty() {
            let may_sleep = queue.in_flight() == 0;
            let taken = shared.hardware.take(&mut requests, D::Queue::BATCH, may_sleep);
            if taken == Taken::Closed {
                return;
            }
        }
        if !requests.is_empty() {
            queue.start(&mut requests, &mut completions);
        }
        if queue.in_flight() > 0 {
            reap(shared, &mut queue, &requests, &mut completions);
        }
        // A panic in a callback of one bio must not take the thread from the others; the panic hook
        // has reported it, and all other bios were answered.
        let _ = catch_unwind(AssertUnwindSafe(|| shared.finish(&mut completions)));
    }
}

/// Collects completions, sleeping in the driver if there is nothing else to do.
fn reap<D: Driver>(
    shared: &Shared<D>,
    queue: &mut D::Queue,
    requests: &RequestList,
    completions: &mut Completions,
) {
    let waker = queue.waker();
    // Requests that the driver had no room for wait for a completion anyway.
    let announced =
        completions.is_empty() && requests.is_empty() && shared.hardware.may_reap(waker.clone());
    let sleep = announced || (completions.is_empty() && !requests.is_empty());
    let wait = if sleep { Wait::Forever } else { Wait::No };
    // A queue that has broken has put what it held into the completions, as failed.
    let _ = queue.reap(completions, wait);
    if announced {
        shared.hardware.reaped(&waker);
    }
}
