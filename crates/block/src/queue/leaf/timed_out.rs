//! Requests over their time limit: they are answered, and dropped if they had not started.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::shared::Shared;
use crate::bio::Reason;
use crate::driver::{Bell, Completions, Driver};
use crate::queue::hardware::{Expired, HardwareQueue, Via};
use crate::request::Request;
use crate::threads::clock;

impl<D: Driver> Shared<D> {
    /// Ends `request` with an error.
    pub(super) fn end_elsewhere(&self, hardware: &HardwareQueue, request: Request, reason: Reason) {
        let mut completions = Completions::default();
        completions.push(request, Err(reason.into()));
        let finish = || self.finish(hardware, &mut completions, Via::Elsewhere, Bell::wake);
        // A panic of one receiver must not take the thread from the others.
        let _ = catch_unwind(AssertUnwindSafe(finish));
    }

    /// Drops the requests that were answered while they waited: in the mailbox, where they take room,
    /// and among those held back, which hold back others.
    pub(super) fn withdraw(&self, hardware: &HardwareQueue) {
        let Some(deadlines) = &hardware.deadlines else { return };
        let mut withdrawn = Vec::new();
        hardware
            .mail
            .withdraw(|request| deadlines.is_answered(request), |request| withdrawn.push(request));
        for request in withdrawn {
            self.end_elsewhere(hardware, request, Reason::TimedOut);
        }
        if !hardware.mail.is_holding() {
            return;
        }
        let (mut withdrawn, mut released) = (Vec::new(), Vec::new());
        let index = hardware.index as u32;
        let is_ours =
            |request: &Request| request.inner.hardware == index && deadlines.is_answered(request);
        self.order.lock().withdraw(is_ours, &mut withdrawn, &mut released);
        for mut request in deadlines.end(&mut withdrawn) {
            hardware.mail.forget_held();
            request.take_bios().for_each(drop);
        }
        for request in released {
            self.hardware.of(&request).mail.release(request);
        }
    }

    /// Answers those whose limit has passed.
    pub(super) fn answer_timed_out(&self, hardware: &HardwareQueue, expired: Vec<Expired>) {
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
    pub(super) fn next_limit(&self) -> Option<Instant> {
        let limits_waiting = self.hardware.has_timed_out();
        let queues = self.hardware.all();
        let deadlines = queues.iter().filter_map(|queue| queue.deadlines.as_ref());
        let next = deadlines.filter_map(|deadlines| deadlines.next(limits_waiting)).min()?;
        let left = Duration::from_nanos(next.saturating_sub(clock::nanoseconds()));
        Instant::now().checked_add(left)
    }
}
