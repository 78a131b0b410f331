//! From a leaf to its hardware queues: requests are done at once, or left for the thread that
//! drives a queue.

use super::shared::Shared;
use crate::device::claim;
use crate::driver::{Bell, Completions, Driver};
use crate::queue::hardware::{HardwareQueue, Via};
use crate::queue::options::Drive;
use crate::request::{Request, RequestList};
use crate::statistics::Writers;
use crate::threads::role::may_wait;

impl<D: Driver> Shared<D> {
    /// Sends `requests` to the hardware queue that this thread has claimed, or to that of its CPU.
    pub(super) fn dispatch(&self, requests: &mut RequestList) {
        if let Some(claimed) = claim::find(self.address()) {
            return claimed.submit(requests);
        }
        let hardware = self.hardware.here();
        if !self.prepare(requests, hardware, Writers::Many) {
            return;
        }
        // Where there is a time limit, no submitter gets stuck in the driver without need.
        let may_execute =
            || hardware.deadlines.is_none() && requests.iter().all(Request::is_immediate);
        if self.options.drive == Drive::Inline || may_execute() {
            self.execute(requests, hardware);
        }
        if !requests.is_empty() {
            let waits = || hardware.counters.waits.add(1, Writers::Many);
            hardware.mail.push(requests, may_wait(), waits);
        }
    }

    /// Does what the driver can do in this thread; leaves the rest in the list.
    fn execute(&self, requests: &mut RequestList, hardware: &HardwareQueue) {
        let bios = requests.iter().map(|request| request.bio_count() as u64).sum();
        hardware.counters.queued_local.add(bios, Writers::Many);
        let mut completions = Completions::default();
        let mut count = requests.len();
        while count > 0
            && let Some(mut request) = requests.pop()
        {
            if let Some(deadlines) = &hardware.deadlines {
                deadlines.start(std::iter::once(&request));
            }
            match self.driver.execute(&mut request) {
                Some(result) => completions.push(request, result),
                None => {
                    if let Some(deadlines) = &hardware.deadlines {
                        deadlines.wait_again(&request);
                    }
                    requests.push(request);
                }
            }
            count -= 1;
        }
        self.finish(hardware, &mut completions, Via::Submitter, Bell::wake);
    }

    /// Opens the gate, and sends the requests parked meanwhile.
    pub(super) fn unfreeze(&self) {
        self.gate.unfreeze();
        let mut parked = std::mem::take(&mut *self.parked.lock());
        if !parked.is_empty() {
            self.dispatch(&mut parked);
        }
    }
}
