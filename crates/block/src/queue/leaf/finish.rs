//! The way back: from what a driver has ended to the answers of the bios.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::shared::Shared;
use crate::driver::{Bell, Completions, Driver};
use crate::queue::hardware::{HardwareQueue, Via};
use crate::request::Request;
use crate::statistics::{Counters, QueueLatencyCells, Writers};
use crate::threads::clock;

impl<D: Driver> Shared<D> {
    /// Gives the tags of the requests in `completions` back, starts those that waited for them,
    /// counts them, and answers their bios, here or where their placement says. Requests that were
    /// answered before, at their time limit, are dropped.
    ///
    /// Where their placement says so, `ring` sends a message to another ring.
    ///
    /// When a receiver panics, the others still hear; then the first panic goes on.
    pub(super) fn finish(
        &self,
        hardware: &HardwareQueue,
        completions: &mut Completions,
        via: Via,
        mut ring: impl FnMut(&Bell),
    ) {
        if completions.is_empty() {
            return;
        }
        let ended = &mut completions.ended;
        if let Some(deadlines) = &hardware.deadlines {
            self.let_go(hardware, deadlines.end(ended));
            if ended.is_empty() {
                return;
            }
        }
        hardware.tags.put_all(ended.iter_mut().filter_map(|request| request.inner.tag.take()));
        if self.keeps_order {
            self.let_others_start(ended);
        }
        let (counters, latencies, writers) = self.hardware.cells(hardware, via);
        count(ended, counters, latencies, writers);
        self.answer_elsewhere(hardware, ended, counters, writers, &mut ring);
        let requests = ended.len() as u64;
        counters.completed_local.add(requests, writers);
        let panic = self.answer(ended);
        match via {
            Via::Elsewhere => self.gate.leave_elsewhere(&hardware.activity, requests),
            Via::Driver | Via::Submitter => {
                self.gate.leave(&hardware.activity, requests, writers);
            }
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Takes back requests that were answered before: nothing is left of them but their tags, their
    /// places in the order, and their memory.
    fn let_go(&self, hardware: &HardwareQueue, mut timed_out: Vec<Request>) {
        if timed_out.is_empty() {
            return;
        }
        hardware.tags.put_all(timed_out.iter_mut().filter_map(|request| request.inner.tag.take()));
        if self.keeps_order {
            self.let_others_start(&timed_out);
        }
        timed_out.iter_mut().flat_map(Request::take_bios).for_each(drop);
    }

    /// Tells every receiver; returns the first panic of one.
    pub(super) fn answer(&self, ended: &mut Vec<Request>) -> Option<Box<dyn Any + Send>> {
        let mut panic = None;
        let mut ended = ended.drain(..);
        while ended.len() > 0 {
            // Caught once for all, and once more for each that panics.
            let all = || ended.by_ref().for_each(|request| request.answer(self.driver.name()));
            panic = panic.or(catch_unwind(AssertUnwindSafe(all)).err());
        }
        panic
    }

    /// Starts the requests that waited for those that ended because they overlap.
    pub(super) fn let_others_start(&self, ended: &[Request]) {
        let mut released = Vec::new();
        let mut order = self.order.lock();
        for request in ended {
            order.leave(request, &mut released);
        }
        drop(order);
        for request in released {
            self.hardware.of(&request).mail.release(request);
        }
    }
}

/// Counts what ended.
fn count(ended: &[Request], counters: &Counters, latencies: &QueueLatencyCells, writers: Writers) {
    let now = clock::nanoseconds();
    // Requests that were submitted together and end together are counted together.
    let alike = |one: &Request, other: &Request| {
        one.inner.submitted == other.inner.submitted && one.operation() == other.operation()
    };
    for group in ended.chunk_by(alike) {
        let latency = now.saturating_sub(group[0].inner.submitted);
        latencies.record(group[0].operation(), latency, group.len() as u64, writers);
    }
    let errors = ended.iter().filter(|request| request.inner.failure.is_some()).count();
    if errors > 0 {
        counters.errors.add(errors as u64, writers);
    }
}
