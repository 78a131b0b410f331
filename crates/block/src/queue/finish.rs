//! The way back: from what a driver has ended to the answers of the bios.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;

use super::Writers;
use super::hardware::{HardwareQueue, STOPPED};
use super::leaf::{Shared, Via};
use crate::clock;
use crate::driver::{Completions, Driver, Failure};
use crate::error::Reason;
use crate::request::Request;
use crate::statistics::{Counters, QueueLatencyCells};

type Ended = (Request, Result<(), Failure>);

impl<D: Driver> Shared<D> {
    /// Gives the tags of the requests in `completions` back, starts those that waited for them,
    /// counts them, and answers their bios, here or where their placement says.
    ///
    /// When a receiver panics, the others still hear; then the first panic goes on.
    pub(super) fn finish(&self, hardware: &HardwareQueue, completions: &mut Completions, via: Via) {
        if completions.is_empty() {
            return;
        }
        let ended = &mut completions.ended;
        if !hardware.started.is_empty() {
            name_stopped(hardware, ended);
        }
        hardware.tags.put_all(ended.iter_mut().filter_map(|(request, _)| request.tag.take()));
        if self.keeps_order() {
            self.let_others_start(ended);
        }
        let (counters, latencies, writers) = self.cells(hardware, via);
        count(ended, counters, latencies, writers);
        let requests = ended.len() as u64;
        counters.completed_local.add(requests, writers);
        let panic = self.answer(ended);
        match via {
            Via::Elsewhere => self.gate.leave_elsewhere(requests),
            Via::Driver | Via::Submitter => {
                self.gate.leave(&hardware.activity, requests, writers);
            }
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Tells every receiver; returns the first panic of one.
    fn answer(&self, ended: &mut Vec<Ended>) -> Option<Box<dyn std::any::Any + Send>> {
        let mut panic = None;
        for (request, result) in ended.drain(..) {
            let answered = catch_unwind(AssertUnwindSafe(|| match result {
                Ok(()) => request.complete(),
                Err(failure) => request.fail(self.driver.name(), failure.done, &failure.reason),
            }));
            panic = panic.or(answered.err());
        }
        panic
    }

    /// Starts the requests that waited for those that ended because they overlap.
    fn let_others_start(&self, ended: &[Ended]) {
        let mut released = Vec::new();
        let mut order = self.order.lock();
        for (request, _) in ended {
            order.leave(request, &mut released);
        }
        drop(order);
        for request in released {
            self.hardware_of(&request).release(request);
        }
    }
}

/// Gives the error of requests that were stopped because of their time limit its name.
fn name_stopped(hardware: &HardwareQueue, ended: &mut [Ended]) {
    for (request, result) in ended {
        let started = hardware.started[request.tag() as usize].swap(0, Ordering::Relaxed);
        if started & STOPPED != 0
            && let Err(failure) = result
        {
            failure.reason = Reason::TimedOut;
        }
    }
}

/// Counts what ended.
fn count(ended: &[Ended], counters: &Counters, latencies: &QueueLatencyCells, writers: Writers) {
    let now = clock::nanoseconds();
    let mut errors = 0;
    for (request, result) in ended {
        let latency = now.saturating_sub(request.submitted);
        latencies.record(request.operation(), latency, writers);
        errors += u64::from(result.is_err());
    }
    if errors > 0 {
        counters.errors.add(errors, writers);
    }
}
