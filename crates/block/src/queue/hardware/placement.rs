//! For experiments: hardware queues by the CPUs that a [`Placement`] asks for.

use std::sync::atomic::Ordering;

use parking_lot::RwLockReadGuard;
use smallvec::SmallVec;

use super::queue::HardwareQueue;
use super::set::HardwareSet;
use crate::affinity::CpuSet;
use crate::driver::Bell;
use crate::experiments::{Placement, QueuePlace};

impl HardwareSet {
    /// The index of the one for what is submitted on the CPU `submitter`, if a placement says so.
    pub(super) fn placed(&self, submitter: u32) -> Option<usize> {
        let placement = self.placement()?;
        let runs_in = |cpus: &CpuSet, place: &CpuSet| cpus.iter().all(|cpu| place.contains(cpu));
        let place = match &placement.queue {
            QueuePlace::Anywhere => return None,
            QueuePlace::Submitter => &CpuSet::only(submitter),
            QueuePlace::Cpus(cpus) => cpus,
        };
        let threads = self.thread_cpus.iter().enumerate();
        let fitting = threads.filter(|(_, cpus)| runs_in(cpus, place));
        let fitting: SmallVec<[usize; 8]> = fitting.map(|(index, _)| index).collect();
        let turn = (submitter as usize).checked_rem(fitting.len())?;
        Some(fitting[turn])
    }

    /// One whose only thread runs on `cpu` and hears messages of other rings.
    pub(crate) fn listening_on(&self, cpu: u32) -> Option<(&HardwareQueue, &Bell)> {
        let place = CpuSet::only(cpu);
        let threads = self.own.iter().zip(&self.thread_cpus);
        threads.filter(|(_, cpus)| **cpus == place).find_map(|(one, _)| Some((&**one, one.bell()?)))
    }

    /// Says where requests are started and answered from now on.
    pub(crate) fn set_placement(&self, placement: &Placement) {
        self.placement.write().clone_from(placement);
        self.placed.store(*placement != Placement::default(), Ordering::Release);
    }

    /// The options asked for, if they are not the default.
    pub(crate) fn placement(&self) -> Option<RwLockReadGuard<'_, Placement>> {
        self.placed.load(Ordering::Acquire).then(|| self.placement.read())
    }
}
