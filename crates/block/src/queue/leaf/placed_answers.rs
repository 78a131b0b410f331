//! For experiments: requests are answered on the CPU that a [`Placement`] asks for.

use std::panic::resume_unwind;
use std::sync::atomic::Ordering;

use super::shared::Shared;
use crate::affinity::current_cpu;
use crate::driver::{Bell, Driver};
use crate::experiments::{Placement, Redirect, redirect};
use crate::queue::hardware::HardwareQueue;
use crate::request::Request;
use crate::statistics::{Counters, Writers};

impl<D: Driver> Shared<D> {
    /// Takes the requests that belong to other CPUs out of `ended`, which came through `hardware`,
    /// counts them, and has them answered there. None without a placement.
    pub(super) fn answer_elsewhere(
        &self,
        hardware: &HardwareQueue,
        ended: &mut Vec<Request>,
        counters: &Counters,
        writers: Writers,
        ring: &mut impl FnMut(&Bell),
    ) {
        let Some(placement) = self.hardware.placement() else { return };
        let redirected = take_redirected(ended, &placement);
        let how = placement.redirect;
        drop(placement);
        for (cpu, ended) in redirected {
            // Before the answers: a submitter that has them sees the counts.
            counters.completed_remote.add(ended.len() as u64, writers);
            self.redirect(hardware.index, cpu, how, ended, ring);
        }
    }

    /// Answers `ended`, which came through the hardware queue with this index, on another CPU.
    fn redirect(
        &self,
        index: usize,
        cpu: u32,
        how: Redirect,
        mut ended: Vec<Request>,
        ring: &mut impl FnMut(&Bell),
    ) {
        // A leaf that is gone has no driver that could have handed this in.
        let Some(leaf) = self.this.upgrade() else { return };
        let answer = move || {
            let requests = ended.len() as u64;
            let panic = leaf.answer(&mut ended);
            leaf.gate.leave_elsewhere(&leaf.hardware.at(index).activity, requests);
            if let Some(panic) = panic {
                resume_unwind(panic);
            }
        };
        let listening = match how {
            Redirect::Threads => None,
            Redirect::RingMessage => self.hardware.listening_on(cpu),
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
}

/// Takes out the requests to be answered on other CPUs.
fn take_redirected(ended: &mut Vec<Request>, placement: &Placement) -> Vec<(u32, Vec<Request>)> {
    let here = current_cpu();
    let mut redirected: Vec<(u32, Vec<Request>)> = Vec::new();
    for request in std::mem::take(ended) {
        let Some(cpu) = placement.completion.target(request.inner.cpu, here) else {
            ended.push(request);
            continue;
        };
        match redirected.iter_mut().find(|(other, _)| *other == cpu) {
            Some((_, list)) => list.push(request),
            None => redirected.push((cpu, vec![request])),
        }
    }
    redirected
}
