//! The end of the threads of a leaf.

use std::sync::atomic::Ordering;

use super::shared::Shared;
use crate::bio::Reason;
use crate::driver::Driver;
use crate::queue::hardware::{Driving, HardwareQueue};
use crate::request::RequestList;

impl<D: Driver> Shared<D> {
    /// Stops requests in flight, once, and ends those that were not started, for a leaf that
    /// closes; called by the thread that drives the queue.
    pub(super) fn stop(
        &self,
        driving: &mut Driving<D>,
        requests: &mut RequestList,
        stopped: &mut bool,
    ) {
        if !std::mem::replace(stopped, true) {
            driving.stop_all();
        }
        let mut waiting = driving.take_waiting();
        waiting.append(requests);
        for request in waiting {
            driving.completions.push(request, Err(Reason::Closed.into()));
        }
    }

    /// Whether the thread of `hardware`, which was closed, has nothing to wait for: what ends in
    /// threads of the driver has to find the leaf, and what other rings hand over has to be done.
    pub(super) fn may_end(&self, hardware: &HardwareQueue) -> bool {
        let idle = || !self.rings.load(Ordering::Relaxed) || self.is_idle();
        hardware.has_answers() || (!hardware.activity.is_inside() && idle())
    }
}
