//! The way in: requests that a device can serve are counted as inside, stamped, and put in order.

use super::shared::Shared;
use crate::affinity::Stamp;
use crate::bio::Reason;
use crate::driver::Driver;
use crate::queue::hardware::HardwareQueue;
use crate::request::{Request, RequestList, Terms};
use crate::statistics::Writers;

impl<D: Driver> Shared<D> {
    /// Lets `requests` in: answers those that the device cannot serve, and holds those back that have
    /// to wait for others. Returns whether any may start now.
    pub(super) fn prepare(
        &self,
        requests: &mut RequestList,
        hardware: &HardwareQueue,
        writers: Writers,
    ) -> bool {
        hardware.counters.arrived(requests, writers);
        self.refuse_what_cannot_be(requests);
        if requests.is_empty() || !self.enter(requests, hardware, writers) {
            return false;
        }
        let stamp = requests.stamp.take().unwrap_or_else(Stamp::now);
        requests.iter_mut().for_each(|request| self.mark(request, stamp, hardware));
        if let Some(deadlines) = &hardware.deadlines {
            deadlines.make(requests);
        }
        if self.keeps_order {
            self.hold_back(requests, hardware);
        }
        !requests.is_empty()
    }

    /// Notes when `request` was submitted and where, and to whom it belongs.
    #[inline]
    pub(super) fn mark(&self, request: &mut Request, stamp: Stamp, hardware: &HardwareQueue) {
        let Stamp { nanoseconds, cpu } = stamp;
        request.inner.submitted = nanoseconds;
        request.inner.cpu = cpu;
        // Hardware queues are numbered from zero on, one for each claim ever made.
        request.inner.hardware = hardware.index as u32;
        request.inner.leaf = self.number;
    }

    /// What a device can serve now.
    pub(super) fn terms(&self) -> Terms {
        Terms {
            limits: self.driver.limits(),
            capacity: self.driver.capacity(),
            read_only: self.driver.is_read_only(),
        }
    }

    /// Answers the bios that the device cannot serve.
    fn refuse_what_cannot_be(&self, requests: &mut RequestList) {
        let terms = self.terms();
        if are_admissible(requests, &terms) {
            return;
        }
        let name = self.driver.name();
        for request in std::mem::take(requests).into_iter() {
            requests.extend(request.admit(name, &terms));
        }
    }

    /// Counts `requests` as inside. Answers them and returns false if the device is closed.
    fn enter(
        &self,
        requests: &mut RequestList,
        hardware: &HardwareQueue,
        writers: Writers,
    ) -> bool {
        let is_open = self.gate.enter(&hardware.activity, requests.len() as u64, writers);
        if !is_open {
            self.refuse(requests);
        }
        is_open
    }

    /// Answers requests of a closed device.
    pub(super) fn refuse(&self, requests: &mut RequestList) {
        while let Some(request) = requests.pop() {
            request.fail(self.driver.name(), 0, &Reason::Closed);
        }
    }

    /// Keeps those requests back that overlap with others.
    fn hold_back(&self, requests: &mut RequestList, hardware: &HardwareQueue) {
        let mut guard = self.order.lock();
        let order = std::cell::RefCell::new(&mut *guard);
        requests.keep(
            |request| order.borrow_mut().may_start(request),
            |request| {
                hardware.mail.hold();
                order.borrow_mut().hold(request);
            },
        );
        drop(guard);
        if let Some(deadlines) = &hardware.deadlines
            && hardware.mail.is_holding()
            && deadlines.has_withdrawn()
        {
            // Its limit may have passed before it was held back, and it was not looked at since.
            self.withdraw(hardware);
        }
    }

    /// Sleeps until nothing is inside.
    pub(super) fn wait_idle(&self) {
        self.gate.wait_until(|| self.is_idle().then_some(()));
    }

    /// Whether nothing was inside at some moment during the call.
    pub(super) fn is_idle(&self) -> bool {
        self.hardware.is_idle()
    }
}

/// Whether a device can serve all of `requests`.
fn are_admissible(requests: &RequestList, terms: &Terms) -> bool {
    // A loop, since a closure given to `all` here becomes a call for each request.
    for request in requests.iter() {
        if !request.is_admissible(terms) {
            return false;
        }
    }
    true
}
