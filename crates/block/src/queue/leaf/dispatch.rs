//! From a leaf to its hardware queues: requests are done at once, or left for the thread that
//! drives a queue.

use super::shared::Shared;
use crate::device::claim;
use crate::driver::{Bell, Completions, Driver};
use crate::queue::hardware::{HardwareQueue, Via};
use crate::queue::options::Drive;
use crate::request::{Failure, Request, RequestList};
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
            self.execute(requests, hardware, D::execute);
        } else if hardware.deadlines.is_none() && requests.iter().any(may_end_here) {
            self.execute(requests, hardware, end_here);
        }
        if !requests.is_empty() {
            let waits = || hardware.counters.waits.add(1, Writers::Many);
            hardware.mail.push(requests, may_wait(), waits);
        }
    }

    /// Does in this thread what the driver can do there by `way`; leaves the rest in the list.
    fn execute(
        &self,
        requests: &mut RequestList,
        hardware: &HardwareQueue,
        way: impl Fn(&D, &mut Request) -> Option<Result<(), Failure>>,
    ) {
        let mut bios = 0;
        let mut completions = Completions::default();
        let mut count = requests.len();
        while count > 0
            && let Some(mut request) = requests.pop()
        {
            if let Some(deadlines) = &hardware.deadlines {
                deadlines.start(std::iter::once(&request));
            }
            let requested = request.bio_count() as u64;
            match way(&self.driver, &mut request) {
                Some(result) => {
                    bios += requested;
                    completions.push(request, result);
                }
                None => {
                    if let Some(deadlines) = &hardware.deadlines {
                        deadlines.wait_again(&request);
                    }
                    requests.push(request);
                }
            }
            count -= 1;
        }
        // The others are counted by the thread that takes them.
        hardware.counters.queued_local.add(bios, Writers::Many);
        self.finish(hardware, &mut completions, Via::Submitter, Bell::wake);
    }
}

/// Whether the submitting thread may end `request` if nothing has to be waited for.
fn may_end_here(request: &Request) -> bool {
    request.is_by_place() || request.is_unwaiting()
}

/// Ends a request that [may](may_end_here) be ended here, if nothing has to be waited for.
fn end_here<D: Driver>(driver: &D, request: &mut Request) -> Option<Result<(), Failure>> {
    if request.is_by_place()
        && let Some(file) = driver.place(request)
    {
        request.set_place(file);
        return Some(Ok(()));
    }
    request.is_unwaiting().then(|| driver.execute_unwaiting(request)).flatten()
}
