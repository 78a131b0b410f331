//! Driver queues for drivers that block.

use std::io;
use std::sync::Arc;
use std::task::Waker;

use super::completions::Completions;
use super::contract::{Driver, DriverQueue, Wait};
use crate::request::RequestList;

/// The queue of a driver that does everything in [`Driver::execute`]: requests end where they
/// start, one after the other.
#[derive(Debug)]
pub struct Synchronous<D> {
    driver: Arc<D>,
}

impl<D: Driver> Synchronous<D> {
    /// A queue for `driver`.
    #[must_use]
    pub fn new(driver: &Arc<D>) -> Self {
        Self { driver: Arc::clone(driver) }
    }
}

impl<D: Driver> DriverQueue for Synchronous<D> {
    const BATCH: usize = 1;

    fn start(&mut self, requests: &mut RequestList, completions: &mut Completions) {
        while let Some(mut request) = requests.pop() {
            let unsupported = || Err(io::Error::from(io::ErrorKind::Unsupported).into());
            let result = self.driver.execute(&mut request).unwrap_or_else(unsupported);
            completions.push(request, result);
        }
    }

    fn reap(&mut self, _completions: &mut Completions, _wait: Wait) -> io::Result<()> {
        Ok(())
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}
