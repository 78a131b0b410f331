//! The thread that attends to a leaf: it answers requests that no other thread may answer.
//!
//! These are requests over their time limit, since the thread that drives their queue may be stuck
//! in the driver. They are also requests that the driver dropped: it may have held locks then, or
//! been called by a thread whose queue is borrowed. Receivers, which may submit, run where no call
//! of the driver is under way. A leaf without a time limit has no such thread before a request is
//! dropped.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::attendant_state::AttendantState;
use super::shared::Shared;
use crate::bio::Reason;
use crate::driver::Driver;
use crate::queue::hardware::{Deadlines, Expired, HardwareQueue, Sight};
use crate::request::Request;
use crate::request::dropped::{self, Home};
use crate::threads::{clock, role};

/// The work for the thread.
enum Task {
    Attend,
    End,
}

impl<D: Driver> Home for Shared<D> {
    fn take_back(&self, request: Request) {
        self.attendant.state.lock().dropped.push(request);
        if self.start_attendant().is_ok() {
            self.hardware.lookout.call();
        } else {
            // Where the system has no thread to give, a receiver that submits may be in the way of
            // the driver; without an answer its submitter may wait for ever.
            self.attend();
        }
    }

    fn leave(self: Arc<Self>) {
        dropped::leave(self);
    }
}

impl<D: Driver> Shared<D> {
    /// Sees to it that the leaf has an attendant.
    pub(super) fn start_attendant(&self) -> io::Result<()> {
        let mut state = self.attendant.state.lock();
        if state.thread.is_some() {
            return Ok(());
        }
        let (leaf, attendant) = (Weak::clone(&self.this), Arc::clone(&self.attendant));
        let lookout = Arc::clone(&self.hardware.lookout);
        let run = move || {
            role::become_worker();
            // Without a strong handle while it sleeps: it ends with the leaf.
            while let Task::Attend = lookout.watch(|| look(&attendant, &leaf)) {
                if let Some(leaf) = leaf.upgrade() {
                    leaf.attend();
                }
            }
        };
        let thread = std::thread::Builder::new().name("block-attendant".into()).spawn(run)?;
        state.thread = Some(thread);
        Ok(())
    }

    /// Ends the attendant when everything is answered. There is a new one when it is needed.
    pub(super) fn stop_attendant(&self) {
        let mut state = self.attendant.state.lock();
        let Some(thread) = state.thread.take() else { return };
        state.stops = true;
        drop(state);
        self.hardware.lookout.call();
        let joined = thread.join();
        debug_assert!(joined.is_ok(), "the attendant catches the panics of receivers");
        self.attendant.state.lock().stops = false;
    }

    /// Does what there is to do for the attendant.
    fn attend(&self) {
        let dropped = std::mem::take(&mut self.attendant.state.lock().dropped);
        let some_dropped = !dropped.is_empty();
        for request in dropped {
            let hardware = self.hardware.of(&request);
            self.end_elsewhere(&hardware, request, Reason::Dropped);
        }
        let now = clock::nanoseconds();
        let queues = self.hardware.all();
        let mut expired: Vec<_> = queues.iter().map(|queue| started(queue, now)).collect();
        if self.hardware.has_late() {
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
            self.answer_late(queue, expired);
        }
    }
}

/// What there is to do for `leaf`.
fn look<D: Driver>(attendant: &AttendantState, leaf: &Weak<Shared<D>>) -> Sight<Task> {
    let state = attendant.state.lock();
    let (has_dropped, stops) = (!state.dropped.is_empty(), state.stops);
    drop(state);
    match leaf.upgrade() {
        None => Sight::Now(Task::End),
        Some(_) if has_dropped => Sight::Now(Task::Attend),
        Some(_) if stops => Sight::Now(Task::End),
        Some(leaf) => match leaf.next_limit() {
            Some(time) if time <= Instant::now() => Sight::Now(Task::Attend),
            Some(time) => Sight::At(time),
            None => Sight::Nothing,
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
