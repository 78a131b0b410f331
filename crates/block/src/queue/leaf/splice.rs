//! Writes that the submitting thread moves to the file of the driver itself.

use std::io;

use super::shared::Shared;
use crate::affinity::Stamp;
use crate::bio::{Bio, Splice};
use crate::device::claim;
use crate::driver::{Bell, Completions, Driver};
use crate::queue::hardware::{HardwareQueue, Via};
use crate::request::{Failure, Request, RequestList};
use crate::statistics::Writers;
use crate::units::SECTOR_SIZE;

impl<D: Driver> Shared<D> {
    /// Has `splice` move the bytes of `bio`, a write without memory, and answers it. False if nothing was
    /// moved, since something has to be waited for or memory is needed.
    pub(super) fn splice_here(&self, bio: Bio, splice: &mut Splice<'_>) -> bool {
        let hardware = self.hardware.here();
        // Where there is a time limit, no submitter gets stuck in the driver.
        if hardware.deadlines.is_some() || claim::find(self.address()).is_some() {
            return false;
        }
        let mut request = Request::new(bio);
        if !request.is_admissible(&self.terms()) || !self.enter_alone(&mut request, hardware) {
            return give_up(request);
        }
        // Should `splice` panic, it finds back as one that a driver drops.
        self.mark(&mut request, Stamp::now(), hardware);
        let Some(result) = self.move_bytes(&request, splice) else {
            self.go_back(&request, hardware);
            return give_up(request);
        };
        self.end_spliced(request, hardware, result);
        true
    }

    /// Counts `request` as inside, if the gate is open and no other has its sectors.
    fn enter_alone(&self, request: &mut Request, hardware: &HardwareQueue) -> bool {
        if !self.gate.enter(&hardware.activity, 1, Writers::Many) {
            return false;
        }
        let is_alone = !self.keeps_order || self.order.lock().may_start(request);
        if !is_alone {
            self.gate.leave(&hardware.activity, 1, Writers::Many);
        }
        is_alone
    }

    /// Undoes [`enter_alone`](Self::enter_alone).
    fn go_back(&self, request: &Request, hardware: &HardwareQueue) {
        if self.keeps_order {
            self.let_others_start(std::slice::from_ref(request));
        }
        self.gate.leave(&hardware.activity, 1, Writers::Many);
    }

    /// Moves the bytes of `request`; `None` if none was moved.
    fn move_bytes(
        &self,
        request: &Request,
        splice: &mut Splice<'_>,
    ) -> Option<Result<(), Failure>> {
        let target = self.driver.splice_target(request.sector(), request.length())?;
        let (start, length) = (request.sector().0 * SECTOR_SIZE, request.length());
        let mut done = 0;
        while done < length {
            // At most what a request may have.
            match splice(target, start + done, (length - done) as usize) {
                Ok(0) | Err(_) if done == 0 => return None,
                Ok(0) => {
                    let reason = io::Error::from(io::ErrorKind::WriteZero).into();
                    return Some(Err(Failure { done, reason }));
                }
                Ok(moved) => done += moved as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Some(Err(Failure { done, reason: error.into() })),
            }
        }
        Some(Ok(()))
    }

    /// Counts `request` and answers it.
    fn end_spliced(&self, request: Request, hardware: &HardwareQueue, result: Result<(), Failure>) {
        let mut list = RequestList::of(request);
        hardware.counters.arrived(&list, Writers::Many);
        hardware.counters.queued_local.add(1, Writers::Many);
        let mut completions = Completions::default();
        if let Some(request) = list.pop() {
            completions.push(request, result);
        }
        self.finish(hardware, &mut completions, Via::Submitter, Bell::wake);
    }
}

/// Drops what will come as another request, whose bytes are in memory.
fn give_up(mut request: Request) -> bool {
    request.take_bios().for_each(drop);
    false
}
