//! What devices above see of a leaf.

use std::fs::File;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use super::claimed::ClaimedQueue;
use super::shared::Shared;
use crate::bio::{Bio, Splice};
use crate::device::{Claim, RequestQueue, Reservations, claim};
use crate::driver::{Driver, OpenError};
use crate::experiments::Placement;
use crate::request::RequestList;
use crate::statistics::{QueueLatencies, QueueReport, Statistics};
use crate::units::{Limits, Sector};

impl<D: Driver> RequestQueue for Shared<D> {
    fn name(&self) -> &str {
        self.driver.name()
    }

    fn limits(&self) -> Limits {
        self.driver.limits()
    }

    fn submit(&self, requests: &mut RequestList) {
        self.dispatch(requests);
    }

    fn splice_target(&self, sector: Sector, length: u64) -> Option<&File> {
        let is_inside = Sector::from_bytes(length)
            .and_then(|sectors| sector.checked_add(sectors))
            .is_some_and(|end| end <= self.driver.capacity());
        is_inside.then(|| self.driver.splice_target(sector, length)).flatten()
    }

    fn splice(&self, bio: Bio, splice: &mut Splice<'_>) -> bool {
        self.splice_here(bio, splice)
    }

    fn statistics(&self) -> Statistics {
        self.hardware.reports().into_iter().map(|queue| queue.statistics).sum()
    }

    fn hardware_queues(&self) -> Vec<QueueReport> {
        self.hardware.reports()
    }

    fn latencies(&self) -> QueueLatencies {
        self.hardware.latencies()
    }

    fn drain(&self) {
        self.wait_idle();
    }

    fn close(&self) {
        self.gate.close();
        self.stopping.store(true, Ordering::SeqCst);
        for hardware in self.hardware.all() {
            hardware.mail.wake();
        }
        self.drain();
    }

    fn set_placement(&self, placement: &Placement) {
        self.hardware.set_placement(placement);
    }

    fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    fn claim(&self) -> Result<Claim, OpenError> {
        let Some(this) = self.this.upgrade() else { return Ok(Claim::new()) };
        if claim::find(self.address()).is_some() {
            return Ok(Claim::new());
        }
        if self.options.time_limit.is_some() {
            let no_thread = |source| OpenError::Thread { name: self.name().to_owned(), source };
            self.start_watchdog().map_err(no_thread)?;
        }
        let hardware = self.hardware.for_claim(&self.options);
        let queue = self.driver.open_queue(&self.context(&hardware))?;
        self.hardware.add(&hardware);
        Ok(Claim::of(Rc::new(ClaimedQueue::new(this, hardware, queue))))
    }
}
