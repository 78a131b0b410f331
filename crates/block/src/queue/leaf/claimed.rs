//! A hardware queue that one thread drives for itself, of one kind of driver.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use super::shared::Shared;
use crate::device::claim::Claimed;
use crate::driver::{Bell, Completions, Driver};
use crate::queue::hardware::{Driving, HardwareQueue, Via};
use crate::request::RequestList;
use crate::statistics::Writers;
use crate::threads::role::may_wait;
use crate::threads::{Alarm, Busy, OwnQueue, WaitLimit, own_queues};

/// A claimed hardware queue.
pub(super) struct ClaimedQueue<D: Driver> {
    shared: Arc<Shared<D>>,
    hardware: Arc<HardwareQueue>,
    /// Borrowed only while nothing of a caller runs.
    driving: RefCell<Driving<D>>,
    /// An empty list of completions, to use its memory again.
    spare: RefCell<Completions>,
    /// Whether requests in flight were stopped because the leaf closes.
    stopped: RefCell<bool>,
}

impl<D: Driver> ClaimedQueue<D> {
    pub(super) fn new(
        shared: Arc<Shared<D>>,
        hardware: Arc<HardwareQueue>,
        queue: D::Queue,
    ) -> Self {
        hardware.mail.attach(&Alarm::current());
        let driving = RefCell::new(Driving::new(&hardware, queue));
        Self { shared, hardware, driving, spare: RefCell::default(), stopped: RefCell::default() }
    }

    /// Answers requests that have ended. Receivers may submit to this queue.
    fn deliver(&self) {
        let mut completions = self.spare.take();
        std::mem::swap(&mut completions, &mut self.driving.borrow_mut().completions);
        if !completions.is_empty() {
            let ring = |bell: &Bell| self.driving.borrow_mut().ring(bell);
            self.shared.finish(&self.hardware, &mut completions, Via::Driver, ring);
        }
        self.spare.replace(completions);
    }

    /// Announces a sleep, unless there is something to do.
    fn may_sleep(&self, driving: &mut Driving<D>, alarm: &Arc<Alarm>) -> bool {
        let busy = driving.in_flight() > 0 || driving.is_held_up();
        driving.completions.is_empty()
            && !driving.await_tag(alarm)
            && self.hardware.mail.may_sleep(alarm, busy, true)
    }

    /// Takes requests that were held back for others and may start now.
    fn take_mail(&self) -> RequestList {
        let mut requests = RequestList::new();
        if self.hardware.mail.has_mail() {
            self.hardware.mail.take(&mut requests, usize::MAX);
        }
        requests
    }
}

impl<D: Driver> OwnQueue for ClaimedQueue<D> {
    fn is_busy(&self) -> bool {
        let driving = self.driving.borrow();
        // What the driver still has after all was answered is not waited for.
        (driving.in_flight() > 0 && self.hardware.activity.is_inside())
            || driving.is_held_up()
            || driving.has_to_stop()
            || self.hardware.mail.is_waiting()
    }

    fn step(&self, alarm: &Arc<Alarm>, limit: WaitLimit) {
        {
            let mut driving = self.driving.borrow_mut();
            driving.mind_limits();
            if limit == WaitLimit::None {
                driving.poll();
            }
            let mut requests = self.take_mail();
            if self.shared.is_stopping() {
                // Nothing more is started: it would not be stopped.
                let stopped = &mut *self.stopped.borrow_mut();
                self.shared.stop(&mut driving, &mut requests, stopped);
            } else {
                driving.start(&mut requests);
                driving.go_on();
            }
            if limit != WaitLimit::None && self.may_sleep(&mut driving, alarm) {
                // Requests that were started go out with the same call.
                driving.sleep(alarm);
                self.hardware.mail.is_awake(alarm);
            } else {
                driving.poll();
            }
            if driving.is_held_up() {
                driving.go_on();
                driving.poll();
            }
        }
        self.deliver();
    }

    fn fall_asleep(
        &self,
        alarm: &Arc<Alarm>,
        event: BorrowedFd<'_>,
    ) -> Result<Option<Instant>, Busy> {
        let mut driving = self.driving.borrow_mut();
        if self.may_sleep(&mut driving, alarm) { Ok(driving.expect(event)) } else { Err(Busy) }
    }

    fn is_awake(&self, alarm: &Arc<Alarm>) {
        self.driving.borrow_mut().ignore();
        self.hardware.mail.is_awake(alarm);
    }
}

impl<D: Driver> Claimed for ClaimedQueue<D> {
    fn leaf(&self) -> usize {
        self.shared.address()
    }

    fn submit(&self, requests: &mut RequestList) {
        if !self.shared.prepare(requests, &self.hardware, Writers::One) {
            return;
        }
        let bios = requests.iter().map(|request| request.bio_count() as u64).sum();
        self.hardware.counters.queued_local.add(bios, Writers::One);
        let held_up = {
            let mut driving = self.driving.borrow_mut();
            driving.mind_limits();
            driving.start(requests);
            if own_queues::defers() {
                own_queues::deferred(driving.in_flight() > 0);
            } else {
                driving.poll();
            }
            driving.is_held_up()
        };
        self.deliver();
        if held_up && may_wait() {
            self.hardware.counters.waits.add(1, Writers::One);
            let alarm = Alarm::current();
            while self.driving.borrow().is_held_up() {
                self.step(&alarm, WaitLimit::Unlimited);
            }
        }
    }

    fn release(&self) {
        let alarm = Alarm::current();
        while self.is_busy() {
            self.step(&alarm, WaitLimit::Unlimited);
        }
        // What ends in threads of the driver has to find the queue that it came through.
        let activity = &self.hardware.activity;
        self.shared.gate.wait_until(|| (!activity.is_inside()).then_some(()));
        self.driving.borrow_mut().mind_limits();
        self.shared.hardware.retire(&self.hardware);
    }
}
