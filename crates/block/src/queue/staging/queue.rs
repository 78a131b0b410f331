//! A queue that holds requests back in front of another.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::requests::{Staged, StagedRequests};
use crate::affinity::Placement;
use crate::device::{Claim, RequestQueue};
use crate::driver::OpenError;
use crate::queue::options::UnplugMode;
use crate::request::{Request, RequestList};
use crate::statistics::{QueueLatencies, QueueReport, Statistics};
use crate::threads::timer;
use crate::units::Limits;

/// Holds back requests on their way to the queue below.
pub(crate) struct StagedQueue {
    below: Arc<dyn RequestQueue>,
    staged: StagedRequests,
    this: Weak<Self>,
}

impl StagedQueue {
    /// In front of `below`, to be unplugged as [`Staging::Plugged`](crate::Staging::Plugged) says.
    pub(crate) fn over(
        below: Arc<dyn RequestQueue>,
        requests: usize,
        delay: Duration,
        unplug: UnplugMode,
    ) -> Arc<Self> {
        let staged = StagedRequests::new(requests, delay, unplug);
        Arc::new_cyclic(|this| Self { below, staged, this: Weak::clone(this) })
    }
}

impl RequestQueue for StagedQueue {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn limits(&self) -> Limits {
        self.below.limits()
    }

    fn submit(&self, requests: &mut RequestList) {
        let urgent = requests.iter().any(Request::is_immediate);
        match self.staged.add(requests, urgent) {
            Staged::Waiting => {}
            Staged::Full(mut requests) => self.below.submit(&mut requests),
            Staged::Plugged(time) => {
                let queue = Weak::clone(&self.this);
                timer::at(time, move || {
                    if let Some(queue) = queue.upgrade() {
                        queue.unplug();
                    }
                });
            }
        }
    }

    fn statistics(&self) -> Statistics {
        let staging = Statistics { staging_locks: self.staged.locks(), ..Statistics::default() };
        self.below.statistics() + staging
    }

    fn hardware_queues(&self) -> Vec<QueueReport> {
        self.below.hardware_queues()
    }

    fn latencies(&self) -> QueueLatencies {
        self.below.latencies()
    }

    fn drain(&self) {
        self.unplug();
        self.below.drain();
    }

    fn close(&self) {
        self.below.close();
        // Refused below, one by one.
        self.unplug();
    }

    fn unplug(&self) {
        if let Some(mut requests) = self.staged.unplug() {
            self.below.submit(&mut requests);
        }
    }

    fn set_placement(&self, placement: &Placement) {
        self.below.set_placement(placement);
    }

    fn claim(&self) -> Result<Claim, OpenError> {
        self.below.claim()
    }
}
