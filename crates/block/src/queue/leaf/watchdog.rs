//! The watchdog of a leaf: the thread that answers requests that no other thread may answer.
//!
//! These are requests over their time limit, since the thread that drives their queue may be stuck
//! in the driver. They are also requests that the driver dropped: it may have held locks then, or
//! been called by a thread whose queue is borrowed. Receivers, which may submit, run where no call
//! of the driver is under way. A leaf without a time limit has no such thread before a request is
//! dropped.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::shared::Shared;
use super::watchdog_state::WatchdogState;
use crate::bio::Reason;
use crate::driver::Driver;
use crate::queue::hardware::{Deadlines, Due, Expired, HardwareQueue};
use crate::request::Request;
use crate::request::dropped::{self, Reclaim};
use crate::threads::{clock, role};

/// The work for the thread.
enum Task {
    Answer,
    End,
}

impl<D: Driver> Reclaim for Shared<D> {
    fn take_back(&self, request: Request) {
        self.watchdog.state.lock().dropped.push(request);
        if self.start_watchdog().is_ok() {
            self.hardware.watchdog_wait.call();
        } else {
            // Where the system has no thread to give, a receiver that submits may be in the way of
            // the driver; without an answer its submitter may wait for ever.
            self.answer_others();
        }
    }

    fn leave(self: Arc<Self>) {
        dropped::leave(self);
    }
}

impl<D: Driver> Shared<D> {
    /// Sees to it that the leaf has a watchdog.
    pub(super) fn start_watchdog(&self) -> io::Result<()> {
        let mut state = self.watchdog.state.lock();
        if state.thread.is_some() {
            return Ok(());
        }
        let (leaf, watchdog) = (Weak::clone(&self.this), Arc::clone(&self.watchdog));
        let watchdog_wait = Arc::clone(&self.hardware.watchdog_wait);
        let run = move || {
            role::become_worker();
            // Without a strong handle while it sleeps: it ends with the leaf.
            while let Task::Answer = watchdog_wait.watch(|| look(&watchdog, &leaf)) {
                if let Some(leaf) = leaf.upgrade() {
                    leaf.answer_others();
                }
            }
        };
        let thread = std::thread::Builder::new().name("block-watchdog".into()).spawn(run)?;
        state.thread = Some(thread);
        Ok(())
    }

    /// Ends the watchdog when everything is answered. There is a new one when it is needed.
    pub(super) fn stop_watchdog(&self) {
        let mut state = self.watchdog.state.lock();
        let Some(thread) = state.thread.take() else { return };
        state.stops = true;
        drop(state);
        self.hardware.watchdog_wait.call();
        let joined = thread.join();
        debug_assert!(joined.is_ok(), "the watchdog catches the panics of receivers");
        self.watchdog.state.lock().stops = false;
    }

    /// Does what there is to do for the watchdog.
    fn answer_others(&self) {
        let dropped = std::mem::take(&mut self.watchdog.state.lock().dropped);
        let some_dropped = !dropped.is_empty();
        for request in dropped {
            let hardware = self.hardware.of(&request);
            self.end_elsewhere(&hardware, request, Reason::Dropped);
        }
        let now = clock::nanoseconds();
        let queues = self.hardware.all();
        let mut expired: Vec<_> = queues.iter().map(|queue| started(queue, now)).collect();
        if self.hardware.has_timed_out() {
            for (expired, queue) in expired.iter_mut().zip(&queues) {
                expired.extend(waiting(queue, now));
            }
        }
        let some_expired = expired.iter().any(|expired| !expired.is_empty());
        if some_expired {
            queues.iter().for_each(|queue| self.withdraw(queue));
        }
        if some_dropped || some_expired {
            // The threads that drive the queues have requests to stop or to take out, or a driver
            // that still waits for requests it dropped.
            queues.iter().for_each(|queue| queue.mail.wake());
        }
        for (expired, queue) in expired.into_iter().zip(&queues) {
            self.answer_timed_out(queue, expired);
        }
    }
}

/// What there is to do for `leaf`.
fn look<D: Driver>(watchdog: &WatchdogState, leaf: &Weak<Shared<D>>) -> Due<Task> {
    let state = watchdog.state.lock();
    let (has_dropped, stops) = (!state.dropped.is_empty(), state.stops);
    drop(state);
    match leaf.upgrade() {
        None => Due::Now(Task::End),
        Some(_) if has_dropped => Due::Now(Task::Answer),
        Some(_) if stops => Due::Now(Task::End),
        Some(leaf) => match leaf.next_limit() {
            Some(time) if time <= Instant::now() => Due::Now(Task::Answer),
            Some(time) => Due::At(time),
            None => Due::Nothing,
        },
    }
}

fn started(queue: &Arc<HardwareQueue>, now: u64) -> Vec<Expired> {
    let deadlines: Option<&Deadlines> = queue.deadlines.as_ref();
    deadlines.map(|deadlines| deadlines.expire_started(now)).unwrap_or_default()
}

fn waiting(queue: &Arc<HardwareQueue>, now: u64) -> Vec<Expired> {
    let deadlines: Option<&Deadlines> = queue.deadlines.as_ref();
    deadlines.map(|deadlines| deadlines.expire_waiting(now)).unwrap_or_default()
}
