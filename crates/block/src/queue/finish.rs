//! The way back: from what a driver has ended to the answers of the bios.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;

use super::Writers;
use super::hardware::{HardwareQueue, STOPPED};
use super::leaf::{Shared, Via};
use crate::affinity::{Placement, Redirect, current_cpu, redirect};
use crate::clock;
use crate::driver::{Completions, Driver, Failure};
use crate::drivers::Bell;
use crate::error::Reason;
use crate::request::Request;
use crate::statistics::{Counters, QueueLatencyCells};

type Ended = (Request, Result<(), Failure>);

impl<D: Driver> Shared<D> {
    /// Gives the tags of the requests in `completions` back, starts those that waited for them,
    /// counts them, and answers their bios, here or where their placement says.
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
        if !hardware.started.is_empty() {
            name_stopped(hardware, ended);
        }
        hardware.tags.put_all(ended.iter_mut().filter_map(|(request, _)| request.tag.take()));
        if self.keeps_order() {
            self.let_others_start(ended);
        }
        let (counters, latencies, writers) = self.cells(hardware, via);
        count(ended, counters, latencies, writers);
        if let Some(placement) = self.placement() {
            let redirected = take_redirected(ended, &placement);
            let how = placement.redirect;
            drop(placement);
            for (cpu, ended) in redirected {
                counters.completed_remote.add(ended.len() as u64, writers);
                self.redirect(cpu, how, ended, &mut ring);
            }
        }
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

    /// Answers `ended` on another CPU.
    fn redirect(
        &self,
        cpu: u32,
        how: Redirect,
        mut ended: Vec<Ended>,
        ring: &mut impl FnMut(&Bell),
    ) {
        // A leaf that is gone leaves nobody who could have handed this in.
        let Some(leaf) = self.this.upgrade() else { return };
        let answer = move || {
            let requests = ended.len() as u64;
            let panic = leaf.answer(&mut ended);
            leaf.gate.leave_elsewhere(requests);
            if let Some(panic) = panic {
                resume_unwind(panic);
            }
        };
        let listening = match how {
            Redirect::Threads => None,
            Redirect::RingMessage => self.listening_on(cpu),
        };
        match listening {
            Some((hardware, bell)) => {
                self.rings.store(true, Ordering::Relaxed);
                if hardware.hand_over(Box::new(answer)) {
                    ring(bell);
                    // The thread may be waiting for the end of the leaf.
                    self.gate.changed();
                }
            }
            None => redirect::send(cpu, Box::new(answer)),
        }
    }

    /// Tells every receiver; returns the first panic of one.
    fn answer(&self, ended: &mut Vec<Ended>) -> Option<Box<dyn Any + Send>> {
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

/// Takes out what is to be answered on other CPUs.
fn take_redirected(ended: &mut Vec<Ended>, placement: &Placement) -> Vec<(u32, Vec<Ended>)> {
    let here = current_cpu();
    let mut redirected: Vec<(u32, Vec<Ended>)> = Vec::new();
    for (request, result) in std::mem::take(ended) {
        let Some(cpu) = placement.completion.target(request.cpu, here) else {
            ended.push((request, result));
            continue;
        };
        match redirected.iter_mut().find(|(other, _)| *other == cpu) {
            Some((_, list)) => list.push((request, result)),
            None => redirected.push((cpu, vec![(request, result)])),
        }
    }
    redirected
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
