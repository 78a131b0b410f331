//! The thread that attends to a leaf: answers what nobody else may answer.
//!
//! That is requests over their time limit, since whoever drives their queue may be stuck in the
//! driver, and requests that the driver dropped, since it may have dropped them while it held locks
//! or was called by a thread whose queue is borrowed: receivers, which may submit, run where no call
//! of the driver is under way. A leaf without a time limit has no such thread before a request is
//! dropped.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::hardware::HardwareQueue;
use super::hardware_set::Via;
use super::home::{self, Home};
use super::lookout::Sight;
use super::promises::{Expired, Promises};
use super::shared::Shared;
use super::worker;
use crate::clock;
use crate::driver::{Completions, Driver};
use crate::drivers::Bell;
use crate::error::Reason;
use crate::request::Request;

/// What a leaf and its attendant share.
#[derive(Default)]
pub(super) struct Attendant {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Dropped by the driver, to be answered.
    dropped: Vec<Request>,
    /// Set while there is a thread.
    thread: Option<JoinHandle<()>>,
    /// Whether the thread is to end.
    stops: bool,
}

/// What the thread is to do.
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
            // the driver; without an answer somebody may wait for ever.
            self.attend();
        }
    }

    fn leave(self: Arc<Self>) {
        home::leave(self);
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
            worker::mark_current();
            // Without a strong handle while it sleeps: it ends with the leaf.
            while let Task::Attend = lookout.watch(|| attendant.look(&leaf)) {
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
            // Those who drive the queues have something to stop or to sort out, or a driver that
            // still waits for what it dropped.
            queues.iter().for_each(|queue| queue.mail.wake());
        }
        for (expired, queue) in expired.into_iter().zip(&queues) {
            self.answer_late(queue, expired);
        }
    }

    /// Ends `request` with an error.
    fn end_elsewhere(&self, hardware: &HardwareQueue, request: Request, reason: Reason) {
        let mut completions = Completions::default();
        completions.push(request, Err(reason.into()));
        let finish = || self.finish(hardware, &mut completions, Via::Elsewhere, Bell::wake);
        // A panic of one receiver must not take the thread from the others.
        let _ = catch_unwind(AssertUnwindSafe(finish));
    }

    /// Drops the requests that were answered while they waited: in the mailbox, where they take room,
    /// and among those held back, which hold back others.
    pub(super) fn withdraw(&self, hardware: &HardwareQueue) {
        let Some(promises) = &hardware.promises else { return };
        let mut withdrawn = Vec::new();
        hardware
            .mail
            .withdraw(|request| promises.is_answered(request), |request| withdrawn.push(request));
        for request in withdrawn {
            self.end_elsewhere(hardware, request, Reason::TimedOut);
        }
        if !hardware.mail.is_holding() {
            return;
        }
        let (mut withdrawn, mut released) = (Vec::new(), Vec::new());
        let index = hardware.index as u32;
        let is_ours =
            |request: &Request| request.inner.hardware == index && promises.is_answered(request);
        self.order.lock().withdraw(is_ours, &mut withdrawn, &mut released);
        for mut request in promises.redeem(&mut withdrawn) {
            hardware.mail.forget_held();
            request.take_bios().for_each(drop);
        }
        for request in released {
            self.hardware.of(&request).mail.release(request);
        }
    }

    /// Answers those whose limit has passed.
    fn answer_late(&self, hardware: &HardwareQueue, expired: Vec<Expired>) {
        let (counters, latencies, writers) = self.hardware.cells(hardware, Via::Elsewhere);
        let requests = expired.len() as u64;
        if requests == 0 {
            return;
        }
        let now = clock::nanoseconds();
        for request in &expired {
            if let Some(bio) = request.bio() {
                let latency = now.saturating_sub(request.submitted);
                latencies.record(bio.operation(), latency, 1, writers);
            }
        }
        counters.errors.add(requests, writers);
        counters.completed_local.add(requests, writers);
        for bio in expired.into_iter().flat_map(Expired::into_bios) {
            let fail = || bio.fail(self.driver.name(), Reason::TimedOut);
            let _ = catch_unwind(AssertUnwindSafe(fail));
        }
        self.gate.leave_elsewhere(&hardware.activity, requests);
    }

    /// When the next limit passes.
    fn next_limit(&self) -> Option<Instant> {
        let limits_waiting = self.hardware.has_late();
        let queues = self.hardware.all();
        let promises = queues.iter().filter_map(|queue| queue.promises.as_ref());
        let next = promises.filter_map(|promises| promises.next(limits_waiting)).min()?;
        let left = Duration::from_nanos(next.saturating_sub(clock::nanoseconds()));
        Instant::now().checked_add(left)
    }
}

impl Attendant {
    /// What there is to do for `leaf`.
    fn look<D: Driver>(&self, leaf: &Weak<Shared<D>>) -> Sight<Task> {
        let state = self.state.lock();
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
}

fn started(queue: &Arc<HardwareQueue>, now: u64) -> Vec<Expired> {
    let promises: Option<&Promises> = queue.promises.as_ref();
    promises.map(|promises| promises.expire_started(now)).unwrap_or_default()
}

fn waiting(queue: &Arc<HardwareQueue>, now: u64) -> Vec<Expired> {
    let promises: Option<&Promises> = queue.promises.as_ref();
    promises.map(|promises| promises.expire_waiting(now)).unwrap_or_default()
}
